package export

import (
	"fmt"
	"regexp"
	"slices"

	"trajgen/pipeline/episode"
)

var openaiFormat = Format{
	shows:   true,
	imaging: inlined,
	About: "JSONL for OpenAI's fine-tuning: messages, tools and weights; arguments as the model wrote them, and nothing behind the last assistant message. " +
		"What the dataset or the harness put into the model's mouth (prefill) has weight 0; their other messages stand as they were sent",
	Settings: map[string]Setting{
		"weight": {
			About: "which assistant messages are trained on: model (default: those that the model wrote), ok (of these, the ones without a failed call) or none (no weights are written)",
			words: []string{"model", "ok", "none"},
		},
		"reasoning": {
			About: "drop (default) leaves out what the model thought, think puts it before the content in <think> tags",
			words: []string{"drop", "think"},
		},
		"parallel_tool_calls": {
			About: "true or false for every row; false refuses episodes with several calls in a turn (default: true where a turn has several calls, and nothing elsewhere)",
			words: []string{"", "true", "false"},
		},
		"id": {About: "name of a key for the episode's id in each row, for your own use: the service refuses keys that it does not know (default: none)"},
	},
	open: openOpenAI,
}

// openaiMessage is a message as the service takes it.
type openaiMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // null beside calls alone
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Weight     *int       `json:"weight,omitempty"` // assistant
}

// functionName is what the service takes for the name of a function.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

const (
	refuseName      = "a tool's name that the format does not allow"
	refuseParallel  = "several calls in a turn"
	refuseUntrained = "no assistant message to train on"
	noteCut         = "episodes with messages behind the model's last one, which were left out"
	notePrefill     = "episodes with assistant messages of the dataset or the harness, which have weight 0"
)

type openaiWriter struct {
	weight, reasoning, parallel, idKey string
	notes                              notes
}

func openOpenAI(path string, options Options) (target, error) {
	set := options.Set
	w := openaiWriter{weight: set["weight"], reasoning: set["reasoning"], parallel: set["parallel_tool_calls"], idKey: set["id"], notes: notes{}}
	if slices.Contains([]string{"messages", "tools", "parallel_tool_calls"}, w.idKey) {
		return nil, fmt.Errorf("output format openai: id is %q, which is a key of the format (want another name)", w.idKey)
	}
	return openRowSink(path, rowKind{as: "jsonl", name: "openai"}, options, w.notes, w.row)
}

func (w *openaiWriter) row(ep *episode.Episode) (object, error) {
	if err := conversation(ep); err != nil {
		return nil, err
	}
	spoken, failed := ep.Spoken(), failedTurns(ep)
	var messages []openaiMessage
	end, trained, several, prefilled := 0, false, false, false
	for i := range ep.Messages {
		m := &ep.Messages[i]
		to, err := w.message(m)
		if err != nil {
			return nil, err
		}
		if m.Role == "assistant" {
			weight := 1
			if !spoken[i] || w.weight == "ok" && failed[i] {
				weight = 0
			}
			trained, prefilled = trained || weight == 1, prefilled || !spoken[i]
			if w.weight != "none" {
				to.Weight = &weight
			}
			several = several || len(m.Calls) > 1
			end = i + 1
		}
		messages = append(messages, to)
	}
	var parallel any
	switch {
	case !trained:
		return nil, &Refusal{refuseUntrained}
	case several && w.parallel == "false":
		return nil, &Refusal{refuseParallel}
	case several || w.parallel != "":
		parallel = w.parallel != "false"
	}
	w.note(ep, end, prefilled)
	row := object{{"messages", messages[:end]}, {"tools", some(shallowAll(ep.Tools))}, {"parallel_tool_calls", parallel}}
	if w.idKey != "" {
		row = slices.Insert(row, 0, field{w.idKey, ep.ID})
	}
	return row, nil
}

func (w *openaiWriter) note(ep *episode.Episode, end int, prefilled bool) {
	w.notes.remark(ep)
	if end < len(ep.Messages) {
		w.notes[noteCut]++
	}
	if prefilled && w.weight != "none" {
		w.notes[notePrefill]++
	}
	if w.reasoning == "drop" && reasons(ep) {
		w.notes[noteReasoning]++
	}
}

func (w *openaiWriter) message(m *episode.Message) (to openaiMessage, err error) {
	content := m.Content
	if w.reasoning == "think" {
		if content, err = withThinking(m); err != nil {
			return to, err
		}
	}
	for _, call := range m.Calls {
		if !functionName.MatchString(call.Name) {
			return to, &Refusal{refuseName}
		}
	}
	calls, err := chatCalls(m, asWritten)
	to = openaiMessage{Role: m.Role, ToolCalls: calls}
	if m.Role == "tool" {
		to.ToolCallID = m.ToolCallID
	}
	switch {
	case len(m.Images()) > 0:
		to.Content = chatContent(m)
	case content != "" || len(m.Calls) == 0:
		to.Content = content
	}
	return to, err
}
