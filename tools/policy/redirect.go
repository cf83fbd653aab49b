package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// outputs are where a command writes to.
type outputs struct {
	files   []string // that its standard output goes to
	network bool     // it has a connection
}

// redirect judges redirections. It returns what the command reads, and where it writes.
func (j *judge) redirect(redirs []*syntax.Redirect, in stream) (stream, outputs) {
	var to outputs
	for _, r := range redirs {
		reads := func(content stream) {
			if r.N == nil || r.N.Value == "0" {
				in = content
				return
			}
			j.inputs[r.N.Value] = content
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			reads(stream{text: j.hereDocument(r), set: true, taint: j.pinned})
		case syntax.WordHdoc:
			reads(stream{text: j.text(r.Word) + "\n", set: true, taint: j.pinned})
		case syntax.RdrIn:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			content := j.file(target)
			if isConnection(target) {
				content = untold(remote)
			}
			reads(content)
		case syntax.DplIn, syntax.DplOut:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			if content, ok := j.inputs[target]; ok && r.Op == syntax.DplIn {
				reads(content)
			}
			if r.Op == syntax.DplOut && target != "-" && strings.Trim(target, "0123456789-") != "" {
				j.writesTo(target)
				to.files = append(to.files, target)
			}
		default:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			j.writesTo(target)
			if r.N == nil || r.N.Value == "1" {
				to.files = append(to.files, target)
			}
		}
	}
	return in, to
}

// isConnection says whether bash makes a connection to another machine of a file name.
func isConnection(name string) bool {
	host, ok := strings.CutPrefix(name, "/dev/tcp/")
	if !ok {
		if host, ok = strings.CutPrefix(name, "/dev/udp/"); !ok {
			return false
		}
	}
	host, _, _ = strings.Cut(host, "/")
	return host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.")
}

func (j *judge) hereDocument(r *syntax.Redirect) string {
	quoted := false
	for _, part := range r.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		quoted = quoted || !ok || strings.ContainsRune(lit.Value, '\\')
	}
	if !quoted || r.Hdoc == nil {
		return j.document(r.Hdoc)
	}
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		}
	}
	return b.String()
}

// write puts what a command prints where it goes.
func (j *judge) write(to outputs, out stream) stream {
	if len(to.files) == 0 {
		return out
	}
	for _, name := range to.files {
		if out.set || out.taint != 0 {
			out.set = true
			j.keep(j.canonical(name), out)
		}
	}
	return stream{}
}
