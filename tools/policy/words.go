package policy

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// environment is the judge's state as the expansion of words sees it.
type environment struct {
	j         *judge
	defaulted map[string]bool // variables with a default, which is used when nothing is known of them
	size      int             // of the text inserted so far
}

// fields expands words as the arguments of a command.
func (j *judge) fields(words ...*syntax.Word) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		if len(word.Parts) == 1 {
			if lit, ok := word.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\{~") {
				out = append(out, lit.Value)
				continue
			}
		}
		word = readable(word, false)
		j.expanded(word, func(cfg *expand.Config) error {
			for field, err := range expand.FieldsSeq(cfg, word) {
				if err != nil || len(out) > maxWords {
					return cmp.Or(err, io.ErrShortBuffer)
				}
				out = append(out, field)
			}
			return nil
		}, func() { out = append(out, unknown) })
		if len(out) > maxWords {
			return append(out[:maxWords:maxWords], unknown)
		}
	}
	return out
}

// text expands a word into a single one: for an assignment, a redirection.
func (j *judge) text(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	return j.one(readable(word, true), expand.Literal)
}

var escaped = regexp.MustCompile(`(?s)\\(.)`)

// readable rewrites a word so that the library expands it as bash does: in a single word, the library keeps backslashes, and an
// extended pattern may match anything.
func readable(word *syntax.Word, one bool) *syntax.Word {
	parts := slices.Clone(word.Parts)
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.ExtGlob:
			parts[i] = &syntax.Lit{Value: "*"}
		case *syntax.Lit:
			if one {
				parts[i] = &syntax.Lit{Value: escaped.ReplaceAllString(part.Value, "$1")}
			}
		}
	}
	return &syntax.Word{Parts: parts}
}

func (j *judge) one(word *syntax.Word, as func(*expand.Config, *syntax.Word) (string, error)) (text string) {
	j.expanded(word, func(cfg *expand.Config) (err error) {
		text, err = as(cfg, word)
		return err
	}, func() { text = unknown })
	return text
}

// expanded runs an expansion. When it fails, the commands that are substituted in the word are judged all the same.
func (j *judge) expanded(word *syntax.Word, run func(*expand.Config) error, fail func()) {
	defer func() { j.depth-- }()
	env := &environment{j: j, defaulted: map[string]bool{}}
	err := func() (err error) {
		if !j.enter() || !env.prepare(word) {
			return errTooComplex
		}
		defer func() { // the library panics on some texts
			if value := recover(); value != nil {
				err = fmt.Errorf("the expansion gives up: %v", value)
			}
		}()
		return run(&expand.Config{Env: env, CmdSubst: env.substitute, ProcSubst: j.procSubst})
	}()
	if err != nil {
		j.visit(word)
		fail()
	}
}

// prepare examines a word, and reports whether its expansion is bounded. A substring of unknown text is unknown.
func (e *environment) prepare(word *syntax.Word) bool {
	braces, cut := 0, false
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
		}
	}
	syntax.Walk(word, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			if node.Index != nil {
				e.j.visit(node.Index)
			}
			cut = cut || node.Param != nil && (node.Slice != nil || node.Index != nil) && strings.Contains(e.Get(node.Param.Value).String(), unknown)
			if node.Param != nil && (node.Exp != nil || node.Repl != nil) {
				e.operation(node)
			}
		}
		return true
	})
	return braces <= 12 && !cut && e.j.within()
}

// operation records defaults, and the cost of pattern matching.
func (e *environment) operation(param *syntax.ParamExp) {
	name := param.Param.Value
	if param.Exp != nil {
		switch param.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			e.defaulted[name] = true
			return
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			return
		}
	}
	e.j.steps += len(e.Get(name).String())
}

// Get returns a variable to the library.
func (e *environment) Get(name string) expand.Variable {
	number, err := strconv.Atoi(name)
	switch {
	case name == "@" || name == "*":
		return expand.Variable{Set: len(e.j.params) > 0, Kind: expand.Indexed, List: e.j.params}
	case name == "#":
		return e.variable(textValue(strconv.Itoa(len(e.j.params)), 0))
	case name == "0":
		return e.variable(textValue(cmp.Or(e.j.zero, "bash"), 0))
	case err == nil && (number < 1 || number > len(e.j.params)):
		return expand.Variable{}
	case err == nil:
		return e.variable(textValue(e.j.params[number-1], 0))
	case strings.HasPrefix(name, "HOME "): // the home directory of a user
		return e.variable(textValue(e.j.homeOf(name[len("HOME "):]), 0))
	}
	v, have := e.j.get(name)
	if !have && e.defaulted[name] {
		return expand.Variable{}
	}
	return e.variable(v)
}

func (e *environment) variable(v value) expand.Variable {
	for _, word := range v.words {
		e.size += len(word)
	}
	switch {
	case len(v.words) == 0:
		return expand.Variable{Set: v.array, Kind: expand.Indexed}
	case e.size > MaxCommand:
		return expand.Variable{Set: true, Kind: expand.String, Str: unknown}
	case v.array:
		return expand.Variable{Set: true, Kind: expand.Indexed, List: v.words}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: v.words[0]}
}

// Each lists no variables: names of variables are not followed.
func (e *environment) Each(func(string, expand.Variable) bool) {}

// Set is called for ${name:=value}, and for arithmetic.
func (e *environment) Set(name string, to expand.Variable) error {
	if to.Kind == expand.String {
		e.j.setText(name, to.Str, e.j.pinned)
	}
	return nil
}

// substitute writes the output of a command substitution.
func (e *environment) substitute(w io.Writer, subst *syntax.CmdSubst) error {
	out := e.j.scope(func() stream {
		if stmts := subst.Stmts; len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 && stmts[0].Redirs[0].Op == syntax.RdrIn {
			return e.j.file(e.j.text(stmts[0].Redirs[0].Word)) // "< file" alone prints a file
		}
		return e.j.stmts(subst.Stmts, stream{})
	})
	e.j.pinned |= out.taint
	if e.size += len(out.text); e.size > MaxCommand {
		out.text = unknown
	}
	_, err := io.WriteString(w, out.text)
	return err
}
