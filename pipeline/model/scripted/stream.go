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
func (r *reply) send(w http.ResponseWriter, asked *http.Request, fault string) {
	if r.req.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		r.stream(w, asked, fault)
		return
	}
	switch document := r.document(); fault {
	case "stall", "cut":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, document[:len(document)/2])
		breakOff(w, asked, fault)
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

func (r *reply) stream(w http.ResponseWriter, asked *http.Request, fault string) {
	send := func(chunk completion) { io.WriteString(w, "data: "+literal(chunk)+"\n\n") }
	head := r.completion
	head.Object = "chat.completion.chunk"
	events := r.events()
	from := 0
	for i, e := range events {
		if i >= len(events)/2 && breakOff(w, asked, fault) {
			return
		}
		chunk, c := head, r.choice(e.text, from)
		c.Delta = &e.delta
		if i == 0 {
			chunk.Prompt = r.prompt
		}
		if i == len(events)-1 {
			c.Finish = &r.finish
		}
		chunk.Choices = []choice{c}
		send(chunk)
		tokens := countTokens(e.text)
		from += tokens
		if pace := r.cfg.generation(tokens); pace > 0 {
			http.NewResponseController(w).Flush()
			if !pause(asked.Context(), pace) {
				return
			}
		}
	}
	if r.req.StreamOptions.IncludeUsage {
		head.Choices, head.Usage = []choice{}, &r.usage
		send(head)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// breakOff ends a reply in its middle, if the fault is one that does.
func breakOff(w http.ResponseWriter, asked *http.Request, fault string) bool {
	switch fault {
	case "stall": // an orderly end would make a reply of the half one
		http.NewResponseController(w).Flush()
		<-asked.Context().Done()
		panic(http.ErrAbortHandler)
	case "error": // the shape that go-openai does not recognise, behind a keep-alive comment
		io.WriteString(w, ": ping\n\ndata: "+strings.Replace(brokenOff.body(), `{"error"`, `{ "error"`, 1)+"\n\n")
	}
	return fault == "cut" || fault == "error"
}

// events takes the reply apart as servers do; the last, empty one is for the finish reason.
func (r *reply) events() []event {
	size := 64 // tokens of a text that one event carries
	if speed := r.cfg.Speed; speed > 0 {
		size = max(4, int(speed/20)) // little, but no more than twenty events come in a second
	}
	events := []event{{delta: outward{Role: "assistant", Content: ""}}}
	tags := ""
	for _, s := range r.segments {
		if s.show == nil {
			tags += s.text
			continue
		}
		parts := pieces(s.text, size)
		if s.atomic {
			parts = []string{s.text}
		}
		for _, piece := range parts {
			e := event{text: tags + piece}
			s.show(&e.delta, piece)
			events, tags = append(events, e), ""
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
