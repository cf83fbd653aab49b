// Package policy judges a command line before a shell gets it: allow, ask or block, with the rule that says so.
//
// It reads the line as bash does, into a syntax tree, and follows what the line would do without doing it: quotes,
// variables and functions of the same line, expansions whose text can be told, prefixes such as sudo and env, scripts
// that are handed to a shell by argument, pipe or here-document. What only a run would tell is unknown, and the rules
// are asked about the rest. It is a guard against accidents and against careless or planted commands, no sandbox:
// a program can do whatever its user may, and says nothing about it on its command line.
package policy

// Level is what may be done with a command.
type Level string

// The levels, from harmless to harmful.
const (
	Allow Level = "allow"
	Ask   Level = "ask"   // needs approval
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
	// Except are rules that were approved for good. Those that block are not among them.
	Except []string
}

// MaxCommand is the longest command that is read, in bytes. A longer one needs approval.
const MaxCommand = 128 << 10

// Check judges a bash command line. It may be called from many goroutines.
func Check(command string, ctx Context) Verdict {
	verdict := check(command, ctx, stream{})
	if plain := unmask(command); plain != command {
		// Text that looks like a command on the screen, or becomes one when a person cleans it up.
		if other := check(plain, ctx, stream{}); other.Verdict.Worse(verdict.Verdict) {
			return other
		}
	}
	return verdict
}

// CheckCode judges a script of another language by the commands that stand in it as plain text. What they are for cannot
// be told, and so only those count that are never run.
func CheckCode(code string, ctx Context) Verdict {
	j := newJudge(ctx)
	(&call{j: j}).destroys(clean(code))
	if j.worst.Verdict != Block {
		return Verdict{Verdict: Allow}
	}
	return j.worst
}

// check judges a command that reads from in.
func check(command string, ctx Context, in stream) Verdict {
	j := newJudge(ctx)
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
	j.code(j.source, in)
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
