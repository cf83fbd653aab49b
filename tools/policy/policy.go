// Package policy judges a command line before a shell gets it: allow, ask or block, with the rule that says so.
//
// It reads the line as bash does, into a syntax tree, and follows what the line would do without doing it: quotes,
// variables and functions of the same line, expansions whose text can be told, prefixes such as sudo and env, scripts
// that are handed to a shell by argument, pipe or here-document. What only a run would tell is unknown, and the rules
// are asked about the rest. It is a guard against accidents and against careless or planted commands, no sandbox:
// a program can do whatever its user may, and says nothing about it on its command line.
package policy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Level is what may be done with a command.
type Level string

// The levels, from harmless to harmful.
const (
	Allow Level = "allow"
	Ask   Level = "ask"   // somebody has to agree
	Block Level = "block" // never, outside of a disposable sandbox
)

func (l Level) rank() int {
	switch l {
	case Block:
		return 2
	case Ask:
		return 1
	}
	return 0
}

// Worse says whether l permits less than other.
func (l Level) Worse(other Level) bool { return l.rank() > other.rank() }

// Verdict is what Check says. Rule and Reason are empty when everything is allowed.
type Verdict struct {
	Verdict Level  `json:"verdict"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
}

// Context is what is known of the shell that would run the command. All of it may be left out.
type Context struct {
	Dir  string // working directory, absolute
	Home string // home directory, absolute
	// Setup is shell code that ran before: the variables that earlier commands exported. It is not judged.
	Setup string
}

// MaxCommand is the longest command that is read, in bytes. A longer one needs somebody who agrees.
const MaxCommand = 128 << 10

// Check judges a bash command line. It may be called from many goroutines.
func Check(command string, ctx Context) Verdict {
	verdict := check(command, ctx)
	if plain := unmask(command); plain != command {
		// Text that looks like a command on the screen, or becomes one when somebody cleans it up.
		if other := check(plain, ctx); other.Verdict.Worse(verdict.Verdict) {
			return other
		}
	}
	return verdict
}

func check(command string, ctx Context) Verdict {
	j := &judge{ctx: ctx, worst: Verdict{Verdict: Allow}}
	if len(command) > MaxCommand {
		j.report(tooLong)
		return j.worst
	}
	if ctx.Setup != "" && len(ctx.Setup) <= MaxCommand {
		j.code(ctx.Setup, stream{})
		j.worst, j.steps = Verdict{Verdict: Allow}, 0
	}
	if j.source = clean(command); tooDeep(j.source) {
		j.report(tooComplex)
		return j.worst
	}
	j.code(j.source, stream{})
	return j.worst
}

// Rules lists the rules, in no order that matters: what each is called, says and answers.
func Rules() []Verdict {
	var all []Verdict
	for i := range rules {
		all = append(all, Verdict{rules[i].verdict, rules[i].id, rules[i].reason})
	}
	return all
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// parse reads shell code. Bash runs what it has read when it meets an error, line by line, so what comes before one is
// returned with it.
func parse(code string) (stmts []*syntax.Stmt, err error) {
	defer func() { // the parser is not ours, and panics at some texts
		if value := recover(); value != nil {
			err = fmt.Errorf("the parser gives up: %v", value)
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	err = parser.Stmts(strings.NewReader(code), func(stmt *syntax.Stmt) bool {
		stmts = append(stmts, stmt)
		return true
	})
	if err == nil {
		parsers.Put(parser) // after an error it may hold half a word
	}
	return stmts, err
}

// tooDeep says whether parentheses are opened and not closed in a way that takes a parser long. Those in a text or a
// script that is written to a file are closed sooner or later.
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

// clean takes out the bytes that mean something to the judge and nothing to a shell.
func clean(text string) string {
	if strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(text, unknown, "")
}

// unmask removes what hides a command from a reader: terminal escapes, invisible characters, and letters in full width.
func unmask(command string) string {
	masked := func(r rune) bool { return r == 0x1b || r > 0x7f }
	if strings.IndexFunc(command, masked) < 0 {
		return command
	}
	var b strings.Builder
	rest := command
	for rest != "" {
		if n := escapeLength(rest); n > 0 {
			rest = rest[n:]
			continue
		}
		r := []rune(rest[:min(len(rest), 4)])[0]
		size := len(string(r))
		if r == '\uFFFD' && !strings.HasPrefix(rest, "\uFFFD") {
			size = 1 // a byte that is no character
		}
		switch {
		case r >= 0xFF01 && r <= 0xFF5E:
			b.WriteRune(r - 0xFF01 + '!')
		case r == 0x3000 || r == 0x00A0:
			b.WriteByte(' ')
		case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2069, r == 0xFEFF, r == 0xAD:
		default:
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

// escapeLength is the length of the terminal escape that text begins with.
func escapeLength(text string) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
	case ']':
		if end := strings.IndexAny(text, "\a"); end > 0 {
			return end + 1
		}
	}
	return 2
}

// parseProblem words a syntax error.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return parse.Text
	}
	return err.Error()
}
