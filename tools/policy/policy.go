// Package policy judges a command line before a shell gets it: allow, ask or block, with the rule that says so.
//
// It parses the line as bash does, and follows what the line would do without doing it: quotes, variables and functions of the
// same line, expansions with a known result, prefixes such as sudo and env, and scripts that a shell gets by argument, pipe or
// here-document. The rest is unknown until the command runs, and rules judge what is known. The policy guards against accidents
// and against careless or planted commands; it is not a sandbox: a program can do whatever its user may, and its command line
// need not show it. What the policy knows of programs, and its rules, are in rules.yaml.
package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Level says what may be done with a command.
type Level string

// The levels, from harmless to harmful.
const (
	Allow Level = "allow"
	Ask   Level = "ask"   // needs approval
	Block Level = "block" // refused, except in a disposable sandbox
)

// Worse reports whether l permits less than other.
func (l Level) Worse(other Level) bool {
	rank := map[Level]int{Ask: 1, Block: 2}
	return rank[l] > rank[other]
}

// Verdict is the result of Check. Rule and Reason are empty when nothing was hit.
type Verdict struct {
	Verdict Level  `json:"verdict"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
}

// Context is what the caller knows of the shell that would run the command. All fields are optional.
type Context struct {
	Dir  string // working directory, absolute
	Home string // home directory, absolute
	// Setup is shell code that ran before, such as the variables that earlier commands exported. It is not judged.
	Setup string
	// Except are approved rules. Rules that block cannot be approved.
	Except []string
}

// MaxCommand is the longest command that is parsed, in bytes. A longer one needs approval.
const MaxCommand = 128 << 10

// Check judges a bash command line. It may be called from many goroutines.
func Check(command string, ctx Context) Verdict {
	verdict := check(command, ctx, stream{})
	if plain := unmask(command); plain != command {
		// Text that looks like a command on the screen, or becomes one when a user cleans it up.
		if other := check(plain, ctx, stream{}); other.Verdict.Worse(verdict.Verdict) {
			return other
		}
	}
	return verdict
}

// CheckCode judges a script of another language by the commands in its string literals. Their purpose is unknown, so only
// commands that are always refused count.
func CheckCode(code string, ctx Context) Verdict {
	j := newJudge(ctx)
	code = clean(code)
	j.embedded(code, starting.MatchString(code))
	if j.worst.Verdict != Block {
		return Verdict{Verdict: Allow}
	}
	return j.worst
}

// check judges a command whose input is in.
func check(command string, ctx Context, in stream) Verdict {
	j := newJudge(ctx)
	if len(command) > MaxCommand {
		j.report("too-long")
		return j.worst
	}
	if ctx.Setup != "" && len(ctx.Setup) <= MaxCommand {
		j.code(ctx.Setup, stream{})
		j.worst, j.steps = Verdict{Verdict: Allow}, 0
	}
	if j.source = clean(command); tooDeep(j.source) {
		j.report("too-complex")
		return j.worst
	}
	j.code(j.source, in)
	return j.worst
}

// Rules returns the verdicts of all rules, by name.
func Rules() []Verdict {
	return slices.SortedFunc(maps.Values(table().rules), func(a, b Verdict) int { return strings.Compare(a.Rule, b.Rule) })
}

// Canonical removes differences in spacing from a command line, so that an answer about one spelling holds for the others. It
// returns text that is not bash unchanged.
func Canonical(command string) string {
	var b strings.Builder
	stmts, err := Parse(command)
	if err == nil {
		err = syntax.NewPrinter(syntax.Minify(true)).Print(&b, &syntax.File{Stmts: stmts})
	}
	if err != nil {
		return strings.TrimSpace(command)
	}
	return strings.TrimSpace(b.String())
}

// cleaner removes the bytes that have a meaning for the judge.
var cleaner = strings.NewReplacer(unknown, "", remote, "", decoded, "", pids, "", secret, "", "\x00", "")

func clean(text string) string { return cleaner.Replace(text) }

var terminalEscape = regexp.MustCompile(`\x1b(\[[^@-~]*[@-~]|\][^\x07]*\x07|.|$)`)

// unmask removes what hides a command from a reader: terminal escapes, invisible characters, and full-width letters.
func unmask(command string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xFF01 && r <= 0xFF5E:
			return r - 0xFF01 + '!'
		case r == 0x3000 || r == 0x00A0:
			return ' '
		case unicode.Is(unicode.Cf, r): // invisible
			return -1
		}
		return r
	}, terminalEscape.ReplaceAllString(command, ""))
}
