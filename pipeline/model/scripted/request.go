package scripted

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Seed                *int64 `json:"seed"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	N                   *int   `json:"n"`

	tools map[string]bool // names; empty when the choice is "none"
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// limit is the number of tokens that the reply may have, 0 for any.
func (r *request) limit() int { return cmp.Or(r.MaxCompletionTokens, r.MaxTokens) }

// parallel tells whether a turn may have several calls.
func (r *request) parallel() bool { return r.Parallel == nil || *r.Parallel }

// parse decodes and checks a body as strictly as OpenAI does, so that a harness that breaks the protocol finds out
// here and not against an endpoint that is paid for. The complaint is empty when all is well.
func parse(body []byte) (r *request, complaint string) {
	r = new(request)
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Sprintf("We could not parse the JSON body of your request: %v", err)
	}
	if len(r.Messages) == 0 {
		return nil, "[] is too short - 'messages'"
	}
	if r.N != nil && *r.N != 1 {
		return nil, fmt.Sprintf("n is %d; this server gives one choice", *r.N)
	}
	if r.MaxTokens < 0 || r.MaxCompletionTokens < 0 {
		return nil, "max_tokens is below 1"
	}
	r.tools = make(map[string]bool, len(r.Tools))
	for i, raw := range r.Tools {
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil || tool.Type != "function" || tool.Function.Name == "" {
			return nil, fmt.Sprintf("Invalid 'tools[%d]': want {\"type\":\"function\",\"function\":{\"name\":...}}", i)
		}
		r.tools[tool.Function.Name] = true
	}
	if string(r.ToolChoice) == `"none"` {
		clear(r.tools)
	}
	return r, r.checkOrder()
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

func hasContent(raw json.RawMessage) bool { return len(raw) > 0 && (raw[0] == '"' || raw[0] == '[') }

// text is a content's text; of a list of parts the text parts.
func (m *message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal(m.Content, &parts)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

func (r *request) firstUser() string {
	for i := range r.Messages {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].text()
		}
	}
	return ""
}

func (r *request) system() string {
	if m := &r.Messages[0]; m.Role == "system" || m.Role == "developer" {
		return m.text()
	}
	return ""
}

// usage counts about four bytes to a token. cached is what the last request of this episode held already.
func (r *request) usage() (prompt, cached int) {
	size := 0
	for _, tool := range r.Tools {
		size += len(tool)
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == "assistant" {
			cached = size
		}
		size += len(m.Content) + len(m.ToolCallID) + 12
		for _, call := range m.ToolCalls {
			size += len(call.ID) + len(call.Function.Name) + len(call.Function.Arguments) + 12
		}
	}
	return tokens(size), tokens(cached)
}

// tokens is the number of tokens in so many bytes.
func tokens(bytes int) int { return (bytes + 3) / 4 }
