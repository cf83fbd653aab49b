package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxTyped bounds the remembered input, in bytes.
const maxTyped = 32 << 10

// Typed is what was typed into a running program: a shell that it starts reads the rest.
type Typed struct {
	Command string  // the command that started the program
	Context Context // of the shell that got the command
	// Exports is the part of Context.Setup that a program inherits: variables, without functions and aliases.
	Exports string

	sent string // complete commands, which were judged
	line string // a line without an end yet
}

// opensShell reports whether a command line starts a shell, or a similar program, that reads commands from its input.
func opensShell(command string) bool {
	j := newJudge(Context{})
	j.code(clean(command), stream{})
	return j.opens || j.worst.Rule == "unparsable" || j.worst.Rule == "too-complex" // it may
}

// With returns the unfinished line followed by data.
func (t Typed) With(data string) string { return t.line + data }

// Add judges input together with the unfinished line that it completes. The returned state holds once the input was sent. A
// program that reads commands is judged by those; another program by its command line with this input.
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
	if !sure && verdict.Verdict == Allow && !slices.Contains(except, "typed-keys") {
		verdict = table().rules["typed-keys"]
	}
	whole := text[:strings.LastIndexByte(text, '\n')+1]
	if t.line = begun(text); !unfinished(whole) {
		t.sent, t.line = remembered(t.sent+whole), begun(text[len(whole):])
	}
	if verdict.Rule == "unparsable" && unfinished(text) {
		return Verdict{Verdict: Allow}, t // it is judged with the rest of the command
	}
	return verdict, t
}

// judged judges what a shell reads. The command line does not tell whether the shell is a child, which inherits only variables,
// or the shell itself with its functions and aliases, so the worse verdict of both counts.
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

// before returns the code that ran before: setup, unless it leaves no room for sent.
func before(setup, sent string) string {
	if len(setup)+1+len(sent) > MaxCommand {
		return sent
	}
	return strings.TrimPrefix(setup+"\n"+sent, "\n")
}

// begun cuts a line to a length at which it is still too long to be judged.
func begun(line string) string { return line[:min(len(line), MaxCommand+1)] }

// remembered returns the end of the input, from the beginning of a line where possible.
func remembered(text string) string {
	if len(text) <= maxTyped {
		return text
	}
	text = text[len(text)-maxTyped:]
	return text[strings.IndexByte(text, '\n')+1:]
}

// unfinished reports whether a shell waits for more input before it runs anything.
func unfinished(text string) bool {
	if strings.HasSuffix(text, "\\\n") && !strings.HasSuffix(text, "\\\\\n") {
		return true
	}
	_, err := Parse(text)
	return err != nil && syntax.IsIncomplete(err)
}

// edited returns the text that keys make on a terminal, and whether that is known.
func edited(keys string) (string, bool) {
	if len(keys) > MaxCommand {
		return keys, false // too long to be judged
	}
	out := make([]byte, 0, len(keys))
	moved, begin := false, 0 // in the line
	for _, key := range []byte(keys) {
		switch {
		case key == '\r' || key == '\n':
			out = append(out, '\n')
			begin = len(out)
		case key == 0x03 || key == 0x15: // interrupt, kill line
			out = out[:begin]
		case key == 0x04: // end of file
		case key == 0x08 || key == 0x7f:
			out = out[:max(begin, len(out)-1)]
		case key == '\t' && len(out) > 0 && strings.IndexByte(" \t\n", out[len(out)-1]) < 0:
			out = append(out, '*') // completion with an existing name
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
