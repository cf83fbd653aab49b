package export

import (
	"encoding/json"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// sharegptPreamble tells a model how tools are called. The list of tools stands between its halves.
const (
	sharegptPreamble = "You can call tools. Their signatures stand as a JSON list between <tools> tags. Call a tool when it helps with the request, " +
		"never invent the value of an argument, and read what came of a call between <tool_response> tags in the next message. These are the tools:\n<tools>\n"
	sharegptCalling = "\n</tools>\nA call is a JSON object of this schema: " +
		`{"title": "FunctionCall", "type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}, "required": ["name", "arguments"]}` +
		"\nPut each call between <tool_call> tags, such as:\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"ARGUMENT\": \"VALUE\"}}\n</tool_call>"
)

// The envelope of the turns.
const (
	openThink, closeThink       = "<think>\n", "</think>"
	openCall, closeCall         = "<tool_call>\n", "\n</tool_call>"
	openResponse, closeResponse = "<tool_response>\n", "\n</tool_response>"
)

// envelope are the tags that must not stand in what is put between them as plain text.
var envelope = []string{"<think>", "</think>", "<tool_call>", "</tool_call>"}

const (
	refuseTag      = "a tag of the envelope in the model's own words"
	refuseToolName = "a tool that is not a function with a name"
	refuseLate     = "a system message behind the first one"
)

type sharegptTool struct {
	function
	Required json.RawMessage `json:"required"` // always null: it is a key of the parameters, and stands there
}

type sharegptCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object, or the text that is none
}

type sharegptResponse struct {
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"` // an object or a list, or a text
}

// turns are an episode's conversation. Every error is a *Refusal.
func (w sharegptWay) turns(ep *episode.Episode) ([]ShareGPTTurn, error) {
	if err := conversation(ep); err != nil {
		return nil, err
	}
	system, err := w.system(ep)
	if err != nil {
		return nil, err
	}
	turns := []ShareGPTTurn{{"system", system}}
	messages := ep.Messages
	if messages[0].Role == "system" {
		messages = messages[1:]
	}
	for len(messages) > 0 {
		m := &messages[0]
		messages = messages[1:]
		switch m.Role {
		case "system":
			return nil, &Refusal{refuseLate}
		case "user":
			said, err := w.heard(m)
			if err != nil {
				return nil, err
			}
			turns = append(turns, ShareGPTTurn{"human", said})
		case "assistant":
			value, err := w.said(m)
			if err != nil {
				return nil, err
			}
			turns = append(turns, ShareGPTTurn{"gpt", value})
			n := results(messages)
			if n > 0 {
				turns = append(turns, ShareGPTTurn{"tool", w.results(m.Calls, messages[:n])})
			}
			messages = messages[n:]
		}
	}
	return turns, nil
}

// results counts the results that messages begin with.
func results(messages []episode.Message) int {
	for i := range messages {
		if messages[i].Role != "tool" {
			return i
		}
	}
	return len(messages)
}

func (w sharegptWay) system(ep *episode.Episode) (string, error) {
	tools := make([]sharegptTool, 0, len(ep.Tools))
	for _, schema := range ep.Tools {
		f, err := functionOf(schema)
		if err != nil || f.Name == "" {
			return "", &Refusal{refuseToolName}
		}
		tools = append(tools, sharegptTool{function: f})
	}
	list, err := w.enveloped(tools)
	if err != nil {
		return "", err
	}
	text := sharegptPreamble + list + sharegptCalling
	if system := systemOf(ep); w.own && system != "" {
		return system + "\n\n" + text, w.unmarked(system)
	}
	return text, nil
}

// heard is what the user says.
func (w sharegptWay) heard(m *episode.Message) (string, error) {
	if w.inline {
		return withMarks(m)
	}
	return m.Content, nil
}

func (w sharegptWay) unmarked(texts ...string) error {
	if w.inline {
		return unmarked(texts...)
	}
	return nil
}

func (w sharegptWay) said(m *episode.Message) (string, error) {
	for _, tag := range envelope {
		if strings.Contains(m.Reasoning, tag) || strings.Contains(m.Content, tag) {
			return "", &Refusal{refuseTag}
		}
	}
	if err := w.unmarked(m.Reasoning, m.Content); err != nil {
		return "", err
	}
	var value strings.Builder
	value.WriteString(openThink)
	if m.Reasoning != "" {
		value.WriteString(m.Reasoning + "\n")
	}
	value.WriteString(closeThink)
	if m.Content != "" || len(m.Calls) > 0 {
		value.WriteString("\n" + m.Content)
	}
	for i, call := range m.Calls {
		if i > 0 || m.Content != "" {
			value.WriteString("\n")
		}
		arguments := json.RawMessage(call.Arguments)
		if !isObject(call.Arguments) {
			arguments = quoted(call.Arguments)
		}
		text, err := w.enveloped(sharegptCall{call.Name, arguments})
		if err != nil {
			return "", err
		}
		value.WriteString(openCall + text + closeCall)
	}
	return value.String(), nil
}

// results puts the results of a turn into one.
func (w sharegptWay) results(calls []episode.Call, results []episode.Message) string {
	var blocks []string
	for i, m := range byCall(calls, results) {
		content := json.RawMessage(m.Content)
		if !isContainer(m.Content) {
			content = quoted(m.Content)
		}
		text, err := w.enveloped(sharegptResponse{m.ToolCallID, calls[i].Name, content})
		if err != nil { // of texts, and of JSON that was found valid
			panic(err)
		}
		blocks = append(blocks, openResponse+text+closeResponse)
	}
	return strings.Join(blocks, "\n")
}

// byCall are the results of a turn in the order of its calls: a reader pairs them by that alone.
func byCall(calls []episode.Call, results []episode.Message) []episode.Message {
	place := make(map[string]int, len(calls))
	for i, call := range calls {
		place[call.ID] = i
	}
	ordered := slices.Clone(results)
	slices.SortStableFunc(ordered, func(a, b episode.Message) int { return place[a.ToolCallID] - place[b.ToolCallID] })
	return ordered
}

// enveloped is the JSON of a value that may stand between tags. In JSON, < stands in texts alone, where it can be written
// otherwise; it is left as it is where no tag is in sight, and no mark of an image in a row that may have some.
func (w sharegptWay) enveloped(value any) (string, error) {
	encoded, err := encode(value)
	if err != nil {
		return "", &Refusal{"JSON that cannot be written again"}
	}
	text := string(encoded)
	for _, tag := range []string{"<think", "</think", "<tool", "</tool"} {
		if strings.Contains(text, tag) {
			return strings.ReplaceAll(text, "<", `\u003c`), nil
		}
	}
	if w.unmarked(text) != nil {
		text = strings.ReplaceAll(text, "<", `\u003c`)
	}
	return text, nil
}

// isContainer says whether a text is a JSON object or list, as results are that stand unquoted.
func isContainer(text string) bool {
	return isObject(text) || strings.HasPrefix(text, "[") && !deep(text) && json.Valid([]byte(text))
}
