package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"trajgen/pipeline/episode"
)

// encode writes what is the same for every try.
func (c *Client) encode(req Request) (exchange, error) {
	if len(req.Messages) == 0 {
		return exchange{}, errors.New("the conversation has no messages (want at least one)")
	}
	x := exchange{
		episode: req.Episode, task: req.Task, stream: c.cfg.Stream, idle: c.cfg.IdleTimeout,
		fields: make(map[string]json.RawMessage),
	}
	set := func(name string, value any) error {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode request field %s: %w", name, err)
		}
		x.fields[name] = raw
		return nil
	}
	set("model", c.cfg.Name)
	if c.cfg.Temperature != nil { // here and not in the library's request, which leaves a 0 out
		set("temperature", *c.cfg.Temperature)
	}
	if c.cfg.TopP != nil {
		set("top_p", *c.cfg.TopP)
	}
	for name, value := range c.cfg.ExtraBody {
		if err := set(name, value); err != nil {
			return exchange{}, err
		}
	}
	var err error
	if x.messages, err = c.encodeMessages(req.Messages); err != nil {
		return exchange{}, err
	}
	if len(req.Tools) > 0 {
		for i, tool := range req.Tools {
			if !json.Valid(tool) {
				return exchange{}, fmt.Errorf("tool schema %d is not JSON", i)
			}
		}
		x.tools = append(append(json.RawMessage{'['}, bytes.Join(asBytes(req.Tools), []byte{','})...), ']')
	}
	return x, nil
}

func asBytes(raw []json.RawMessage) [][]byte {
	out := make([][]byte, len(raw))
	for i := range raw {
		out[i] = raw[i]
	}
	return out
}

// wireMessage is a message as it is sent. The library's own type drops an empty content, which several servers
// refuse: it is null beside tool calls and "" everywhere else.
type wireMessage struct {
	Role       string         `json:"role"`
	Content    *string        `json:"content"`
	Reasoning  string         `json:"reasoning_content,omitempty"`
	ToolCalls  []wireToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Name       string         `json:"name,omitempty"`
}

type wireToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote it, valid or not
}

func (c *Client) encodeMessages(messages []episode.Message) (json.RawMessage, error) {
	wire := make([]wireMessage, len(messages))
	for i, m := range messages {
		w := wireMessage{Role: m.Role, ToolCallID: m.ToolCallID, Name: m.Name}
		if m.Content != "" || len(m.Calls) == 0 {
			w.Content = &messages[i].Content
		}
		if c.cfg.SendReasoning {
			w.Reasoning = m.Reasoning
		}
		for _, call := range m.Calls {
			w.ToolCalls = append(w.ToolCalls, wireToolCall{call.ID, "function", wireFunction{call.Name, call.Arguments}})
		}
		wire[i] = w
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "<" as \u003c means the same and costs six times as much
	if err := enc.Encode(wire); err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
