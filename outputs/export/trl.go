package export

import (
	"encoding/json"
	"reflect"

	"trajgen/pipeline/episode"
)

var trlFormat = Format{
	About: "TRL's conversational rows: messages and tools, with the episode's id and reward beside them. TRL knows no weights: " +
		"assistant messages of the dataset and what the harness said (prefill, warnings) are trained on like the rest; --without-harness leaves out the harness's",
	Settings: trlSettings,
	open:     openTRL,
}

var promptCompletionFormat = Format{
	About: "TRL's prompt and completion: the prompt is everything before the model's first message, prefill with it, and the completion is the rest, " +
		"results of tools and warnings of the harness with it",
	Settings: trlSettings,
	open:     openPromptCompletion,
}

var trlSettings = map[string]string{
	"file": "jsonl (default) or parquet",
	"json": "how arguments and tools stand: arguments (default: arguments as objects, as chat templates want them, and tools as one text, which TRL parses), value (both as objects) or string (both as texts). " +
		"In Parquet, objects are of the type JSON. datasets before 4.7, which TRL does not take any more, gives each object the keys of all others as nulls",
	"reasoning": "drop (default) leaves out what the model thought, think puts it before the content in <think> tags, field keeps it as reasoning_content, which some chat templates read",
}

// jsonValue is JSON text that stands in a row as what it says.
type jsonValue string

// MarshalJSON is the text itself.
func (v jsonValue) MarshalJSON() ([]byte, error) { return []byte(v), nil }

// jsonText is how arguments and tools stand in a row. In Parquet, a value is a text of the logical type JSON.
type jsonText interface{ string | jsonValue }

func isValue[Text jsonText]() bool { return reflect.TypeFor[Text]() == reflect.TypeFor[jsonValue]() }

type trlMessage[Arguments jsonText] struct {
	Role       string               `json:"role" parquet:"role,dict"`
	Content    string               `json:"content" parquet:"content"`
	Reasoning  *string              `json:"reasoning_content,omitempty" parquet:"reasoning_content,optional"`
	ToolCalls  []trlCall[Arguments] `json:"tool_calls,omitempty" parquet:"tool_calls,list"`
	ToolCallID *string              `json:"tool_call_id,omitempty" parquet:"tool_call_id,optional"`
	Name       *string              `json:"name,omitempty" parquet:"name,optional,dict"` // tool
}

type trlCall[Arguments jsonText] struct {
	ID       string                 `json:"id" parquet:"id"`
	Type     string                 `json:"type" parquet:"type,dict"`
	Function trlFunction[Arguments] `json:"function" parquet:"function"`
}

type trlFunction[Text jsonText] struct {
	Name      string `json:"name" parquet:"name,dict"`
	Arguments Text   `json:"arguments" parquet:"arguments"`
}

// trlRow is a row of messages.
type trlRow[Arguments, Tools jsonText] struct {
	ID       string                  `json:"id" parquet:"id"`
	Messages []trlMessage[Arguments] `json:"messages" parquet:"messages,list"`
	Tools    Tools                   `json:"tools" parquet:"tools,dict"`
	Reward   *float64                `json:"reward" parquet:"reward,optional"`
}

// trlPair is a row of a prompt and a completion.
type trlPair[Arguments, Tools jsonText] struct {
	ID         string                  `json:"id" parquet:"id"`
	Prompt     []trlMessage[Arguments] `json:"prompt" parquet:"prompt,list"`
	Completion []trlMessage[Arguments] `json:"completion" parquet:"completion,list"`
	Tools      Tools                   `json:"tools" parquet:"tools,dict"`
	Reward     *float64                `json:"reward" parquet:"reward,optional"`
}

// trlWriter makes messages as TRL reads them.
type trlWriter struct {
	file, json, reasoning string
	prompted              bool // what stands before the model's first message is a prompt, which is not trained on
	notes                 notes
}

func newTRLWriter(format string, options Options) (w trlWriter, err error) {
	w.notes = notes{}
	if w.file, err = options.choice(format, "file", "jsonl", "parquet"); err != nil {
		return w, err
	}
	if w.json, err = options.choice(format, "json", "arguments", "value", "string"); err != nil {
		return w, err
	}
	if w.reasoning, err = options.choice(format, "reasoning", "drop", "think", "field"); err != nil {
		return w, err
	}
	return w, nil
}

// openTRLRows opens the file that the settings ask for.
func openTRLRows[Row any](w *trlWriter, path, name, id string, options Options) (rowWriter[Row], error) {
	if w.file == "parquet" {
		return openParquetRows[Row](path, name, id, options)
	}
	return openJSONRows[Row](path, name)
}

func openTRL(path string, options Options) (Sink, error) {
	w, err := newTRLWriter("trl", options)
	if err != nil {
		return nil, err
	}
	switch w.json {
	case "value":
		return openTRLSink(&w, path, "trl", options, messagesRow[jsonValue, jsonValue])
	case "string":
		return openTRLSink(&w, path, "trl", options, messagesRow[string, string])
	}
	return openTRLSink(&w, path, "trl", options, messagesRow[jsonValue, string])
}

func openPromptCompletion(path string, options Options) (Sink, error) {
	w, err := newTRLWriter("trl-prompt-completion", options)
	if err != nil {
		return nil, err
	}
	w.prompted = true
	switch w.json {
	case "value":
		return openTRLSink(&w, path, "prompt_completion", options, pairRow[jsonValue, jsonValue])
	case "string":
		return openTRLSink(&w, path, "prompt_completion", options, pairRow[string, string])
	}
	return openTRLSink(&w, path, "prompt_completion", options, pairRow[jsonValue, string])
}

func openTRLSink[Row any](w *trlWriter, path, name string, options Options, row func(*trlWriter, *episode.Episode) (Row, error)) (Sink, error) {
	out, err := openTRLRows[Row](w, path, name, "id", options)
	if err != nil {
		return nil, err
	}
	return &rowSink[Row]{rowWriter: out, notes: w.notes, convert: func(ep *episode.Episode) ([]Row, error) {
		row, err := row(w, ep)
		return []Row{row}, err
	}}, nil
}

func messagesRow[Arguments, Tools jsonText](w *trlWriter, ep *episode.Episode) (row trlRow[Arguments, Tools], err error) {
	if err := conversation(ep); err != nil {
		return row, err
	}
	row.ID, row.Reward = ep.ID, ep.Reward
	if row.Messages, err = trlMessages[Arguments](w, ep.Messages); err != nil {
		return row, err
	}
	row.Tools = trlTools[Tools](ep.Tools)
	noteTRL[Arguments](w, ep)
	return row, nil
}

func pairRow[Arguments, Tools jsonText](w *trlWriter, ep *episode.Episode) (row trlPair[Arguments, Tools], err error) {
	row.ID, row.Reward = ep.ID, ep.Reward
	if row.Prompt, row.Completion, err = promptAndRest[Arguments](w, ep); err != nil {
		return row, err
	}
	row.Tools = trlTools[Tools](ep.Tools)
	noteTRL[Arguments](w, ep)
	return row, nil
}

// promptAndRest parts a conversation before the model's first message.
func promptAndRest[Arguments jsonText](w *trlWriter, ep *episode.Episode) (prompt, rest []trlMessage[Arguments], err error) {
	if err := conversation(ep); err != nil {
		return nil, nil, err
	}
	first := opening(ep)
	if first == 0 {
		return nil, nil, &Refusal{"no message before the model's first one"}
	}
	all, err := trlMessages[Arguments](w, ep.Messages)
	if err != nil {
		return nil, nil, err
	}
	return all[:first], all[first:], nil
}

func noteTRL[Arguments jsonText](w *trlWriter, ep *episode.Episode) {
	w.notes.remark(ep)
	from := 0
	if w.prompted {
		from = opening(ep)
	}
	w.notes.remarkPrefill(ep, from)
	if w.reasoning == "drop" && reasons(ep) {
		w.notes[noteReasoning]++
	}
	remarkResent[Arguments](w.notes, ep)
}

func trlMessages[Arguments jsonText](w *trlWriter, messages []episode.Message) ([]trlMessage[Arguments], error) {
	all := make([]trlMessage[Arguments], len(messages))
	for i := range messages {
		m, to := &messages[i], &all[i]
		to.Role, to.Content = m.Role, m.Content
		switch {
		case w.reasoning == "think":
			var err error
			if to.Content, err = withThinking(m); err != nil {
				return nil, err
			}
		case w.reasoning == "field" && m.Reasoning != "":
			to.Reasoning = &m.Reasoning
		}
		if m.Role == "tool" {
			to.ToolCallID = &m.ToolCallID
			if m.Name != "" {
				to.Name = &m.Name
			}
		}
		for n := range m.Calls {
			call := &m.Calls[n]
			arguments, err := argumentsOf[Arguments](call)
			if err != nil {
				return nil, err
			}
			to.ToolCalls = append(to.ToolCalls, trlCall[Arguments]{call.ID, "function", trlFunction[Arguments]{call.Name, arguments}})
		}
	}
	return all, nil
}

// trlTools is the list of schemas as one JSON text.
func trlTools[Tools jsonText](tools []json.RawMessage) Tools {
	text := []byte{'['}
	for i, tool := range tools {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, tool...)
	}
	return Tools(append(text, ']'))
}
