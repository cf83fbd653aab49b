package export

import (
	"trajgen/pipeline/episode"
)

var verlSFTFormat = Format{
	About: "conversations as verl's multi-turn fine-tuning reads them (Parquet); what the dataset or the harness put into the model's mouth has trainable=false, which verl's own dataset class does not look at. Tools and arguments are of the type JSON; examples/verl_sft.py is a dataset class that parses them",
	Settings: map[string]string{
		"json": "what arguments and tools are: value (default: of the logical type JSON; arguments that are no object stand as they were sent back to the model) or string (texts, as the model wrote them)",
	},
	open: func(path string, options Options) (target, error) {
		text, err := options.choice("verl-sft", "json", "value", "string")
		if err != nil {
			return nil, err
		}
		n, kind := notes{}, rowKind{as: "parquet", name: "verl-sft", id: "id"}
		if text == "value" {
			kind.json = []string{"arguments", "tools"}
		}
		return openRowSink(path, kind, options, n, func(ep *episode.Episode) (*verlTalk, error) { return newVerlTalk(n, ep, text == "value") })
	},
}

// verlTalk is a row of verl's multi-turn datasets. Tools and arguments are of the logical type JSON: as structs, all calls of
// a file would get the arguments of all others, with nulls in them, and a chat template would write those.
type verlTalk struct {
	ID             string     `parquet:"id"`
	Messages       []verlTurn `parquet:"messages,list"`
	Tools          []jsonText `parquet:"tools,list" parquet-element:",dict"`
	EnableThinking bool       `parquet:"enable_thinking"`
}

type verlTurn struct {
	Role             string     `parquet:"role,dict"`
	Content          string     `parquet:"content"`
	ReasoningContent *string    `parquet:"reasoning_content,optional"`
	ToolCalls        []verlCall `parquet:"tool_calls,list"`
	ToolCallID       *string    `parquet:"tool_call_id,optional"`
	Name             *string    `parquet:"name,optional,dict"`
	Trainable        *bool      `parquet:"trainable,optional"` // of an assistant: it is the model's
}

type verlCall struct {
	ID       string       `parquet:"id"`
	Type     string       `parquet:"type,dict"`
	Function verlFunction `parquet:"function"`
}

type verlFunction struct {
	Name      string   `parquet:"name,dict"`
	Arguments jsonText `parquet:"arguments"`
}

const noteTools = "rows whose tools and arguments are JSON, which verl's dataset class must parse before it applies a chat template (examples/verl_sft.py does)"

func newVerlTalk(n notes, ep *episode.Episode, values bool) (row *verlTalk, err error) {
	if err := conversation(ep); err != nil {
		return row, err
	}
	row = &verlTalk{ID: ep.ID, EnableThinking: reasons(ep), Messages: make([]verlTurn, len(ep.Messages))}
	for _, tool := range ep.Tools {
		row.Tools = append(row.Tools, jsonText(tool))
	}
	spoken := ep.Spoken()
	for i := range ep.Messages {
		if row.Messages[i], err = newVerlTurn(&ep.Messages[i], spoken[i], values); err != nil {
			return row, err
		}
	}
	n.remark(ep)
	n.remarkPrefill(ep, 0)
	if values {
		n.remarkResent(ep)
	}
	if len(row.Tools) > 0 {
		n[noteTools]++
	}
	return row, nil
}

func newVerlTurn(m *episode.Message, spoken, values bool) (turn verlTurn, err error) {
	turn = verlTurn{
		Role: m.Role, Content: m.Content, ReasoningContent: present(m.Reasoning), ToolCallID: present(m.ToolCallID), Name: present(m.Name),
	}
	if m.Role == "assistant" {
		turn.Trainable = &spoken
	}
	for i := range m.Calls {
		call := &m.Calls[i]
		arguments, err := argumentsOf(call, values)
		if err != nil {
			return turn, err
		}
		turn.ToolCalls = append(turn.ToolCalls, verlCall{call.ID, "function", verlFunction{call.Name, jsonText(arguments)}})
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
