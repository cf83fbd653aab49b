package tools

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"trajgen/tools/internal/chars"
)

// PromptApprover asks a user at a terminal, one question at a time. Text typed before a question was shown does not answer it:
// it may have been meant for the previous question, whose time was up.
type PromptApprover struct {
	In   io.Reader
	Out  io.Writer
	Time time.Duration // 0 is ApproveTime

	once    sync.Once
	turn    chan struct{} // held by the goroutine that asks
	closed  chan struct{} // closed when the terminal's input has ended
	reading sync.Once
	asked   atomic.Pointer[prompt] // the question on the terminal; nil between questions
}

// prompt is a question on the terminal.
type prompt struct {
	lines chan string
	done  chan struct{} // closed when the question is withdrawn
}

// Approve implements Approver.
func (a *PromptApprover) Approve(ctx context.Context, q Question) (Answer, error) {
	a.once.Do(func() { a.turn, a.closed = make(chan struct{}, 1), make(chan struct{}) })
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	late := time.After(cmp.Or(a.Time, ApproveTime))
	fmt.Fprintf(a.Out, "\nThe agent wants to run a command that %s (rule %s):\n\n  %s\n\n", q.Reason, q.Rule, shownCommand(q.Command))
	const choice = "Run it? [o]nce, for this [s]ession, [a]lways, [d]eny: "
	fmt.Fprint(a.Out, choice)
	p := &prompt{lines: make(chan string), done: make(chan struct{})}
	defer close(p.done)
	a.asked.Store(p)
	defer a.asked.Store(nil)
	a.reading.Do(func() { go a.read() }) // as long as the program lives: a read from a terminal cannot be cancelled
	for {
		select {
		case line := <-p.lines:
			if decision := chosen(line); decision != "" {
				return Answer{Decision: decision, By: "prompt"}, nil
			}
			fmt.Fprint(a.Out, choice)
		case <-a.closed:
			return Answer{Decision: ApproveDeny, Reason: "the terminal was closed", By: "prompt"}, nil
		case <-late:
			fmt.Fprintln(a.Out, "no answer: denied")
			return Answer{Decision: ApproveDeny, Reason: "no answer in time", By: "prompt"}, nil
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		}
	}
}

// maxAnswer bounds a line, in bytes; a longer one is not an answer.
const maxAnswer = 100

// read passes each line to the question that was shown when the line's first character came, and drops the line if that
// question is over. It never blocks on anything else, so that it has read earlier input before the next question.
func (a *PromptApprover) read() {
	defer close(a.closed)
	var line []byte
	var to *prompt
	buffer := make([]byte, 4096)
	for {
		n, err := a.In.Read(buffer)
		shown := a.asked.Load()
		for text := buffer[:n]; len(text) > 0; {
			if len(line) == 0 {
				to = shown
			}
			part, rest, ended := bytes.Cut(text, []byte{'\n'})
			text = rest
			line = append(line, part[:min(len(part), maxAnswer)]...)
			line = line[:min(len(line), maxAnswer)]
			if ended {
				to.receive(string(line))
				line = nil
			}
		}
		if err != nil {
			if len(line) > 0 {
				to.receive(string(line))
			}
			return
		}
	}
}

// receive handles a line, perhaps empty, that was typed while p was shown.
func (p *prompt) receive(line string) {
	if p == nil {
		return
	}
	select {
	case p.lines <- line:
	case <-p.done:
	}
}

func chosen(line string) string {
	line = strings.ToLower(strings.TrimSpace(line))
	for _, decision := range decisions {
		if line == decision || line == decision[:1] {
			return decision
		}
	}
	return ""
}

// shownCommand returns a command as it is shown on a terminal: it spells out control characters and invisible characters.
func shownCommand(command string) string {
	var b strings.Builder
	for _, r := range chars.First(command, 4000, "...") {
		switch {
		case r == '\n':
			b.WriteString("\n  ")
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, "\\U%08x", r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
