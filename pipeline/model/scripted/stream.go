package scripted

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// event is a part of a streamed reply, with the text whose tokens it carries: what the client sees of them and the
// tags before it.
type event struct {
	delta outward
	text  string
	last  bool
}

// stream answers in events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, out *reply, fault string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	events := out.events(s.pieceSize())
	var b bytes.Buffer
	from := 0
	for i, e := range events {
		if i >= len(events)/2 && s.breakOff(w, r, fault) {
			return
		}
		chunk := out.envelope("chat.completion.chunk")
		choice := wireChoice{Delta: &e.delta}
		if e.last {
			choice.Finish, choice.Stop = &out.finish, out.stopped
		}
		if e.text != "" && (out.tokens || out.logprob) {
			ids := encode(nil, e.text)
			out.details(&choice, ids, from)
			from += len(ids)
		}
		if e.last && !out.withUsage {
			chunk.Metadata = out.metadata()
		}
		chunk.Choices = []wireChoice{choice}
		document := literal(chunk)
		if i == 0 {
			document = out.withPrompt(document)
		}
		b.Reset()
		b.WriteString("data: " + document + "\n\n")
		if _, err := w.Write(b.Bytes()); err != nil {
			return
		}
		if pace := s.pace(e.text); pace > 0 {
			http.NewResponseController(w).Flush()
			if !s.pause(r.Context(), pace) {
				return
			}
		}
	}
	if out.withUsage {
		last := out.envelope("chat.completion.chunk")
		last.Choices, last.Usage, last.Metadata = []wireChoice{}, &out.usage, out.metadata()
		io.WriteString(w, "data: "+literal(last)+"\n\n")
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// brokenOff is an error that comes with status 200.
var brokenOff = &refusal{kind: "server_error", message: "scripted fault: error"}

// breakOff ends a stream in its middle, if the fault is one that does.
func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, fault string) bool {
	switch fault {
	case "stall":
		s.hang(w, r)
	case "error": // the shape that go-openai does not recognise, behind a keep-alive comment
		io.WriteString(w, ": ping\n\ndata: "+strings.Replace(literal(brokenOff.body()), `{"error"`, `{ "error"`, 1)+"\n\n")
	}
	return fault == "cut" || fault == "error"
}

// pace is the time that an event of so much text takes.
func (s *Server) pace(text string) time.Duration {
	if s.cfg.TokenDelay > 0 {
		return s.cfg.TokenDelay
	}
	return s.generation(countTokens(text))
}

// pieceSize is how much of a text one event carries: little when they are meant to be slow, but no more than twenty
// events come in a second.
func (s *Server) pieceSize() int {
	switch {
	case s.cfg.TokenDelay > 0:
		return 4
	case s.cfg.Speed > 0:
		return max(4, int(s.cfg.Speed/20))
	}
	return 64
}

// events takes the reply apart as servers do; the last, empty one carries the finish reason.
func (r *reply) events(size int) []event {
	empty := ""
	events := []event{{delta: outward{Role: "assistant", Content: &empty}}}
	tags := ""
	add := func(text string, delta outward) {
		events = append(events, event{delta: delta, text: tags + text})
		tags = ""
	}
	for _, part := range r.segments {
		switch part.part {
		case unseen:
			tags += part.text
		case reasoningPart:
			for _, piece := range pieces(part.text, size) {
				add(piece, outward{thought: r.thought(piece)})
			}
		case contentPart:
			for _, piece := range pieces(part.text, size) {
				add(piece, outward{Content: &piece})
			}
		case namePart:
			head := r.turn.calls[part.call]
			head.args = ""
			add(part.text, outward{ToolCalls: []outwardCall{head.outward(&part.call)}})
		case argsPart:
			for _, piece := range pieces(part.text, size) {
				delta := outwardCall{Index: &part.call}
				delta.Function.Arguments = piece
				add(piece, outward{ToolCalls: []outwardCall{delta}})
			}
		}
	}
	return append(events, event{text: tags, last: true})
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
