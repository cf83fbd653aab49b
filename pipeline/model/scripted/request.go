package scripted

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// request is the body of a chat completion as far as the server looks at it.
type request struct {
	Model         string            `json:"model"`
	Messages      []message         `json:"messages"`
	Tools         []json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage   `json:"tool_choice"`
	Parallel      *bool             `json:"parallel_tool_calls"`
	Stream        bool              `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Seed                *int64          `json:"seed"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	Stop                json.RawMessage `json:"stop"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	ResponseFormat      struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Logprobs       bool `json:"logprobs"`
	TopLogprobs    *int `json:"top_logprobs"`
	ReturnTokenIDs bool `json:"return_token_ids"` // of vLLM

	offered []function      // Tools
	tools   map[string]bool // their names; empty when the choice is "none"
	choice  demand
}

type message struct {
	Role           string     `json:"role"`
	Content        content    `json:"content"`
	Reasoning      content    `json:"reasoning_content"`
	OtherReasoning content    `json:"reasoning"`
	ToolCalls      []toolCall `json:"tool_calls"`
	ToolCallID     string     `json:"tool_call_id"`
}

// content is a text, or the texts of a list, a line each, and its images.
type content struct {
	text   string
	images []seen
	given  bool
}

// UnmarshalJSON takes what is neither for no content.
func (c *content) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		c.given = true
		return json.Unmarshal(data, &c.text)
	case '[':
		c.given = true
		var parts []struct {
			Text  *string `json:"text"`
			Image struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		json.Unmarshal(data, &parts) // a part whose text is none has none
		var texts []string
		for _, part := range parts {
			if part.Text != nil {
				texts = append(texts, *part.Text)
			}
			if part.Image.URL != "" {
				c.images = append(c.images, look(part.Image.URL))
			}
		}
		c.text = strings.Join(texts, "\n")
	}
	return nil
}

// toolCall is a call in a request, in a reply, or a part of one in a stream.
type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// function is a tool that is offered, or that must be called.
type function struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// limit is the number of tokens that the reply may have, 0 for any.
func (r *request) limit() int {
	if limit := cmp.Or(r.MaxCompletionTokens, r.MaxTokens); limit != nil {
		return *limit
	}
	return 0
}

// parse decodes and checks a body as strictly as OpenAI does, so that a harness that breaks the protocol finds out
// here and not against an endpoint that is paid for.
func parse(body []byte) (*request, *refusal) {
	r := &request{tools: map[string]bool{}}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, notJSON(err)
	}
	if complaint := cmp.Or(r.check(), r.readTools(), r.readChoice(), r.checkOrder()); complaint != "" {
		return nil, invalid("", complaint)
	}
	return r, nil
}

func (r *request) check() string {
	switch format := r.ResponseFormat.Type; {
	case len(r.Messages) == 0:
		return "[] is too short - 'messages'"
	case r.N != nil && *r.N != 1:
		return fmt.Sprintf("n is %d; this server gives one choice", *r.N)
	case r.MaxCompletionTokens != nil && *r.MaxCompletionTokens < 1, r.MaxTokens != nil && *r.MaxTokens < 1:
		return "max_tokens is below 1"
	case r.TopLogprobs != nil && (!r.Logprobs || *r.TopLogprobs < 0 || *r.TopLogprobs > maxTop):
		return fmt.Sprintf("'top_logprobs' is %d (want 0 to %d, and 'logprobs' true)", *r.TopLogprobs, maxTop)
	case format != "" && format != "text":
		return fmt.Sprintf("'response_format' of type %q: a script has no other than text", format)
	case !absent(r.Stop):
		return "'stop': a script ends where it does"
	}
	return ""
}

func (r *request) readTools() string {
	for i, raw := range r.Tools {
		var f function
		if json.Unmarshal(raw, &f) != nil || f.Type != "function" || f.Function.Name == "" {
			return fmt.Sprintf("Invalid 'tools[%d]': want {\"type\":\"function\",\"function\":{\"name\":...}}", i)
		}
		r.offered = append(r.offered, f)
		r.tools[f.Function.Name] = true
	}
	return ""
}

// absent reports whether a value is missing or null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

var roles = []string{"system", "developer", "user", "assistant", "tool"}

// checkOrder holds every tool call to one answer, right behind it.
func (r *request) checkOrder() string {
	const unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
		"'tool_call_id'; %d have none"
	open := map[string]bool{}
	for i, m := range r.Messages {
		switch {
		case m.Role != "tool" && len(open) > 0:
			return fmt.Sprintf(unanswered, len(open))
		case !slices.Contains(roles, m.Role):
			return fmt.Sprintf("Invalid value %q for 'messages[%d].role'", m.Role, i)
		case m.Role != "user" && len(m.Content.images) > 0:
			return fmt.Sprintf("Invalid 'messages[%d].content': image_url is only allowed in messages with role 'user'", i)
		case slices.ContainsFunc(m.Content.images, func(s seen) bool { return s.digest == "" }):
			return fmt.Sprintf("Invalid 'messages[%d].content': want a data URL with a PNG, JPEG, GIF or WebP", i)
		case !m.Content.given && (m.Role != "assistant" || len(m.ToolCalls) == 0):
			return fmt.Sprintf("Invalid value for 'messages[%d].content': expected a string, got null", i)
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("Invalid 'messages[%d]': tool_call_id %q answers no call of the message before it", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
		case m.Role == "assistant":
			for _, call := range m.ToolCalls {
				if call.ID == "" || call.Type != "function" || open[call.ID] {
					return fmt.Sprintf("Invalid 'messages[%d].tool_calls': want distinct ids and type \"function\"", i)
				}
				open[call.ID] = true
			}
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf(unanswered, len(open))
	}
	return ""
}

func (r *request) firstUser() string {
	for _, m := range r.Messages {
		if m.Role == "user" {
			return m.Content.text
		}
	}
	return ""
}

func (r *request) system() string {
	if m := r.Messages[0]; m.Role == "system" || m.Role == "developer" {
		return m.Content.text
	}
	return ""
}
