package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"trajgen/pipeline/episode"
)

// writer writes requests, and learns what of them the server refuses.
type writer struct {
	cfg    Config
	server server // the habits of the endpoints' servers that concern requests
	tools  toolLists

	learntLimit atomic.Pointer[string] // name of the limit of a reply, after the server refused the other one
	unseeded    atomic.Bool            // the server refused a seed
}

// encode writes the parts of the request that all tries share.
func (w *writer) encode(req *Request, x *exchange) (err error) {
	if len(req.Messages) == 0 {
		return errors.New("the conversation has no messages (want at least one)")
	}
	x.episode, x.task, x.stream, x.idle = req.Episode, req.Task, w.cfg.Stream, w.cfg.IdleTimeout
	x.fields = make(map[string]json.RawMessage)
	set := func(name string, value any) { x.fields[name] = episode.MustJSON(value) } // Validate has encoded what is not ours
	offered, err := w.tools.write(req.Tools)
	if err != nil {
		return err
	}
	x.tools = offered.sent
	set("model", w.cfg.Name)
	w.ask(*req, offered, set)
	for _, name := range w.cfg.asksFor() {
		set(name, true)
	}
	for name, value := range w.cfg.ExtraBody {
		set(name, value)
	}
	x.messages, x.images, err = w.encodeMessages(req.Messages)
	return err
}

// encodeMessages makes a JSON list of messages without the bracket at its end, with the digests of its images in their place.
func (w *writer) encodeMessages(messages []episode.Message) (list []byte, images []inlined, err error) {
	b := encoded.Get().(*bytes.Buffer)
	defer encoded.Put(b)
	b.Reset()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // "<" as \u003c means the same and costs six times as much
	for i := range messages {
		b.WriteByte("[,"[min(i, 1)])
		from := b.Len()
		if err := enc.Encode(w.wire(&messages[i])); err != nil {
			return nil, nil, fmt.Errorf("encode messages: %w", err)
		}
		b.Truncate(b.Len() - len("\n"))
		images = append(images, imagesIn(b.Bytes(), from, &messages[i])...)
	}
	return bytes.Clone(b.Bytes()), images, nil // of its very size, as it is held while the request waits
}

var encoded = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// wireMessage is a message as it is sent. go-openai's type drops an empty content, and several servers refuse a message
// without: content is null beside tool calls and "" otherwise.
type wireMessage struct {
	Role             string          `json:"role"`
	Content          any             `json:"content"` // a text, a list of parts, or nil
	Reasoning        string          `json:"reasoning_content,omitempty"`
	RouterReasoning  string          `json:"reasoning,omitempty"`         // OpenRouter's name for it
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"` // OpenRouter's own
	ToolCalls        []wireToolCall  `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
	Name             string          `json:"name,omitempty"`
}

type wireToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // see SentArguments
}

// wire is a message as this client sends it.
func (w *writer) wire(m *episode.Message) *wireMessage {
	sent := &wireMessage{Role: m.Role, ToolCallID: m.ToolCallID, Name: m.Name}
	switch {
	case len(m.Parts) > 0:
		sent.Content = contentList(m)
	case m.Content != "" || len(m.Calls) == 0:
		sent.Content = m.Content
	}
	w.sendReasoning(sent, m)
	for _, call := range m.Calls {
		if call.Sent == "" {
			call.Sent = SentArguments(call.Arguments, nil)
		}
		sent.ToolCalls = append(sent.ToolCalls, wireToolCall{call.ID, "function", wireFunction{call.Name, cmp.Or(call.Sent, call.Arguments)}})
	}
	return sent
}
