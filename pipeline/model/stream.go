package model

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// assembler parses the bytes of a stream on their way to go-openai, whose reader loses errors after keep-alive comments and
// cannot distinguish a complete stream from one that was cut. It also accepts a plain JSON body in answer to a request for a
// stream.
type assembler struct {
	draft draft
	done  bool // the terminator was seen

	line     []byte // the line so far
	returned bool   // the last line ended with a carriage return
	pending  []byte // data lines that are not valid JSON so far
	event    string
	plain    []byte // the body, once its first byte showed that it is not a stream
	started  bool
}

// Write never fails; end returns the error of a bad reply.
func (a *assembler) Write(p []byte) (int, error) {
	n := len(p)
	if !a.started {
		p = skipMark(p)
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
		end := endOfLine(p)
		if end < 0 {
			a.line = append(a.line, p...)
			return n, nil
		}
		line := p[:end]
		if len(a.line) > 0 {
			line = append(a.line, line...)
			a.line = a.line[:0]
		}
		if len(line) > 0 || p[end] == '\r' || !a.returned { // a line feed after a carriage return belongs to it
			a.take(line)
		}
		a.returned = p[end] == '\r'
		p = p[end+1:]
	}
}

// endOfLine is the index of the first line feed or carriage return, or -1.
func endOfLine(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	line := p
	if end >= 0 {
		line = p[:end]
	}
	if cr := bytes.IndexByte(line, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// skipMark skips white space and the byte-order mark, also a part of it.
func skipMark(p []byte) []byte {
	for len(p) > 0 && bytes.IndexByte([]byte(" \t\r\n\xef\xbb\xbf"), p[0]) >= 0 {
		p = p[1:]
	}
	return p
}

// take reads one line.
func (a *assembler) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "": // a comment, or an empty line, which ends an event
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

// flush reports data that never became valid JSON.
func (a *assembler) flush() {
	if len(a.pending) > 0 && a.draft.err == nil {
		a.draft.err = &refusal{class: ClassMalformed, message: "the stream carries data that is not JSON: " + excerpt(a.pending)}
	}
	a.pending = a.pending[:0]
}

// errCut is the error of a stream that ended too early.
var errCut = &refusal{class: ClassConnection, message: "the stream ended before the reply did"}

// end reads a last line without a line break, and returns the draft.
func (a *assembler) end() (*draft, error) {
	if a.plain != nil {
		d := new(draft)
		d.add(a.plain)
		return d, nil
	}
	if len(a.line) > 0 { // the last line may lack its end
		a.take(a.line)
		a.line = a.line[:0]
	}
	switch d := &a.draft; {
	case d.err != nil:
	case d.finish == "" && !(a.done && d.whole()):
		return nil, errCut
	default:
		a.flush()
	}
	return &a.draft, nil
}

// whole reports whether a reply without a finish reason looks complete.
func (d *draft) whole() bool {
	if n := len(d.calls); n > 0 {
		return json.Valid([]byte(d.calls[n-1].args.String()))
	}
	return len(d.content) > len(`""`)
}

// eventStream matches the start of an event stream.
var eventStream = regexp.MustCompile(`^(data|event|id|retry)?:`)

// decode parses the raw bytes of a reply, into plain if it is not a stream. A server may stream although the request did not
// ask for that.
func decode(x *exchange, plain *draft) (*draft, error) {
	if x.reply == nil {
		body := skipMark(x.raw.Bytes())
		if !eventStream.Match(body) {
			plain.add(body)
			return plain, nil
		}
		x.reply = &assembler{}
		x.reply.Write(body)
	}
	d, problem := x.reply.end()
	if problem == errCut && x.broken != nil {
		return nil, x.broken
	}
	return d, problem
}
