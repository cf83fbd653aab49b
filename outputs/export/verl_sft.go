package export

import (
	"trajgen/pipeline/episode"
)

var verlSFTFormat = Format{
	About: "conversations as verl's multi-turn fine-tuning reads them (Parquet); what the dataset or the harness put into the model's mouth has trainable=false, which verl's own dataset class does not look at",
	open: func(path string, options Options) (Sink, error) {
		w, err := openParquetRows[verlTalk](path, "verl-sft", "id", options)
		if err != nil {
			return nil, err
		}
		s := &rowSink[verlTalk]{rowWriter: w, notes: notes{}}
		s.convert = s.notes.verlTalk
		return s, nil
	},
}

// verlTalk is a row of verl's multi-turn datasets. Tools and arguments are JSON texts: as structs, all tools of a file
// would get each other's arguments, with nulls in them.
type verlTalk struct {
	ID             string     `parquet:"id"`
	Messages       []verlTurn `parquet:"messages,list"`
	Tools          []string   `parquet:"tools,list" parquet-element:",dict"`
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
	Name      string `parquet:"name,dict"`
	Arguments string `parquet:"arguments"`
}

const noteTools = "rows whose tools are JSON texts, which verl's own dataset class has to parse before it applies a chat template"

func (n notes) verlTalk(ep *episode.Episode) ([]verlTalk, error) {
	if err := conversation(ep); err != nil {
		return nil, err
	}
	n.remark(ep)
	n.remarkPrefill(ep, 0)
	row := verlTalk{ID: ep.ID, EnableThinking: reasons(ep)}
	for _, tool := range ep.Tools {
		row.Tools = append(row.Tools, string(tool))
	}
	if len(row.Tools) > 0 {
		n[noteTools]++
	}
	row.Messages = make([]verlTurn, len(ep.Messages))
	spoken := ep.Spoken()
	for i := range ep.Messages {
		row.Messages[i] = verlTurnOf(&ep.Messages[i], spoken[i])
	}
	return []verlTalk{row}, nil
}

func verlTurnOf(m *episode.Message, spoken bool) verlTurn {
	turn := verlTurn{
		Role: m.Role, Content: m.Content, ReasoningContent: present(m.Reasoning), ToolCallID: present(m.ToolCallID), Name: present(m.Name),
	}
	if m.Role == "assistant" {
		turn.Trainable = &spoken
	}
	for _, call := range m.Calls {
		turn.ToolCalls = append(turn.ToolCalls, verlCall{call.ID, "function", verlFunction{call.Name, call.Arguments}})
	}
	return turn
}

// present is nil for an empty text.
func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
