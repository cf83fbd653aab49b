package model

import (
	"bytes"
	"encoding/json"
)

// assembler reads the bytes of a stream as they pass on their way to go-openai, whose own reader loses errors behind
// keep-alive comments and cannot tell a complete stream from a cut one. A server that answers a request for a stream
// with a plain JSON body is understood as well.
type assembler struct {
	draft draft
	done  bool // the terminator was seen

	line    []byte // not ended yet
	pending []byte // a data line that is no JSON by itself: the next one may complete it
	event   string
	plain   []byte // the body, once its first byte showed that it is not a stream
	started bool
}

// Write never fails: what is wrong with the reply shows when it is asked for.
func (a *assembler) Write(p []byte) (int, error) {
	n := len(p)
	if !a.started {
		p = bytes.TrimLeft(p, " \t\r\n")
		if len(p) == 0 {
			return n, nil
		}
		a.started = true
		if p[0] == '{' || p[0] == '[' || p[0] == '<' {
			a.plain = []byte{}
		}
	}
	if a.plain != nil {
		a.plain = append(a.plain, p...)
		return n, nil
	}
	for {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		if !ended {
			a.line = append(a.line, p...)
			return n, nil
		}
		if len(a.line) > 0 {
			line = append(a.line, line...)
			a.line = a.line[:0]
		}
		a.take(bytes.TrimRight(line, "\r"))
		p = rest
	}
}

// take reads one line.
func (a *assembler) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "": // a comment keeps the connection alive; an empty line ends an event
		if len(line) == 0 {
			a.flush()
			a.event = ""
		}
	case "event":
		a.event = string(value)
	case "data":
		switch {
		case string(value) == "[DONE]":
			a.flush()
			a.done = true
		case len(value) == 0 || a.done:
		case len(a.pending) == 0 && json.Valid(value):
			a.consume(value)
		default:
			a.pending = append(append(a.pending, value...), '\n')
			if json.Valid(a.pending) {
				a.consume(a.pending)
				a.pending = a.pending[:0]
			}
		}
	}
}

func (a *assembler) consume(data []byte) {
	if a.event == "error" && a.draft.err == nil {
		a.draft.fail(data)
		return
	}
	a.draft.add(data)
}

// flush gives up on data that never became JSON.
func (a *assembler) flush() {
	if len(a.pending) > 0 && a.draft.err == nil {
		a.draft.err = &refusal{class: ClassMalformed, message: "the stream carries data that is not JSON: " + excerpt(a.pending)}
	}
	a.pending = a.pending[:0]
}

// errCut is a stream without its end, also one that ended in the middle of a line.
var errCut = &refusal{class: ClassConnection, message: "the stream ended before the reply did"}

// reply ends the stream.
func (a *assembler) reply(turn int) (*Reply, error) {
	if a.plain != nil {
		return decodePlain(a.plain, turn)
	}
	if len(a.line) > 0 { // the last line may lack its end
		a.take(bytes.TrimRight(a.line, "\r"))
		a.line = a.line[:0]
	}
	switch {
	case a.draft.err != nil:
	case a.draft.finish == "":
		return nil, errCut
	default:
		a.flush()
	}
	return a.draft.reply(turn)
}

// decodePlain reads a reply that came in one piece.
func decodePlain(body []byte, turn int) (*Reply, error) {
	d := new(draft)
	d.add(body)
	return d.reply(turn)
}
