package scripted

import (
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// brokenOff is an error that comes with status 200.
var brokenOff = &refusal{Kind: "server_error", Message: "scripted fault: error"}

// send sends the reply. A faulty one ends in its middle.
func (s *Server) send(w http.ResponseWriter, r *http.Request, out *reply, fault string) {
	if out.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		s.stream(w, r, out, fault)
		return
	}
	switch document := out.document(); fault {
	case "stall", "cut":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, document[:len(document)/2])
		breakOff(w, r, fault)
	case "error":
		writeText(w, http.StatusOK, brokenOff.body())
	default:
		writeText(w, http.StatusOK, document)
	}
}

// event is a part of a streamed reply, with the text whose tokens it carries: what the client sees of them and the
// tags before it.
type event struct {
	delta outward
	text  string
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, out *reply, fault string) {
	events := out.events(s.cfg.pieceSize())
	head := out.completion
	head.Object = "chat.completion.chunk"
	from := 0
	for i, e := range events {
		if i >= len(events)/2 && breakOff(w, r, fault) {
			return
		}
		chunk := head
		c := out.choice(&e.delta, e.text, from)
		tokens := countTokens(e.text)
		from += tokens
		if i == 0 {
			chunk.Prompt = out.prompt
		}
		if i == len(events)-1 {
			c.Finish, c.Stop = &out.finish, out.stopped
			if !out.withUsage {
				chunk.Metadata = out.metadata
			}
		}
		chunk.Choices = []choice{c}
		if _, err := io.WriteString(w, "data: "+literal(chunk)+"\n\n"); err != nil {
			return
		}
		if pace := s.cfg.generation(tokens); pace > 0 {
			http.NewResponseController(w).Flush()
			if !pause(r.Context(), pace) {
				return
			}
		}
	}
	if out.withUsage {
		last := head
		last.Choices, last.Usage, last.Metadata = []choice{}, &out.usage, out.metadata
		io.WriteString(w, "data: "+literal(last)+"\n\n")
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// breakOff ends a reply in its middle, if the fault is one that does.
func breakOff(w http.ResponseWriter, r *http.Request, fault string) bool {
	switch fault {
	case "stall":
		hang(w, r)
	case "error": // the shape that go-openai does not recognise, behind a keep-alive comment
		io.WriteString(w, ": ping\n\ndata: "+strings.Replace(brokenOff.body(), `{"error"`, `{ "error"`, 1)+"\n\n")
	}
	return fault == "cut" || fault == "error"
}

// pieceSize is how much of a text one event carries: little when they are meant to be slow, but no more than twenty
// events come in a second.
func (c *Config) pieceSize() int {
	if c.Speed > 0 {
		return max(4, int(c.Speed/20))
	}
	return 64
}

// events takes the reply apart as servers do; the last, empty one is for the finish reason.
func (r *reply) events(size int) []event {
	events := []event{{delta: outward{Role: "assistant", Content: ""}}}
	tags := ""
	add := func(text string, delta outward) {
		events = append(events, event{delta, tags + text})
		tags = ""
	}
	for _, s := range r.segments {
		switch s.part {
		case unseen:
			tags += s.text
			continue
		case namePart:
			c := r.turn.calls[s.call]
			c.args = ""
			add(s.text, outward{ToolCalls: []toolCall{c.wire(&s.call)}})
			continue
		}
		for _, piece := range pieces(s.text, size) {
			var delta outward
			switch s.part {
			case reasoningPart:
				delta.thought = r.thought(piece)
			case contentPart:
				delta.Content = piece
			case argsPart:
				arguments := toolCall{Index: &s.call}
				arguments.Function.Arguments = piece
				delta.ToolCalls = []toolCall{arguments}
			}
			add(piece, delta)
		}
	}
	return append(events, event{text: tags})
}

// pieces cuts a text after so many tokens, never within a character.
func pieces(s string, size int) []string {
	var parts []string
	for len(s) > 0 {
		piece := start(s, size)
		if piece == "" {
			_, n := utf8.DecodeRuneInString(s)
			piece = s[:n]
		}
		parts = append(parts, piece)
		s = s[len(piece):]
	}
	return parts
}
