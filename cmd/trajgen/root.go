package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"trajgen/outputs/journal"
	"trajgen/pipeline/run"
	"trajgen/pipeline/where/nearest"
)

// The exit codes that scripts rely on.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitErrors      = 3 // done, but too many episodes ended in an error outcome
	exitGate        = 4
	exitBudget      = 5 // the run's budget is spent; it can be resumed with more
	exitUndecided   = 6 // a gate came to no decision
	exitUntrusted   = 7 // what was measured cannot be trusted
	exitLocked      = 8 // another process writes the run directory
	exitInterrupted = 130
)

// stdio are the standard streams.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// terminal returns the width of w if it is a terminal, or else 0, and whether its lines can be rewritten.
func terminal(w io.Writer) (width int, ok bool) {
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, os.Getenv("TERM") != "dumb"
}

// paper is the layout of a page for w. For NO_COLOR see https://no-color.org.
func paper(w io.Writer) (width int, color bool) {
	width, ok := terminal(w)
	return width, ok && os.Getenv("NO_COLOR") == ""
}

func newRoot(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "trajgen",
		Short: "Turn a dataset of tasks into a dataset of agent trajectories",
		Long: `trajgen plays a dataset of tasks with a language model and tools, each episode in a sandbox of its own. It judges every
episode, and writes the trajectories with their tool calls to Parquet.

  trajgen run --dataset bundled --policy oracle    play the bundled tasks; this needs no model
  trajgen run -f run.yaml                          play an experiment
  trajgen run --resume --out runs/NAME             go on after a crash, an outage or Ctrl-C
  trajgen report runs/NAME                         see what came out

Exit codes:
    0  done
    1  failed
    2  the flags, the run file or the dataset are wrong; nothing was started
    3  done, but more episodes ended in an error outcome than the run file allows, or an export lacks episodes
    4  FAIL of a gate, or more harm than allowed
    5  the budget is spent; --resume with a higher one goes on
    6  a gate came to no decision
    7  what was measured cannot be trusted
    8  another process writes the run directory
  130  interrupted; --resume goes on`,
		Version:       run.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("trajgen {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := ""
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			hint = meantFlag(cmd, unknown.GetSpecifiedName())
		}
		return usage(fmt.Errorf("%w%s", err, cmp.Or(hint, fmt.Sprintf(" (see %s --help)", cmd.CommandPath()))))
	})
	section := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, cmd := range commands {
			cmd.GroupID = title
		}
		root.AddCommand(commands...)
	}
	cobra.EnableCommandSorting = false
	section("Play a dataset", keyed(newRun(std)), keyed(newCheck(std)), keyed(newAudit(std)), newDatasets(std), newCron(std))
	section("See what came out", takesRun(newReport(std)), newDiff(std), newGate(std), takesRun(newReliability(std)))
	section("Use the episodes", takesRun(newExport(std)), takesRun(keyed(newCompress(std))), newMerge(std))
	section("Trust a run directory", takesRun(newVerify(std)), takesRun(newRepair(std)))
	section("Tools and what episodes may use", keyed(newTools(std)), keyed(newToolsets(std)), newDistributions(std), newSkills(std), newCorpus(std), keyed(newMCP(std)), newSites(std), newTape(std), newTwin(std), newCommand(std))
	section("Sandboxes and this machine", newSetup(std), keyed(newDoctor(std)), keyed(newSandbox(std)), newImage(std), newServeModel(std))
	complete(root)
	return root
}

// meantFlag suggests the flag that was meant, or returns "".
func meantFlag(cmd *cobra.Command, name string) string {
	var flags []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, "--"+flag.Name) })
	return nearest.DidYouMean(name, flags)
}

// takesRun lets a command with the flag --run take the run directory as its argument instead.
func takesRun(cmd *cobra.Command) *cobra.Command {
	cmd.Use = strings.Replace(cmd.Use, "--run DIR", "[--run] DIR", 1)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		run := cmd.Flags().Lookup("run")
		switch {
		case len(args) == 1 && !run.Changed:
			return cmd.Flags().Set("run", args[0])
		case len(args) == 0 && !run.Changed && run.Annotations[cobra.BashCompOneRequiredFlag] != nil:
			return usage(fmt.Errorf("which run? give its directory: %s DIR", cmd.CommandPath()))
		}
		return cobra.NoArgs(cmd, args)
	}
	return cmd
}

// group makes a command that only has subcommands: an unknown one is an error, and without one it prints the help.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			return usage(fmt.Errorf("%s has no command %q (have %s)", cmd.CommandPath(), args[0], strings.Join(names, ", ")))
		}
		return cmd.Help()
	}
	return cmd
}

// codeError is an error that has chosen its exit code.
type codeError struct {
	code int
	err  error
}

func (c *codeError) Error() string { return c.err.Error() }
func (c *codeError) Unwrap() error { return c.err }

// usage marks an error that the user must resolve before anything starts.
func usage(err error) error { return withCode(exitUsage, err) }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	if _, chosen := codeOf(err); chosen {
		return err
	}
	return &codeError{code: code, err: err}
}

// codeOf is the exit code of an error, if it has one.
func codeOf(err error) (code int, chosen bool) {
	if coded, ok := errors.AsType[*codeError](err); ok {
		return coded.code, true
	}
	if errors.Is(err, journal.ErrLocked) {
		return exitLocked, true
	}
	if _, ok := errors.AsType[run.Mistake](err); ok {
		return exitUsage, true
	}
	return exitFailed, false
}

// errQuiet ends the command with a code and without a further message.
var errQuiet = errors.New("said")

// wrongUsage recognizes errors of cobra, which have no types.
var wrongUsage = regexp.MustCompile(`^unknown command|arg\(s\)|^required flag|flags in the group \[`)

// exitCode prints the error and returns the code.
func exitCode(err error, w io.Writer) int {
	if err == nil {
		return exitDone
	}
	code, chosen := codeOf(err)
	if !chosen && wrongUsage.MatchString(err.Error()) {
		code = exitUsage
	}
	if !errors.Is(err, errQuiet) {
		fmt.Fprintf(w, "trajgen: %s\n", err)
	}
	return code
}
