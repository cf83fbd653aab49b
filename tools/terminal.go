package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// The bounds of a foreground command.
const (
	terminalTimeout    = 180
	terminalMaxTimeout = 600
	terminalOutput     = 50_000 // characters
	maxCommand         = 1 << 20
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "terminal", Toolset: terminalToolset,
		Description: "Run a bash command on the Linux machine. Returns output (stdout and stderr together), exit_code and " +
			"error. The working directory and exported variables carry over from one call to the next; shell functions, " +
			"aliases and plain variables do not. Standard input is empty, so use non-interactive flags.\n" +
			"Foreground (default): returns when the command ends, at most after timeout seconds. Not for servers and " +
			"watchers: '&', nohup, setsid and disown are refused.\n" +
			"background=true: starts the command and returns a session_id at once; follow it with the process tool. Use it " +
			"for servers and for whatever takes longer than 10 minutes.\n" +
			"Output over 50,000 characters is cut in the middle. To read, search and edit files prefer the file tools when " +
			"you have them.",
		Timeout: (terminalMaxTimeout + 30) * time.Second,
		// Characters can take several bytes, and more when escaped in JSON.
		MaxResult: 8 * terminalOutput,
	}, terminal))
}

type terminalArgs struct {
	Command    string `json:"command" doc:"The bash command line, of any length, several lines allowed." example:"ls -a"`
	Background bool   `json:"background,omitempty" doc:"Start the command and return at once with a session_id." default:"false"`
	Timeout    int    `json:"timeout,omitempty" doc:"Seconds until a foreground command is killed, at most 600." default:"180" min:"1"`
	Workdir    string `json:"workdir,omitempty" doc:"Directory for this one call; relative paths start at the current one."`
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
	switch {
	case strings.ContainsRune(args.Command, 0):
		return nil, registry.Failf("invalid_command", "the command contains a NUL character")
	case len(args.Command) > maxCommand:
		return nil, registry.Failf("invalid_command", "the command has %d bytes; put what is over %d into a file",
			len(args.Command), maxCommand)
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	if args.Background {
		return startBackground(ctx, env, box, args)
	}
	if args.Timeout > terminalMaxTimeout {
		return nil, registry.Failf("timeout_too_long", "timeout %d s is over the limit of %d s for a foreground command; "+
			"start it with background=true and follow it with the process tool", args.Timeout, terminalMaxTimeout)
	}
	if err := checkForeground(args.Command); err != nil {
		return nil, err
	}
	return runForeground(ctx, env, box, args)
}

func runForeground(ctx context.Context, env *registry.Env, box sandbox.Sandbox, args terminalArgs) (any, error) {
	shell := shellOf(env.Session)
	input := shell.input(box.Layout(), args.Workdir, args.Command)
	output := newCapture(terminalOutput, "chars")
	cmd := shellCommand(foreground, box.Layout())
	cmd.Stdout, cmd.Stderr = output, output
	entered := true
	exit, stopped, err := run(ctx, box, cmd, time.Duration(args.Timeout)*time.Second,
		func(ctx context.Context, proc sandbox.Process) { entered = shell.serve(ctx, proc, input, args.Workdir) })
	switch {
	case err != nil:
		return nil, startFailure(err)
	case !entered:
		return nil, noWorkdir(args.Workdir)
	case errors.Is(stopped, errTimedOut):
		return nil, timedOut(output, args.Timeout)
	case errors.Is(stopped, errFlood):
		return nil, &registry.Failure{
			Class: "output_flood", Message: "the command was killed because it printed more than 64 MiB",
			Extra: map[string]any{"output": output.text(), "exit_code": exit.Code},
		}
	}
	result := terminalResult{Output: output.text(), ExitCode: exit.Code, Meaning: exitMeaning(args.Command, exit.Code)}
	if meaning := limitsMeaning(exit); meaning != "" {
		result.Meaning = meaning
	}
	return result, nil
}

func timedOut(output *capture, seconds int) error {
	text := output.text()
	if text != "" {
		text += "\n"
	}
	return &registry.Failure{
		Class: "timeout", Status: episode.CallTimeout,
		Message: fmt.Sprintf("the command did not end within %d s and was killed; give it a longer timeout (at most %d) "+
			"or background=true", seconds, terminalMaxTimeout),
		Extra: map[string]any{"output": text + fmt.Sprintf("[Command timed out after %ds]", seconds), "exit_code": 124},
	}
}

func noWorkdir(dir string) error {
	return registry.Failf("not_found", "workdir %q is not a directory that can be entered; nothing was run", dir)
}

// startFailure words the error of a command that could not be started. A lost sandbox and the end of the call are no
// matter for the model and pass as they are.
func startFailure(err error) error {
	if errors.Is(err, sandbox.ErrNotFound) {
		return registry.Failf("command_not_found", "bash is not available in this sandbox")
	}
	return err
}
