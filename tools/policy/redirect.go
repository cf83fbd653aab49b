package policy

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// outputs are the targets of a command's output.
type outputs struct {
	files   []string // files that its standard output goes to
	network bool     // it writes to a network connection
}

// redirect judges redirections. It returns the command's input and its outputs.
func (j *judge) redirect(redirs []*syntax.Redirect, in stream) (stream, outputs) {
	var to outputs
	for _, r := range redirs {
		target := j.text(r.Word)
		connects := isConnection(target)
		to.network = to.network || connects
		var content stream
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			text := j.document(r)
			content = stream{text, true, j.pinned}
		case syntax.WordHdoc:
			content = stream{target + "\n", true, j.pinned}
		case syntax.RdrIn:
			if content = j.file(target); connects {
				content = unknownStream(remote)
			}
		case syntax.DplIn:
			var ok bool
			if content, ok = j.inputs[target]; !ok {
				continue
			}
		default:
			if r.Op == syntax.DplOut && strings.Trim(target, "0123456789-") == "" {
				continue
			}
			if j.writesTo(target); r.N == nil || r.N.Value == "1" {
				to.files = append(to.files, target)
			}
			continue
		}
		if r.N == nil || r.N.Value == "0" {
			in = content
		} else {
			j.inputs[r.N.Value] = content
		}
	}
	return in, to
}

// document returns the text of a here-document.
func (j *judge) document(r *syntax.Redirect) string {
	switch end := r.Word.Lit(); {
	case r.Hdoc == nil:
		return ""
	case end == "" || strings.Contains(end, `\`): // the end marker is quoted
		return r.Hdoc.Lit()
	}
	return j.one(r.Hdoc, expand.Document)
}

var connection = regexp.MustCompile(`^/dev/(?:tcp|udp)/([^/]*)`)

// isConnection reports whether bash opens a network connection for a file name.
func isConnection(name string) bool {
	m := connection.FindStringSubmatch(name)
	return m != nil && m[1] != "localhost" && m[1] != "::1" && !strings.HasPrefix(m[1], "127.")
}

// write sends a command's output to its targets.
func (j *judge) write(to outputs, out stream) stream {
	for _, name := range to.files {
		if out.set || out.taint != 0 {
			j.keep(j.canonical(name), stream{out.text, true, out.taint})
		}
	}
	if len(to.files) > 0 {
		return stream{}
	}
	return out
}
