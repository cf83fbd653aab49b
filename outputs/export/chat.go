package export

import "trajgen/pipeline/episode"

// chatMessage is a message as chat APIs have it, and with them most trainers.
type chatMessage struct {
	Role       string     `json:"role" parquet:"role,dict"`
	Content    string     `json:"content" parquet:"content"`
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
func newChatMessage(m *episode.Message, arguments func(*episode.Call) (jsonText, error)) (chatMessage, error) {
	to := chatMessage{Role: m.Role, Content: m.Content, Reasoning: present(m.Reasoning), ToolCallID: present(m.ToolCallID), Name: present(m.Name)}
	for i := range m.Calls {
		call := &m.Calls[i]
		text, err := arguments(call)
		if err != nil {
			return to, err
		}
		to.ToolCalls = append(to.ToolCalls, chatCall{call.ID, "function", chatFunction{call.Name, text}})
	}
	return to, nil
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
