package export

import (
	"trajgen/pipeline/episode"
)

var verlSFTFormat = Format{
	About: "conversations as verl's multi-turn fine-tuning reads them (Parquet); what the dataset or the harness put into the model's mouth has trainable=false, which verl's own dataset class does not look at. Tools and arguments are of the type JSON; examples/verl_sft.py is a dataset class that parses them",
	Settings: map[string]string{
		"json": "what arguments and tools are: value (default: of the logical type JSON; arguments that are no object stand as they were sent back to the model) or string (texts, as the model wrote them)",
	},
	open: func(path string, options Options) (Sink, error) {
		text, err := options.choice("verl-sft", "json", "value", "string")
		if err != nil {
			return nil, err
		}
		if text == "string" {
			return openVerlSFT[string](path, options)
		}
		return openVerlSFT[jsonValue](path, options)
	},
}

func openVerlSFT[Text jsonText](path string, options Options) (Sink, error) {
	w, err := openParquetRows[verlTalk[Text]](path, "verl-sft", "id", options)
	if err != nil {
		return nil, err
	}
	n := notes{}
	return &rowSink[verlTalk[Text]]{rowWriter: w, notes: n, convert: func(ep *episode.Episode) ([]verlTalk[Text], error) {
		row, err := newVerlTalk[Text](n, ep)
		return []verlTalk[Text]{row}, err
	}}, nil
}

// verlTalk is a row of verl's multi-turn datasets. Tools and arguments are of the logical type JSON: as structs, all calls of
// a file would get the arguments of all others, with nulls in them, and a chat template would write those.
type verlTalk[Text jsonText] struct {
	ID             string           `parquet:"id"`
	Messages       []verlTurn[Text] `parquet:"messages,list"`
	Tools          []Text           `parquet:"tools,list" parquet-element:",dict"`
	EnableThinking bool             `parquet:"enable_thinking"`
}

type verlTurn[Text jsonText] struct {
	Role             string           `parquet:"role,dict"`
	Content          string           `parquet:"content"`
	ReasoningContent *string          `parquet:"reasoning_content,optional"`
	ToolCalls        []verlCall[Text] `parquet:"tool_calls,list"`
	ToolCallID       *string          `parquet:"tool_call_id,optional"`
	Name             *string          `parquet:"name,optional,dict"`
	Trainable        *bool            `parquet:"trainable,optional"` // of an assistant: it is the model's
}

type verlCall[Text jsonText] struct {
	ID       string             `parquet:"id"`
	Type     string             `parquet:"type,dict"`
	Function verlFunction[Text] `parquet:"function"`
}

type verlFunction[Text jsonText] struct {
	Name      string `parquet:"name,dict"`
	Arguments Text   `parquet:"arguments"`
}

const noteTools = "rows whose tools and arguments are JSON, which verl's dataset class must parse before it applies a chat template (examples/verl_sft.py does)"

func newVerlTalk[Text jsonText](n notes, ep *episode.Episode) (row verlTalk[Text], err error) {
	if err := conversation(ep); err != nil {
		return row, err
	}
	row = verlTalk[Text]{ID: ep.ID, EnableThinking: reasons(ep), Messages: make([]verlTurn[Text], len(ep.Messages))}
	for _, tool := range ep.Tools {
		row.Tools = append(row.Tools, Text(tool))
	}
	spoken := ep.Spoken()
	for i := range ep.Messages {
		if row.Messages[i], err = newVerlTurn[Text](&ep.Messages[i], spoken[i]); err != nil {
			return row, err
		}
	}
	n.remark(ep)
	n.remarkPrefill(ep, 0)
	remarkResent[Text](n, ep)
	if len(row.Tools) > 0 {
		n[noteTools]++
	}
	return row, nil
}

func newVerlTurn[Text jsonText](m *episode.Message, spoken bool) (turn verlTurn[Text], err error) {
	turn = verlTurn[Text]{
		Role: m.Role, Content: m.Content, ReasoningContent: present(m.Reasoning), ToolCallID: present(m.ToolCallID), Name: present(m.Name),
	}
	if m.Role == "assistant" {
		turn.Trainable = &spoken
	}
	for i := range m.Calls {
		call := &m.Calls[i]
		arguments, err := argumentsOf[Text](call)
		if err != nil {
			return turn, err
		}
		turn.ToolCalls = append(turn.ToolCalls, verlCall[Text]{call.ID, "function", verlFunction[Text]{call.Name, arguments}})
	}
	return turn, nil
}

// present is nil for an empty text.
func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
