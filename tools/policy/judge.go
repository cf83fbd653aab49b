package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a value for text that is known only when the command runs. It is removed from input.
const unknown = "\x1a"

// unknownName is a variable that is never set.
const unknownName = "__unknown__"

// Bounds of judging one command.
const (
	maxSteps = 4000 // statements and invocations
	maxDepth = 60   // code within code, functions within functions
	maxTurns = 24   // combinations of what variables may hold
	maxValue = 16 << 10
	maxWords = 256 // words from one word, or from one file's lines
)

// judge follows a command line. Its state is the shell's, as far as it is known.
type judge struct {
	ctx    Context
	source string // the whole line
	worst  Verdict

	vars     map[string]binding
	zero     string   // $0
	params   []string // $1 and on
	funcs    map[string]*syntax.Stmt
	aliases  map[string]string
	files    map[string]stream         // written by this line
	runnable map[string]bool           // made executable by this line
	links    [][2]string               // other names of files: path and target
	inputs   map[string]stream         // by file descriptor; "0" is set by exec
	sinks    map[string][]*syntax.Stmt // the commands behind >(...), by its name
	active   []string                  // functions that are being called

	current  *syntax.Stmt
	beside   int // above 0 in a pipe or in the background
	detached int // above 0 in the background
	respawn  map[*syntax.Stmt]bool

	steps, depth int
	branch       int   // above 0 in code that may not run
	pinned       taint // sources of the words of the present command
	contained    int   // above 0 in a container
	asides       int   // above 0 in text that may not be code
	opens        bool  // the line started a shell that reads commands from its input
	picks        []pick
	turn         int
}

func newJudge(ctx Context) *judge {
	return &judge{
		ctx: ctx, worst: Verdict{Verdict: Allow},
		vars: map[string]binding{}, funcs: map[string]*syntax.Stmt{}, aliases: map[string]string{}, files: map[string]stream{},
		runnable: map[string]bool{}, inputs: map[string]stream{}, sinks: map[string][]*syntax.Stmt{}, respawn: map[*syntax.Stmt]bool{},
	}
}

// stream is the content of a pipe or a file, or the output of a substituted command.
type stream struct {
	text string
	set  bool // false means no stream
	taint
}

// unknownStream is a stream whose text is not known.
func unknownStream(from taint) stream { return stream{unknown, true, from} }

func (s stream) known() bool { return s.set && !strings.Contains(s.text, unknown) }

// taint is a set of sources that text may come from.
type taint uint8

const (
	remote  taint = 1 << iota // from the network
	decoded                   // from an encoded form
	pids                      // from a search for processes
	secret                    // from a file of keys or credentials
)

// and joins the output of two commands.
func (s stream) and(t stream) stream {
	switch {
	case !t.set:
		return s
	case !s.set:
		return t
	case len(s.text)+len(t.text) > MaxCommand:
		return unknownStream(s.taint | t.taint)
	}
	return stream{s.text + t.text, true, s.taint | t.taint}
}

// report records a rule that was hit. The first one with the worst level is kept.
func (j *judge) report(id string) {
	if j.asides > 0 && (id == unparsable || id == unknownCommand || id == tooComplex) {
		return
	}
	r := ruleByID[id]
	level := r.verdict
	if level == Ask && slices.Contains(j.ctx.Except, id) {
		return
	}
	if j.contained > 0 && level == Block {
		level = Ask // it affects the container, not the machine
	}
	if level.Worse(j.worst.Verdict) {
		j.worst = Verdict{level, r.id, r.reason}
	}
}

// spend counts a step and reports whether it is within the bound.
func (j *judge) spend() bool {
	j.steps++
	return j.within()
}

func (j *judge) within() bool {
	if j.steps > maxSteps {
		j.report(tooComplex)
		return false
	}
	return true
}

// enter goes one level deeper, and reports whether that is allowed. After true, the caller ends the level with depth--.
func (j *judge) enter() bool {
	if j.depth++; j.depth > maxDepth {
		j.report(tooComplex)
		return false
	}
	return true
}

// code judges shell code. Unknown parts of it are replaced by a variable that is never set.
func (j *judge) code(text string, in stream) stream {
	defer func() { j.depth-- }()
	text = strings.ReplaceAll(text, unknown, "${"+unknownName+"}")
	if j.steps += len(text) / 256; !j.enter() || !j.spend() {
		return unknownStream(0)
	}
	stmts, err := parse(text)
	out := j.stmts(stmts, in)
	if err != nil {
		j.report(unparsable)
		if j.worst.Rule == unparsable && j.asides == 0 {
			j.worst.Reason = ruleByID[unparsable].reason + " (" + parseProblem(err) + ")"
		}
	}
	return out
}

// aside judges text that may be code: its effects count, a syntax error does not.
func (j *judge) aside(code string) {
	if len(code) < 4 || strings.Contains(code, unknown) || !j.spend() {
		return
	}
	j.asides++
	j.scope(func() stream { return j.code(code, stream{}) })
	j.asides--
}

// scope runs f like a subshell: f sees all state, and only files outlive it.
func (j *judge) scope(f func() stream) stream {
	vars, params, funcs, aliases := maps.Clone(j.vars), j.params, maps.Clone(j.funcs), maps.Clone(j.aliases)
	out := f()
	j.vars, j.params, j.funcs, j.aliases = vars, params, funcs, aliases
	return out
}

// maybe runs f for code that may not run.
func (j *judge) maybe(f func() stream) stream {
	j.branch++
	out := f()
	j.branch--
	return out
}
