package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a text for what is known only when the command runs. A byte after it says where that comes from. Input does
// not contain these bytes: see clean.
const (
	unknown = "\x1a"
	remote  = "\x11" // the network
	decoded = "\x12" // an encoded form
	pids    = "\x13" // a search for processes
	secret  = "\x14" // a file of keys or credentials
)

var sources = map[string]string{"remote": remote, "decoded": decoded, "pids": pids, "secret": secret}

// unknownFrom returns unknown text with the sources of other texts.
func unknownFrom(texts ...string) string {
	text := unknown
	for _, source := range []string{remote, decoded, pids, secret} {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, source) }) {
			text += source
		}
	}
	return text
}

func isKnown(text string) bool { return !strings.Contains(text, unknown) }

// unknownName is a variable that is never set.
const unknownName = "__unknown__"

// Bounds of judging one command.
const (
	maxSteps = 4000 // statements and invocations
	maxTurns = 24   // combinations of what variables may hold
	maxValue = 16 << 10
	maxWords = 256 // words from one word, or from one file's lines
)

// judge follows a command line.
type judge struct {
	source string // the whole line
	opens  bool   // the line started a shell that reads commands from its input
	machine
	findings

	calls     map[any]int // bodies of functions and aliases that are being called
	beside    int         // above 0 in a pipe or in the background
	detached  int         // above 0 in the background, and in what nohup starts
	respawned int         // how often the function that is being called has started itself beside itself
}

// machine is the state of the shell and of files, as far as it is known.
type machine struct {
	dir, homeDir string // where the shell started
	shell
	choice
	files
}

// findings are what was found so far.
type findings struct {
	except    []string // approved rules
	worst     Verdict
	steps     int
	contained int // above 0 in a container
	asides    int // above 0 in text that may not be code
}

func newJudge(ctx Context) *judge {
	return &judge{
		machine: machine{
			dir: ctx.Dir, homeDir: ctx.Home,
			shell: shell{vars: map[string]binding{}, funcs: map[string]*syntax.Stmt{}, aliases: map[string]string{}, zero: "bash"},
			files: files{
				written: map[string]stream{}, runnable: map[string]bool{}, inputs: map[string]stream{}, sinks: map[string][]*syntax.Stmt{},
			},
		},
		findings: findings{except: ctx.Except, worst: Verdict{Verdict: Allow}},
		calls:    map[any]int{},
	}
}

// stream is the content of a pipe or a file, or the output of a command.
type stream struct {
	text string
	set  bool // false means no stream
}

// and joins the output of two commands.
func (s stream) and(t stream) stream {
	switch {
	case !t.set:
		return s
	case !s.set:
		return t
	case len(s.text)+len(t.text) > MaxCommand:
		return stream{unknownFrom(s.text, t.text), true}
	}
	return stream{s.text + t.text, true}
}

// lines returns the lines of a stream.
func (s stream) lines() []string {
	if !s.set || !isKnown(s.text) {
		return []string{unknownFrom(s.text)}
	}
	lines := strings.Split(strings.TrimRight(s.text, "\n"), "\n")
	return lines[:min(len(lines), maxWords)]
}

// report records a rule that was hit, if id names one. The first one with the worst level is kept.
func (f *findings) report(id string) {
	if f.asides > 0 && (id == "unparsable" || id == "unknown-command" || id == "too-complex") {
		return
	}
	verdict := table().rules[id]
	if verdict.Verdict == Ask && slices.Contains(f.except, id) {
		return
	}
	if f.contained > 0 && verdict.Verdict == Block {
		verdict.Verdict = Ask // it affects the container, not the machine
	}
	if verdict.Verdict.Worse(f.worst.Verdict) {
		f.worst = verdict
	}
}

// reportSource reports code by its source, or by a rule if the source is this line.
func (f *findings) reportSource(code, otherwise string) {
	switch {
	case strings.Contains(code, remote):
		otherwise = "remote-code"
	case strings.Contains(code, decoded):
		otherwise = "decoded-code"
	}
	f.report(otherwise)
}

// spend counts a step and reports whether it is within the bound.
func (f *findings) spend() bool {
	if f.steps++; f.steps > maxSteps {
		f.report("too-complex")
		return false
	}
	return true
}

// code judges shell code. Unknown parts of it are replaced by a variable that is never set.
func (j *judge) code(text string, in stream) stream {
	text = strings.ReplaceAll(text, unknown, "${"+unknownName+"}")
	if j.steps += len(text) / 256; !j.spend() {
		return stream{unknown, true}
	}
	stmts, err := Parse(text)
	out := j.stmts(stmts, in)
	if err != nil {
		j.report("unparsable")
		if j.worst.Rule == "unparsable" && j.asides == 0 {
			j.worst.Reason = table().rules["unparsable"].Reason + " (" + parseProblem(err) + ")"
		}
	}
	return out
}

// aside judges text that may be code: its effects count, a syntax error does not.
func (j *judge) aside(code string) {
	if len(code) < 4 || !isKnown(code) || !j.spend() {
		return
	}
	j.asides++
	j.subshell(func() stream { return j.code(code, stream{}) })
	j.asides--
}

// errTooComplex is the error for code that could overflow the parser's stack, which would end the whole process.
var errTooComplex = errors.New("it is too long or too deeply nested")

// Parse parses shell code. Bash runs the lines before a syntax error, so Parse returns them with the error. It refuses code that
// would overflow the parser's stack.
func Parse(code string) (stmts []*syntax.Stmt, err error) {
	if len(code) > MaxCommand || tooDeep(code) {
		return nil, errTooComplex
	}
	defer func() { // the parser is a library, and panics on some texts
		if value := recover(); value != nil {
			err = fmt.Errorf("the parser gives up: %v", value)
		}
	}()
	for stmt, err := range syntax.NewParser().StmtsSeq(strings.NewReader(code)) {
		if err != nil {
			return stmts, err
		}
		stmts = append(stmts, stmt)
	}
	return stmts, nil
}

// tooDeep reports whether a text opens so many parentheses without closing them that a parser takes long. It allows for those
// in quoted text or scripts, which are closed sooner or later.
func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		}
		if depth > 500 {
			return true
		}
	}
	return strings.Count(text, "`") > 2000
}

// parseProblem describes a syntax error.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return parse.Text
	}
	return err.Error()
}
