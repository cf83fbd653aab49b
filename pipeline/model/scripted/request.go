package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// request is the body of a chat completion as far as the server looks at it.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Tools         []rawJSON `json:"tools"`
	ToolChoice    rawJSON   `json:"tool_choice"`
	Parallel      *bool     `json:"parallel_tool_calls"`
	Stream        bool      `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Seed                *int64  `json:"seed"`
	MaxTokens           *int    `json:"max_tokens"`
	MaxCompletionTokens *int    `json:"max_completion_tokens"`
	N                   *int    `json:"n"`
	Stop                rawJSON `json:"stop"`
	ReasoningEffort     string  `json:"reasoning_effort"`
	ResponseFormat      *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Logprobs       bool `json:"logprobs"`
	TopLogprobs    *int `json:"top_logprobs"`
	ReturnTokenIDs bool `json:"return_token_ids"` // of vLLM

	size   int             // of the body
	tools  map[string]bool // names; empty when the choice is "none"
	first  string          // the first of them
	choice demand
	stops  []string
}

type message struct {
	Role           string     `json:"role"`
	Content        rawJSON    `json:"content"`
	Reasoning      rawJSON    `json:"reasoning_content"`
	OtherReasoning rawJSON    `json:"reasoning"`
	ToolCalls      []toolCall `json:"tool_calls"`
	ToolCallID     string     `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// rawJSON is a JSON value as it was sent.
type rawJSON string

// UnmarshalJSON keeps the value.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = rawJSON(data)
	return nil
}

func (r rawJSON) null() bool { return r == "" || r == "null" }

// text is the text of a content; of a list of parts the text parts.
func (r rawJSON) text() string {
	if r.null() {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(r), &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal([]byte(r), &parts)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// limit is the number of tokens that the reply may have, 0 for any.
func (r *request) limit() int {
	for _, limit := range []*int{r.MaxCompletionTokens, r.MaxTokens} {
		if limit != nil {
			return *limit
		}
	}
	return 0
}

// parallel tells whether a turn may have several calls.
func (r *request) parallel() bool { return r.Parallel == nil || *r.Parallel }

// parse decodes and checks a body as strictly as OpenAI does, so that a harness that breaks the protocol finds out
// here and not against an endpoint that is paid for. The complaint is empty when all is well.
func parse(body []byte) (r *request, complaint string) {
	r = &request{size: len(body)}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Sprintf("We could not parse the JSON body of your request: %v", err)
	}
	if len(r.Messages) == 0 {
		return nil, "[] is too short - 'messages'"
	}
	if r.N != nil && *r.N != 1 {
		return nil, fmt.Sprintf("n is %d; this server gives one choice", *r.N)
	}
	for _, limit := range []*int{r.MaxCompletionTokens, r.MaxTokens} {
		if limit != nil && *limit < 1 {
			return nil, "max_tokens is below 1"
		}
	}
	if r.TopLogprobs != nil && (!r.Logprobs || *r.TopLogprobs < 0 || *r.TopLogprobs > maxTop) {
		return nil, fmt.Sprintf("'top_logprobs' is %d (want 0 to %d, and 'logprobs' true)", *r.TopLogprobs, maxTop)
	}
	if f := r.ResponseFormat; f != nil && f.Type != "text" && f.Type != "json_object" {
		return nil, fmt.Sprintf("'response_format' of type %q: a script follows no schema (have text, json_object)", f.Type)
	}
	if complaint := r.readStops(); complaint != "" {
		return nil, complaint
	}
	if complaint := r.readTools(); complaint != "" {
		return nil, complaint
	}
	return r, r.checkOrder()
}

func (r *request) readStops() string {
	if r.Stop.null() {
		return ""
	}
	var one string
	if json.Unmarshal([]byte(r.Stop), &one) == nil {
		r.stops = []string{one}
	} else if json.Unmarshal([]byte(r.Stop), &r.stops) != nil || len(r.stops) > 4 {
		return "Invalid 'stop': want a text or up to four of them"
	}
	if slices.Contains(r.stops, "") {
		return "Invalid 'stop': want no empty text"
	}
	return ""
}

func (r *request) readTools() string {
	r.tools = make(map[string]bool, len(r.Tools))
	for i, raw := range r.Tools {
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := json.Unmarshal([]byte(raw), &tool); err != nil || tool.Type != "function" || tool.Function.Name == "" {
			return fmt.Sprintf("Invalid 'tools[%d]': want {\"type\":\"function\",\"function\":{\"name\":...}}", i)
		}
		if i == 0 {
			r.first = tool.Function.Name
		}
		r.tools[tool.Function.Name] = true
	}
	return r.readChoice()
}

// checkOrder holds every tool call to one answer, right behind it.
func (r *request) checkOrder() string {
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return unanswered(open)
		}
		switch m.Role {
		case "system", "developer", "user":
			if !hasContent(m.Content) {
				return fmt.Sprintf("Invalid value for 'messages[%d].content': expected a string, got null", i)
			}
		case "assistant":
			if !hasContent(m.Content) && len(m.ToolCalls) == 0 {
				return fmt.Sprintf("Invalid value for 'messages[%d].content': expected a string, got null", i)
			}
			for _, call := range m.ToolCalls {
				if call.ID == "" || call.Type != "function" || open[call.ID] {
					return fmt.Sprintf("Invalid 'messages[%d].tool_calls': want distinct ids and type \"function\"", i)
				}
				open[call.ID] = true
			}
		case "tool":
			if !hasContent(m.Content) {
				return fmt.Sprintf("Invalid value for 'messages[%d].content': expected a string, got null", i)
			}
			if !open[m.ToolCallID] {
				return fmt.Sprintf("Invalid 'messages[%d]': tool_call_id %q answers no call of the message before it", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		default:
			return fmt.Sprintf("Invalid value %q for 'messages[%d].role'", m.Role, i)
		}
	}
	if len(open) > 0 {
		return unanswered(open)
	}
	return ""
}

func unanswered(open map[string]bool) string {
	return fmt.Sprintf("An assistant message with 'tool_calls' must be followed by tool messages responding to each "+
		"'tool_call_id'; %d have none", len(open))
}

func hasContent(raw rawJSON) bool { return len(raw) > 0 && (raw[0] == '"' || raw[0] == '[') }

func (r *request) firstUser() string {
	for i := range r.Messages {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Content.text()
		}
	}
	return ""
}

func (r *request) system() string {
	if m := &r.Messages[0]; m.Role == "system" || m.Role == "developer" {
		return m.Content.text()
	}
	return ""
}
