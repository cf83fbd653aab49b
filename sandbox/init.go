package sandbox

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"trajgen/sandbox/internal/self"
)

// Helper is a function of this program that runs inside a sandbox, as a process of its own.
type Helper = func(args []string, stdin io.Reader, stdout, stderr io.Writer) int

// helpers is written by init functions only.
var helpers = map[string]Helper{}

// RegisterHelper makes fn available to Command.Helper under a name. It is called from an init function of a package that
// command sandboxhelper imports, too: with a binary that scripts/build makes, sandboxes hold that small program. A second
// function of the same name panics.
func RegisterHelper(name string, fn Helper) {
	if _, ok := helpers[name]; ok {
		panic(fmt.Sprintf("sandbox helper %q registered twice", name))
	}
	helpers[name] = fn
}

// Init must be the first call of main, and of TestMain. This program starts itself again under other names, as broker, as
// process 1 of a sandbox and as helper; then Init does that job and does not return.
func Init() {
	if len(os.Args) == 0 {
		return
	}
	self.Play(os.Args[0])
	if os.Args[0] == self.Helper {
		os.Exit(runHelper(os.Args[1:]))
	}
	// A container passes the program's path as the first argument.
	if len(os.Args) > 1 && os.Args[1] == self.Helper {
		os.Exit(runHelper(os.Args[2:]))
	}
	self.KeepDescriptors()
}

func runHelper(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "no helper named")
		return 2
	}
	fn, ok := helpers[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown helper %q (have %q)\n", args[0], helperNames())
		return 127
	}
	return fn(args[1:], os.Stdin, os.Stdout, os.Stderr)
}

func helperNames() []string { return slices.Sorted(maps.Keys(helpers)) }

// Check refuses a command that no backend could run.
func (cmd *Command) Check() error {
	if cmd.Helper != "" {
		if _, ok := helpers[cmd.Helper]; !ok {
			return fmt.Errorf("helper %q: %w (have %q)", cmd.Helper, ErrNotFound, helperNames())
		}
		return nil
	}
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return fmt.Errorf("empty command: %w", ErrNotFound)
	}
	return nil
}
