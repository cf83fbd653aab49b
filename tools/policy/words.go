package policy

import (
	"fmt"
	"slices"
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

// procSubst judges <(...) or >(...) and gives it a name.
func (j *judge) procSubst(subst *syntax.ProcSubst) string {
	in := stream{}
	if subst.Op == syntax.CmdOut {
		in = stream{text: unknown, set: true}
	}
	out := j.scope(func() stream { return j.stmts(subst.Stmts, in) })
	j.pipes++
	name := "/dev/fd/" + strconv.Itoa(1000+j.pipes)
	out.set = true
	j.keep(name, out)
	return name
}

// keep notes what a file holds.
func (j *judge) keep(name string, content stream) {
	if j.files == nil {
		j.files = map[string]stream{}
	}
	if len(j.files) < maxWords {
		j.files[name] = content
	}
}

// file is what this line wrote to a file, if it did.
func (j *judge) file(name string) stream {
	return j.files[j.canonical(name)]
}

// unescape removes backslashes.
func unescape(text string, quoted bool) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		next := text[i+1]
		switch {
		case next == '\n':
			i++
		case quoted && strings.IndexByte("$`\"\\", next) < 0:
			out = append(out, '\\')
		default:
			out = append(out, next)
			i++
		}
	}
	return string(out)
}

// ansiC decodes what stands in $'...' and what printf and echo -e understand.
func ansiC(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		number := func(base, digits int) {
			end := i + 1
			for end < len(text) && end <= i+digits && isDigit(text[end], base) {
				end++
			}
			n, err := strconv.ParseUint(text[i+1:end], base, 32)
			switch {
			case err != nil:
				out = append(out, '\\', text[i])
				return
			case base == 8 || digits == 2:
				out = append(out, byte(n))
			default:
				out = append(out, string(rune(n))...)
			}
			i = end - 1
		}
		switch c := text[i]; c {
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			out = append(out, "\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'e', 'E':
			out = append(out, 0x1b)
		case '\\', '\'', '"', '?':
			out = append(out, c)
		case 'x':
			number(16, 2)
		case 'u':
			number(16, 4)
		case 'U':
			number(16, 8)
		case 'c':
			if i+1 < len(text) {
				i++
				out = append(out, text[i]&0x1f)
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i--
			if c == '0' && i+2 < len(text) && isDigit(text[i+2], 8) {
				i++
			}
			number(8, 3)
		default:
			out = append(out, '\\', c)
		}
	}
	return string(out)
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '9':
		return int(c-'0') < base
	case base == 16:
		return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
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

// braces expands {a,b} and {1..3} into as many lists of parts.
func (j *judge) braces(word *syntax.Word) [][]syntax.WordPart {
	if !syntax.SplitBraces(word) && !slices.ContainsFunc(word.Parts, isBrace) {
		return [][]syntax.WordPart{word.Parts}
	}
	return j.expandBraces(word.Parts)
}

func isBrace(part syntax.WordPart) bool {
	_, ok := part.(*syntax.BraceExp)
	return ok
}

func (j *judge) expandBraces(parts []syntax.WordPart) [][]syntax.WordPart {
	all := [][]syntax.WordPart{nil}
	defer func() { j.depth-- }()
	if !j.enter() {
		return all
	}
	n := 0
	for _, part := range parts {
		if isBrace(part) {
			n++
		}
	}
	if n > 12 {
		return [][]syntax.WordPart{{&syntax.Lit{Value: unknown}}}
	}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range all {
				all[i] = append(all[i], part)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, option := range j.options(brace) {
			for _, head := range all {
				if len(next) < maxWords {
					next = append(next, append(slices.Clip(slices.Clone(head)), option...))
				}
			}
		}
		all = next
	}
	return all
}

// options are what a brace expression stands for.
func (j *judge) options(brace *syntax.BraceExp) [][]syntax.WordPart {
	var all [][]syntax.WordPart
	if !brace.Sequence {
		for _, elem := range brace.Elems {
			all = append(all, j.expandBraces(elem.Parts)...)
		}
		return all[:min(len(all), maxWords)]
	}
	from, to := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	letters := err1 != nil && err2 != nil && len(from) == 1 && len(to) == 1
	if letters {
		first, last = int(from[0]), int(to[0])
	} else if err1 != nil || err2 != nil {
		return [][]syntax.WordPart{{&syntax.Lit{Value: fmt.Sprintf("{%s..%s}", from, to)}}}
	}
	step := 1
	if last < first {
		step = -1
	}
	for n := first; len(all) < maxTurns; n += step {
		text := strconv.Itoa(n)
		if letters {
			text = string(rune(n))
		}
		all = append(all, []syntax.WordPart{&syntax.Lit{Value: text}})
		if n == last {
			break
		}
	}
	return all
}
