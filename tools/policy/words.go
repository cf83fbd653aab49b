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

// environment is the judge's state as the expansion of a word sees it.
type environment struct {
	*judge
	defaulted map[string]bool // variables with a default, which is used when nothing is known of them
	size      int             // of the text inserted so far
}

func newEnvironment(j *judge) *environment {
	return &environment{judge: j, defaulted: map[string]bool{}}
}

// fields expands words as the arguments of a command.
func (j *judge) fields(words ...*syntax.Word) (out []string) {
	for _, word := range words {
		failed := newEnvironment(j).expand(readable(word, false), func(cfg *expand.Config, word *syntax.Word) error {
			for field, err := range expand.FieldsSeq(cfg, word) {
				if err != nil || len(out) > maxWords {
					return cmp.Or(err, io.ErrShortBuffer)
				}
				out = append(out, field)
			}
			return nil
		})
		if failed {
			out = append(out, unknown)
		}
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
	return newEnvironment(j).one(readable(word, true), expand.Literal)
}

func (e *environment) one(word *syntax.Word, as func(*expand.Config, *syntax.Word) (string, error)) (text string) {
	failed := e.expand(word, func(cfg *expand.Config, word *syntax.Word) (err error) {
		text, err = as(cfg, word)
		return err
	})
	if failed {
		return unknown
	}
	return text
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

// expand runs an expansion, and reports whether it failed. The commands that are substituted in the word are judged then all
// the same.
func (e *environment) expand(word *syntax.Word, run func(*expand.Config, *syntax.Word) error) (failed bool) {
	err := func() (err error) {
		if !e.bounded(word) {
			return errTooComplex
		}
		defer func() { // the library panics on some texts
			if value := recover(); value != nil {
				err = fmt.Errorf("the expansion gives up: %v", value)
			}
		}()
		return run(&expand.Config{Env: e, CmdSubst: e.substitute, ProcSubst: e.procSubst}, word)
	}()
	if err != nil {
		e.visit(word)
	}
	return err != nil
}

// bounded reports whether a word can be expanded: there is an end to its braces and patterns, and it takes no part of unknown
// text, which is unknown as well.
func (e *environment) bounded(word *syntax.Word) bool {
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
				e.visit(node.Index)
			}
			if node.Param != nil {
				cut = cut || (node.Slice != nil || node.Index != nil) && !isKnown(e.Get(node.Param.Value).String())
				e.operation(node)
			}
		}
		return true
	})
	return braces <= 12 && !cut && e.steps <= maxSteps
}

// operation records defaults, and the cost of pattern matching.
func (e *environment) operation(param *syntax.ParamExp) {
	name := param.Param.Value
	switch {
	case param.Exp == nil && param.Repl == nil:
	case param.Exp != nil && slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset,
		syntax.AssignUnsetOrNull}, param.Exp.Op):
		e.defaulted[name] = true
	default:
		if e.steps += len(e.Get(name).String()); e.steps > maxSteps {
			e.report("too-complex")
		}
	}
}

// Get returns a variable to the library.
func (e *environment) Get(name string) expand.Variable {
	number, err := strconv.Atoi(name)
	switch {
	case name == "@" || name == "*":
		return expand.Variable{Set: len(e.params) > 0, Kind: expand.Indexed, List: e.params}
	case name == "#":
		return e.variable(value{strconv.Itoa(len(e.params))})
	case name == "0":
		return e.variable(value{e.zero})
	case err == nil && (number < 1 || number > len(e.params)):
		return expand.Variable{}
	case err == nil:
		return e.variable(value{e.params[number-1]})
	case strings.HasPrefix(name, "HOME "): // the home directory of a user
		return e.variable(value{e.homeOf(name[len("HOME "):])})
	}
	v, have := e.get(name)
	if !have && e.defaulted[name] {
		return expand.Variable{}
	}
	return e.variable(v)
}

func (e *environment) variable(v value) expand.Variable {
	for _, word := range v {
		e.size += len(word)
	}
	switch {
	case len(v) == 0:
		return expand.Variable{}
	case e.size > MaxCommand:
		return expand.Variable{Set: true, Kind: expand.String, Str: unknown}
	case len(v) > 1:
		return expand.Variable{Set: true, Kind: expand.Indexed, List: v}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: v[0]}
}

// Each lists no variables: names of variables are not followed.
func (e *environment) Each(func(string, expand.Variable) bool) {}

// Set is called for ${name:=value}, and for arithmetic.
func (e *environment) Set(name string, to expand.Variable) error {
	if to.Kind == expand.String {
		e.setText(name, to.Str)
	}
	return nil
}

// substitute writes the output of a command substitution.
func (e *environment) substitute(w io.Writer, subst *syntax.CmdSubst) error {
	out := e.subshell(func() stream {
		if stmts := subst.Stmts; len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 && stmts[0].Redirs[0].Op == syntax.RdrIn {
			return e.file(e.text(stmts[0].Redirs[0].Word)) // "< file" alone prints a file
		}
		return e.stmts(subst.Stmts, stream{})
	})
	if e.size += len(out.text); e.size > MaxCommand {
		out.text = unknownFrom(out.text)
	}
	_, err := io.WriteString(w, out.text)
	return err
}

// procSubst judges <(...) or >(...) and gives it a name.
func (e *environment) procSubst(subst *syntax.ProcSubst) (name string, err error) {
	name = "/dev/fd/" + strconv.Itoa(1000+len(e.written)+len(e.sinks))
	in := stream{}
	if subst.Op == syntax.CmdOut {
		e.sinks[name] = subst.Stmts
		in = stream{unknown, true}
	}
	out := e.subshell(func() stream { return e.stmts(subst.Stmts, in) })
	if subst.Op != syntax.CmdOut {
		e.keep(name, stream{out.text, true})
	}
	return name, nil
}
