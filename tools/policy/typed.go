package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxTyped is how much of the lines that were typed is remembered, in bytes.
const maxTyped = 32 << 10

// Typed is what was typed into a program that runs: a shell goes on from there.
type Typed struct {
	Command string  // that started the program
	Context Context // of the shell that got the command
	// Exports is the part of Context.Setup that a program inherits: variables, and no functions or aliases.
	Exports string

	sent string // whole commands, which were judged
	line string // what has no end yet
}

// With is what data makes of the line that is being typed.
func (t Typed) With(data string) string { return t.line + data }

// Add judges what is typed next, together with what it completes. The state that it returns holds once that was sent.
// A program that reads commands is judged by them; any other by what its input makes of its command line.
func (t Typed) Add(data string, except []string) (Verdict, Typed) {
	if !opensShell(t.Command) {
		text := t.line + data
		t.line = begun(text[strings.LastIndexByte(text, '\n')+1:])
		ctx := t.Context
		ctx.Except = except
		verdict := check(t.Command, ctx, stream{text: clean(text), set: true})
		if verdict.Verdict.Worse(check(t.Command, ctx, stream{}).Verdict) {
			return verdict, t
		}
		return Verdict{Verdict: Allow}, t
	}
	text, sure := edited(t.line + data)
	verdict := t.judged(text, except)
	if !sure && verdict.Verdict == Allow && !slices.Contains(except, typedKeys) {
		r := ruleByID[typedKeys]
		verdict = Verdict{r.verdict, r.id, r.reason}
	}
	whole := text[:strings.LastIndexByte(text, '\n')+1]
	if t.line = begun(text); !unfinished(whole) {
		t.sent, t.line = remembered(t.sent+whole), begun(text[len(whole):])
	}
	if verdict.Rule == unparsable && unfinished(text) {
		return Verdict{Verdict: Allow}, t // the rest comes, and is judged with this
	}
	return verdict, t
}

// judged judges what a shell reads. Whether it is one that inherits nothing but variables, or the very one that has the
// functions and aliases, cannot be told from its command line for sure, and so the worse of both counts.
func (t Typed) judged(text string, except []string) Verdict {
	worst := Verdict{Verdict: Allow}
	for _, setup := range slices.Compact([]string{t.Exports, t.Context.Setup}) {
		ctx := t.Context
		ctx.Except, ctx.Setup = except, before(setup, t.sent)
		if verdict := Check(text, ctx); verdict.Verdict.Worse(worst.Verdict) {
			worst = verdict
		}
	}
	return worst
}

// before is what ran before: setup, as long as it leaves room for what was typed.
func before(setup, sent string) string {
	if len(setup)+1+len(sent) > MaxCommand {
		return sent
	}
	return strings.TrimPrefix(setup+"\n"+sent, "\n")
}

// begun is the beginning of a line, so long that a longer one is still too long to be judged.
func begun(line string) string { return line[:min(len(line), MaxCommand+1)] }

// remembered is the end of what was typed, from the beginning of a line on where there is one.
func remembered(text string) string {
	if len(text) <= maxTyped {
		return text
	}
	text = text[len(text)-maxTyped:]
	return text[strings.IndexByte(text, '\n')+1:]
}

// unfinished says whether a shell waits for more before it does something.
func unfinished(text string) bool {
	if strings.HasSuffix(text, "\\\n") && !strings.HasSuffix(text, "\\\\\n") {
		return true
	}
	_, err := parse(text)
	return err != nil && syntax.IsIncomplete(err)
}

// edited is the text that keys make on a terminal, and whether that can be told.
func edited(keys string) (string, bool) {
	if len(keys) > MaxCommand {
		return keys, false // too long to be judged
	}
	out := make([]byte, 0, len(keys))
	moved, begin := false, 0 // of the line
	for _, key := range []byte(keys) {
		switch {
		case key == '\r' || key == '\n':
			out = append(out, '\n')
			begin = len(out)
		case key == 0x03 || key == 0x15: // interrupt, kill the line
			out = out[:begin]
		case key == 0x04: // end of file
		case key == 0x08 || key == 0x7f:
			out = out[:max(begin, len(out)-1)]
		case key == '\t' && len(out) > 0 && strings.IndexByte(" \t\n", out[len(out)-1]) < 0:
			out = append(out, '*') // completed to what is there
		case key == '\t':
			out = append(out, ' ')
		case key < ' ':
			moved = true
		default:
			out = append(out, key)
		}
	}
	return string(out), !moved || strings.TrimSpace(string(out)) == ""
}
