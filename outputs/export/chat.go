package export

import "trajgen/pipeline/episode"

// chatMessage is a message as chat APIs have it, and with them most trainers. Content is a text, or what a format has where there
// are images.
type chatMessage[Content any] struct {
	Role       string     `json:"role" parquet:"role,dict"`
	Content    Content    `json:"content" parquet:"content"`
	Reasoning  *string    `json:"reasoning_content,omitempty" parquet:"reasoning_content,optional"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty" parquet:"tool_calls,list"`
	ToolCallID *string    `json:"tool_call_id,omitempty" parquet:"tool_call_id,optional"`
	Name       *string    `json:"name,omitempty" parquet:"name,optional,dict"`
}

type chatCall struct {
	ID       string       `json:"id" parquet:"id"`
	Type     string       `json:"type" parquet:"type,dict"`
	Function chatFunction `json:"function" parquet:"function"`
}

type chatFunction struct {
	Name      string   `json:"name" parquet:"name,dict"`
	Arguments jsonText `json:"arguments" parquet:"arguments"`
}

// newChatMessage is a message with all that it has; arguments says how those of a call stand.
func newChatMessage[Content any](m *episode.Message, content Content, arguments writeCall) (chatMessage[Content], error) {
	calls, err := chatCalls(m, arguments)
	return chatMessage[Content]{
		m.Role, content, present(m.Reasoning), calls, present(m.ToolCallID), present(m.Name),
	}, err
}

// writeCall gives the arguments of a call as they stand in a row.
type writeCall func(*episode.Call) (jsonText, error)

func chatCalls(m *episode.Message, arguments writeCall) (calls []chatCall, err error) {
	for i := range m.Calls {
		call := &m.Calls[i]
		text, err := arguments(call)
		if err != nil {
			return nil, err
		}
		calls = append(calls, chatCall{call.ID, "function", chatFunction{call.Name, text}})
	}
	return calls, nil
}

// asWritten are the arguments of a call as the model wrote them, as a text in a line of JSON.
func asWritten(call *episode.Call) (jsonText, error) { return jsonText(quoted(call.Arguments)), nil }

// present is nil for an empty text.
func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
