package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Bounds of a foreground command.
const (
	terminalTimeout    = 180
	terminalMaxTimeout = 600
	terminalGrace      = time.Second
	terminalOutput     = 50_000 // characters
	maxCommand         = 1 << 20
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "terminal", Toolset: terminalToolset,
		Description: "Run a bash command on the Linux machine. Returns output (stdout and stderr together), exit_code and " +
			"error. The working directory, exported variables, functions, aliases and shell options carry over from one " +
			"call to the next; plain variables do not. Standard input is empty, so use non-interactive flags.\n" +
			"Foreground (default): returns when the command ends, at most after timeout seconds. Not for servers and " +
			"watchers: '&', nohup, setsid and disown are refused.\n" +
			"background=true: starts the command and returns a session_id at once; follow it with the process tool. Use it " +
			"for servers and for whatever takes longer than 10 minutes.\n" +
			"pty=true: runs it on a terminal, for programs that insist on one; with background=true you can answer them.\n" +
			"Output over 50,000 characters is cut in the middle. To read, search and edit files prefer the file tools when " +
			"you have them.",
		Timeout: (terminalMaxTimeout + 30) * time.Second,
		// Characters can take several bytes, and more when escaped in JSON.
		MaxResult: 8 * terminalOutput,
	}, terminal))
}

type terminalArgs struct {
	_ struct{} `idle:"shell=bash,shell=/bin/bash,interactive=false,language=bash,blocking=true"`

	Command    string   `json:"command" alias:"cmd,command_line,shell_command,bash_command" doc:"The bash command line, of any length, several lines allowed." example:"ls -a"`
	Background bool     `json:"background,omitempty" alias:"is_background,run_in_background" doc:"Start the command and return at once with a session_id." default:"false"`
	Timeout    int      `json:"timeout,omitempty" alias:"timeout_seconds,timeout_secs,timeout_sec,timeout_s" doc:"Seconds until a foreground command is killed, at most 600." default:"180" min:"1"`
	Workdir    string   `json:"workdir,omitempty" alias:"cwd,working_dir,working_directory,work_dir,directory" doc:"Directory for this one call; relative paths start at the current one."`
	Pty        bool     `json:"pty,omitempty" alias:"tty,use_pty" doc:"Run on a pseudo terminal of 24 by 80." default:"false"`
	Notify     bool     `json:"notify_on_complete,omitempty" doc:"Have the next process call after a background command's end tell of it." default:"false"`
	Watch      []string `json:"watch_patterns,omitempty" doc:"Have process calls tell which output lines of a background command contain one of these texts; process wait then returns at such a line, e.g. when a server is ready." maxitems:"20"`
}

type terminalResult struct {
	Output   string  `json:"output"`
	ExitCode int     `json:"exit_code"`
	Error    *string `json:"error"`
	Meaning  string  `json:"exit_code_meaning,omitempty"`
}

func terminal(ctx context.Context, env *registry.Env, args terminalArgs) (any, error) {
	if args.Timeout == 0 {
		args.Timeout = terminalTimeout
	}
	if err := args.check(); err != nil {
		return nil, err
	}
	if name := args.outsideOnly(); name != "" && env.Parent != "" {
		return nil, notRun("not_in_scripts", "%s is not available in execute_code; call the terminal tool itself", name)
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	if args.Background {
		return startBackground(ctx, env, box, args)
	}
	return runForeground(ctx, env, box, args)
}

func (a terminalArgs) check() error {
	switch {
	case strings.ContainsRune(a.Command, 0):
		return notRun("invalid_command", "the command contains a NUL character")
	case len(a.Command) > maxCommand:
		return notRun("invalid_command", "the command has %d bytes; put what is over %d into a file", len(a.Command), maxCommand)
	case strings.ContainsRune(a.Workdir, 0):
		return notRun("invalid_path", "workdir contains a NUL character")
	case a.Background:
		return nil
	case a.Timeout > terminalMaxTimeout:
		return notRun("timeout_too_long", "timeout %d s is over the limit of %d s for a foreground command; "+
			"start it with background=true and follow it with the process tool", a.Timeout, terminalMaxTimeout)
	}
	return checkForeground(a.Command)
}

// outsideOnly returns the arguments that scripts cannot use: a script has ended when the model reads their effect.
func (a terminalArgs) outsideOnly() string {
	switch {
	case a.Background:
		return "background"
	case a.Pty:
		return "pty"
	case a.Notify:
		return "notify_on_complete"
	case len(a.Watch) > 0:
		return "watch_patterns"
	}
	return ""
}

// notRun is the failure for a command that was not started, in the shape of a result.
func notRun(class, format string, args ...any) *registry.Failure {
	failure := registry.Failf(class, format, args...)
	failure.Extra = map[string]any{"output": "", "exit_code": -1}
	return failure
}

// The size of a terminal is the backend's.
func (a terminalArgs) tty() *sandbox.TTY {
	if a.Pty {
		return &sandbox.TTY{}
	}
	return nil
}

// endOfFile is the keyboard's end-of-file character.
const endOfFile = "\x04"

// endsOfFile types the end-of-file character into a terminal without a user: a program that reads finds the end of input, as
// without a terminal. One character is not enough, as each ends one read, and programs discard earlier input. The pauses grow,
// as unread characters fill the terminal's buffer.
type endsOfFile struct {
	ended <-chan struct{}
	pause time.Duration
}

func (e *endsOfFile) Read(p []byte) (int, error) {
	select {
	case <-e.ended:
		return 0, io.EOF
	case <-time.After(e.pause):
		e.pause = min(max(100*time.Millisecond, e.pause*3/2), 2*time.Second)
		return copy(p, endOfFile), nil
	}
}

func runForeground(ctx context.Context, env *registry.Env, box sandbox.Sandbox, args terminalArgs) (any, error) {
	shell := shellOf(env.Session)
	given, direct := shell.giveDirect(box.Layout(), args)
	if !direct {
		given = shell.give(box.Layout(), args)
	}
	output := newCapture(terminalOutput, "chars")
	output.cleaner.terminal = args.Pty
	ran, err := given.run(ctx, box, args, output)
	if direct && !ran.started && ctx.Err() == nil && !errors.Is(err, sandbox.ErrGone) {
		// A shell reports a program that cannot be started, and a missing directory, in its own words.
		given = shell.give(box.Layout(), args)
		ran, err = given.run(ctx, box, args, output)
	}
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, sandbox.ErrGone):
		return nil, interrupted(ctx, "the command", map[string]any{
			"output": withLine(output.text(), "[Command interrupted]"), "exit_code": 130,
		})
	case err != nil:
		return nil, startFailure(err)
	case given.refused(ran.report):
		return nil, noWorkdir(args.Workdir)
	case errors.Is(ran.stopped, errTimedOut):
		return nil, &registry.Failure{
			Class: "timeout", Status: episode.CallTimeout,
			Message: fmt.Sprintf("the command did not end within %d s and was killed; give it a longer timeout (at most %d) "+
				"or background=true", args.Timeout, terminalMaxTimeout),
			Extra: map[string]any{
				"output": withLine(output.text(), fmt.Sprintf("[Command timed out after %ds]", args.Timeout)), "exit_code": 124,
			},
		}
	case errors.Is(ran.stopped, errFlood):
		return nil, &registry.Failure{
			Class: "output_flood", Message: "the command was killed because it printed more than 64 MiB",
			Extra: map[string]any{"output": output.text(), "exit_code": ran.exit.Code},
		}
	}
	env.ExitCode = new(ran.exit.Code)
	// It depends on timing whether a killed command can report, so its changes are dropped above.
	shell.remember(given, ran.report)
	result := terminalResult{Output: output.text(), ExitCode: ran.exit.Code, Meaning: exitMeaning(args.Command, ran.exit.Code)}
	if meaning := limitsMeaning(ran.exit); meaning != "" {
		result.Meaning = meaning
	}
	return result, nil
}

// shellRun is how a command ended.
type shellRun struct {
	exit    sandbox.Exit
	stopped error // the cause of its kill; nil if it ended by itself
	report  []byte
	started bool
}

// run runs a command with its input.
func (g given) run(ctx context.Context, box sandbox.Sandbox, args terminalArgs, output *capture) (ran shellRun, err error) {
	cmd := g.shellCommand(foreground, box.Layout())
	cmd.Stdout, cmd.Stderr, cmd.TTY = output, output, args.tty()
	if args.Pty {
		ended, end := context.WithCancel(ctx)
		defer end()
		cmd.Stdin = &endsOfFile{ended: ended.Done()}
	}
	ran.exit, ran.stopped, err = run(ctx, box, cmd, bounds{time.Duration(args.Timeout) * time.Second, terminalGrace},
		func(_ context.Context, proc sandbox.Process) {
			ran.started = true
			ran.report = g.talk(proc)
		})
	return ran, err
}

// withLine appends a line to output, which it first cuts to fit the limit.
func withLine(output, line string) string {
	if output == "" {
		return line
	}
	fit := newCapture(terminalOutput-len(line)-1, "chars")
	_, _ = fit.Write([]byte(output)) // a capture never fails
	return fit.text() + "\n" + line
}

func noWorkdir(dir string) error {
	return notRun("not_found", "workdir %q is not a directory that can be entered; nothing was run", dir)
}

// startFailure makes the failure for a command that could not be started. It returns the loss of the sandbox and the end of the
// call unchanged.
func startFailure(err error) error {
	if errors.Is(err, sandbox.ErrNotFound) {
		return notRun("command_not_found", "bash is not available in this sandbox")
	}
	return err
}
