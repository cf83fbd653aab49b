package export

import (
	"encoding/json"
	"slices"

	"trajgen/pipeline/episode"
)

var trlFormat = Format{
	trains:  true,
	imaging: inlined,
	About: "TRL's conversational rows: messages and tools, with the episode's id and reward beside them. TRL knows no weights: " +
		"assistant messages of the dataset and what the harness said (prefill, warnings) are trained on like the rest; --without-harness leaves out " +
		"the harness's. " +
		"With --inline-media each row has a column images, and contents are lists of parts",
	Settings: trlSettings,
	open: func(path string, options Options) (target, error) {
		if options.Inline {
			return openTRL(path, "trl", false, options, (*trlWriter).picturedRow)
		}
		return openTRL(path, "trl", false, options, (*trlWriter).row)
	},
}

var promptCompletionFormat = Format{
	trains:  true,
	imaging: inlined,
	About: "TRL's prompt and completion: the prompt is everything before the model's first message, prefill with it, and the completion is the rest, " +
		"results of tools and warnings of the harness with it. " +
		"--inline-media refuses episodes with images in the completion, where TRL looks for none",
	Settings: trlSettings,
	open: func(path string, options Options) (target, error) {
		if options.Inline {
			return openTRL(path, "prompt_completion", true, options, (*trlWriter).picturedPair)
		}
		return openTRL(path, "prompt_completion", true, options, (*trlWriter).pair)
	},
}

var trlSettings = map[string]Setting{
	"file": {About: "jsonl (default) or parquet", words: []string{"jsonl", "parquet"}},
	"json": {
		About: "how arguments and tools stand: arguments (default: arguments as objects, as chat templates want them, and tools as one text, which TRL parses), value (both as objects) or string (both as texts). " +
			"In Parquet, objects are of the type JSON. datasets before 4.7, which TRL does not take any more, gives each object the keys of all others as nulls",
		words: []string{"arguments", "value", "string"},
	},
	"reasoning": {
		About: "drop (default) leaves out what the model thought, think puts it before the content in <think> tags, field keeps it as reasoning_content, which some chat templates read",
		words: []string{"drop", "think", "field"},
	},
}

// trlRow is a row of messages.
type trlRow[Content any] struct {
	ID       string                 `json:"id" parquet:"id"`
	Messages []chatMessage[Content] `json:"messages" parquet:"messages,list"`
	Tools    jsonText               `json:"tools" parquet:"tools,dict"`
	Reward   *float64               `json:"reward" parquet:"reward,optional"`
}

// trlPair is a row of a prompt and a completion.
type trlPair[Content any] struct {
	ID         string                 `json:"id" parquet:"id"`
	Prompt     []chatMessage[Content] `json:"prompt" parquet:"prompt,list"`
	Completion []chatMessage[Content] `json:"completion" parquet:"completion,list"`
	Tools      jsonText               `json:"tools" parquet:"tools,dict"`
	Reward     *float64               `json:"reward" parquet:"reward,optional"`
}

// trlPictured is a row with images. TRL puts them, in their order, in the place of the parts that are images, of all messages but
// those of tools; images of a completion are not looked for (prepare_multimodal_messages in trl/data_utils.py,
// DataCollatorForVisionLanguageModeling in trl/trainer/sft_trainer.py).
type trlPictured struct {
	trlRow[[]trlPart]
	Images []rowImage `json:"images" parquet:"images,list"`
}

type trlPicturedPair struct {
	trlPair[[]trlPart]
	Images []rowImage `json:"images" parquet:"images,list"`
}

// trlPart is a part of a message: an image, or a text.
type trlPart struct {
	Type string  `json:"type" parquet:"type,dict"`
	Text *string `json:"text,omitempty" parquet:"text,optional"`
}

const refuseAnswered = "an image behind the model's first message, where TRL looks for none"

// trlWriter makes messages as TRL reads them.
type trlWriter struct {
	file, json, reasoning string
	prompted              bool // what stands before the model's first message is a prompt, which is not trained on
	notes                 notes
}

func newTRLWriter(prompted bool, options Options) *trlWriter {
	set := options.Set
	return &trlWriter{file: set["file"], json: set["json"], reasoning: set["reasoning"], prompted: prompted, notes: notes{}}
}

// kind is the file that the settings ask for.
func (w *trlWriter) kind(name, id string) rowKind {
	columns := map[string][]string{"arguments": {"arguments"}, "value": {"arguments", "tools"}}
	return rowKind{as: w.file, name: name, id: id, json: columns[w.json]}
}

// text is JSON as the settings want it: as what it says, or as a text.
func (w *trlWriter) text(text string, value bool) jsonText {
	if w.file == "jsonl" && !value {
		return jsonText(quoted(text))
	}
	return jsonText(text)
}

func openTRL[Row any](path, name string, prompted bool, options Options, row func(*trlWriter, *episode.Episode) (Row, error)) (target, error) {
	w := newTRLWriter(prompted, options)
	return openRowSink(path, w.kind(name, "id"), options, w.notes, func(ep *episode.Episode) (Row, error) { return row(w, ep) })
}

func (w *trlWriter) row(ep *episode.Episode) (*trlRow[string], error) {
	return newTRLRow(w, ep, trlText)
}

func (w *trlWriter) picturedRow(ep *episode.Episode) (*trlPictured, error) {
	row, err := newTRLRow(w, ep, trlParts)
	if err != nil {
		return nil, err
	}
	return &trlPictured{*row, rowImages(ep.Messages)}, nil
}

func newTRLRow[Content any](w *trlWriter, ep *episode.Episode, say sayTRL[Content]) (*trlRow[Content], error) {
	if err := conversation(ep); err != nil {
		return nil, err
	}
	messages, err := trlMessages(w, ep.Messages, say)
	if err != nil {
		return nil, err
	}
	w.note(ep)
	return &trlRow[Content]{ep.ID, messages, w.tools(ep.Tools), ep.Reward}, nil
}

func (w *trlWriter) pair(ep *episode.Episode) (*trlPair[string], error) {
	return newTRLPair(w, ep, trlText)
}

func (w *trlWriter) picturedPair(ep *episode.Episode) (*trlPicturedPair, error) {
	row, err := newTRLPair(w, ep, trlParts)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(ep.Messages[len(row.Prompt):], pictures) {
		return nil, &Refusal{refuseAnswered}
	}
	return &trlPicturedPair{*row, rowImages(ep.Messages)}, nil
}

func newTRLPair[Content any](w *trlWriter, ep *episode.Episode, say sayTRL[Content]) (*trlPair[Content], error) {
	prompt, completion, err := promptAndRest(w, ep, say)
	if err != nil {
		return nil, err
	}
	w.note(ep)
	return &trlPair[Content]{ep.ID, prompt, completion, w.tools(ep.Tools), ep.Reward}, nil
}

// promptAndRest parts a conversation before the model's first message.
func promptAndRest[Content any](
	w *trlWriter, ep *episode.Episode, say sayTRL[Content],
) (prompt, rest []chatMessage[Content], err error) {
	if err := conversation(ep); err != nil {
		return nil, nil, err
	}
	first := opening(ep)
	if first == 0 {
		return nil, nil, &Refusal{"no message before the model's first one"}
	}
	all, err := trlMessages(w, ep.Messages, say)
	if err != nil {
		return nil, nil, err
	}
	return all[:first], all[first:], nil
}

func (w *trlWriter) note(ep *episode.Episode) {
	w.notes.remark(ep)
	from := 0
	if w.prompted {
		from = opening(ep)
	}
	w.notes.remarkPrefill(ep, from)
	if w.reasoning == "drop" && reasons(ep) {
		w.notes[noteReasoning]++
	}
	if w.json != "string" {
		w.notes.remarkResent(ep)
	}
}

// sayTRL is the content of a message that says a text.
type sayTRL[Content any] func(m *episode.Message, text string) Content

func trlText(_ *episode.Message, text string) string { return text }

func trlParts(m *episode.Message, text string) []trlPart {
	parts, said := []trlPart{}, *m
	said.Content = text
	for _, part := range said.Ordered() {
		if part.Type == episode.PartImage {
			parts = append(parts, trlPart{Type: "image"})
		} else {
			parts = append(parts, trlPart{"text", &part.Text})
		}
	}
	return parts
}

func trlMessages[Content any](w *trlWriter, messages []episode.Message, say sayTRL[Content]) ([]chatMessage[Content], error) {
	all := make([]chatMessage[Content], len(messages))
	for i := range messages {
		m, text := &messages[i], messages[i].Content
		var err error
		if w.reasoning == "think" {
			if text, err = withThinking(m); err != nil {
				return nil, err
			}
		}
		to, err := newChatMessage(m, say(m, text), w.arguments)
		if err != nil {
			return nil, err
		}
		if w.reasoning != "field" {
			to.Reasoning = nil
		}
		if m.Role != "tool" {
			to.ToolCallID, to.Name = nil, nil
		}
		all[i] = to
	}
	return all, nil
}

func (w *trlWriter) arguments(call *episode.Call) (jsonText, error) {
	values := w.json != "string"
	text, err := argumentsOf(call, values)
	return w.text(text, values), err
}

// tools are the list of schemas as one JSON text.
func (w *trlWriter) tools(tools []json.RawMessage) jsonText {
	text := []byte{'['}
	for i, tool := range tools {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, tool...)
	}
	return w.text(string(append(text, ']')), w.json == "value")
}
