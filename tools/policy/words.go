package policy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builder puts the words together that one word of source becomes.
type builder struct {
	words []string
	cur   []byte
	open  bool // a word has begun, though it may be empty
}

func (b *builder) add(text string) {
	if len(b.cur)+len(text) > maxValue {
		text = unknown
	}
	b.cur = append(b.cur, text...)
	b.open = true
}

func (b *builder) end() {
	if b.open && len(b.words) < maxWords {
		b.words = append(b.words, string(b.cur))
	}
	b.cur, b.open = b.cur[:0], false
}

// split adds text that is cut at separators.
func (b *builder) split(text, separators string) {
	for {
		cut := strings.IndexAny(text, separators)
		if cut < 0 {
			break
		}
		if cut > 0 {
			b.add(text[:cut])
		}
		b.end()
		text = text[cut+1:]
	}
	if text != "" {
		b.add(text)
	}
}

// fields expands words as the arguments of a command.
func (j *judge) fields(words []*syntax.Word) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		if len(word.Parts) == 1 {
			if lit, ok := word.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\{") {
				out = append(out, lit.Value)
				continue
			}
		}
		for _, parts := range j.braces(word) {
			var b builder
			j.parts(&b, parts, unquoted)
			b.end()
			out = append(out, b.words...)
		}
		if len(out) > maxWords {
			return append(out[:maxWords:maxWords], unknown)
		}
	}
	return out
}

// text expands a word where it stays one: an assignment, a redirection, a here-document.
func (j *judge) text(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	var b builder
	j.parts(&b, word.Parts, single)
	return string(b.cur)
}

// document expands the body of a here-document.
func (j *judge) document(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	var b builder
	j.parts(&b, word.Parts, doubleQuoted)
	return string(b.cur)
}

// quoting is where a part of a word stands.
type quoting uint8

const (
	unquoted quoting = iota
	single           // unquoted, but never cut into words
	doubleQuoted
)

func (j *judge) parts(b *builder, parts []syntax.WordPart, q quoting) {
	defer func() { j.depth-- }()
	if !j.enter() {
		b.add(unknown)
		return
	}
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.add(unescape(part.Value, q == doubleQuoted))
		case *syntax.SglQuoted:
			if part.Dollar {
				b.add(clean(ansiC(part.Value)))
			} else {
				b.add(part.Value)
			}
		case *syntax.DblQuoted:
			b.open = b.open || !isAll(part)
			j.parts(b, part.Parts, doubleQuoted)
		case *syntax.ParamExp:
			j.param(b, part, q)
		case *syntax.CmdSubst:
			b.substitute(j, part, q)
		case *syntax.ArithmExp:
			j.visit(part.X)
			b.add(arithmetic(part.X))
		case *syntax.ProcSubst:
			b.add(j.procSubst(part))
		case *syntax.ExtGlob:
			b.add("*")
		case *syntax.BraceExp: // within braces that were expanded already
			b.add(unknown)
		default:
			b.add(unknown)
		}
	}
}

// isAll says whether a quoted word is "$@", which may be no word at all.
func isAll(quoted *syntax.DblQuoted) bool {
	if len(quoted.Parts) != 1 {
		return false
	}
	param, ok := quoted.Parts[0].(*syntax.ParamExp)
	if !ok || param.Param == nil {
		return false
	}
	if param.Param.Value == "@" {
		return true
	}
	index, ok := param.Index.(*syntax.Word)
	return ok && index.Lit() == "@"
}

// substitute puts what commands print in their place.
func (b *builder) substitute(j *judge, subst *syntax.CmdSubst, q quoting) {
	out := j.scope(func() stream { return j.substituted(subst.Stmts) })
	j.pinned |= out.taint
	text := strings.TrimRight(out.text, "\n")
	if out.either {
		lines := strings.Split(text, "\n")
		text = lines[j.choose(len(lines))]
	}
	if q == unquoted {
		b.split(text, j.separators())
		return
	}
	b.add(text)
}

// substituted is what commands print; "< file" alone prints a file.
func (j *judge) substituted(stmts []*syntax.Stmt) stream {
	if len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 && stmts[0].Redirs[0].Op == syntax.RdrIn {
		return j.file(j.text(stmts[0].Redirs[0].Word))
	}
	out := j.stmts(stmts, stream{})
	return out
}

func (j *judge) separators() string {
	if _, ok := j.vars["IFS"]; !ok {
		return " \t\n"
	}
	v, _ := j.get("IFS")
	if len(v.words) == 0 {
		return ""
	}
	return v.words[0]
}

// arithmetic is the value of a plain number; no other sum is done.
func arithmetic(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		if n, err := strconv.Atoi(word.Lit()); err == nil {
			return strconv.Itoa(n)
		}
	}
	return unknown
}
