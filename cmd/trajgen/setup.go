package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

// keyed lets a command find keys in a file of them.
func keyed(cmd *cobra.Command) *cobra.Command {
	path := cmd.PersistentFlags().String("env-file", ".env", "file of NAME=value lines with keys, for variables that the environment lacks")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		_, err := loadKeys(cmd.ErrOrStderr(), *path, cmd.Flags().Changed("env-file"))
		return err
	}
	return cmd
}

func loadKeys(w io.Writer, path string, must bool) (names []string, err error) {
	names, warning, err := setup.Load(path, must)
	if warning != "" {
		fmt.Fprintf(w, "trajgen: %s\n", warning)
	}
	return names, usage(err)
}

type setupOptions struct {
	draft setup.Draft
	setup.Script
	quiet, json bool
}

func newSetup(std stdio) *cobra.Command {
	var o setupOptions
	file := run.Default()
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Say what toolsets need, try keys, and write them and a run file",
		Long: `Says which keys and which sections of a run file each toolset needs, asks for those that you want to use, tries the keys, and
writes them to a file that you alone can read (mode 0600), and the rest to a run file. Keys are never shown. Commands that
play episodes or call tools read .env in the working directory; what the environment has wins.

With --non-interactive nothing is asked, and every flag of trajgen run is a setting of the run file that is written. Without
one, the run file that is there stays, and counts for what is shown and tried.`,
		Example: `  trajgen setup
  trajgen setup --non-interactive --set MY_KEY="$KEY" --model my-model --base-url http://localhost:8000/v1 --api-key-env MY_KEY
  trajgen setup --non-interactive --policy oracle --toolsets file,web --with 'media: {image: fal}' --file images.yaml`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	apply := bindFields(flags, file.Settings())
	settable := slices.DeleteFunc(file.Settings(), func(s run.Setting) bool { return s.Help == "" })
	for _, s := range settable {
		_ = flags.MarkHidden(s.Flag) // trajgen run --help shows them
	}
	flags.StringVar(&o.draft.EnvFile, "env-file", ".env", "file of keys that is read and written")
	flags.StringVarP(&o.draft.RunFile, "file", "f", "run.yaml", "run file that is written")
	flags.BoolVar(&o.quiet, "non-interactive", false, "ask nothing; what follows goes with it")
	flags.StringArrayVar(&o.Set, "set", nil, "write NAME=VALUE to the file of keys; repeat for more")
	flags.BoolVar(&o.FromEnv, "from-env", false, "write the keys that the environment has to the file of keys")
	flags.StringArrayVar(&o.With, "with", nil, "a part of the run file, as YAML; repeat for more")
	flags.BoolVar(&o.Try, "try", false, "try the keys that are set; each is one request, and that of a search may cost something")
	flags.BoolVar(&o.json, "json", false, "as JSON")
	flags.BoolVar(&o.Force, "force", false, "replace a run file that is there")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.draft.Loaded, err = loadKeys(std.err, o.draft.EnvFile, false); err != nil {
			return err
		}
		if err := apply(); err != nil {
			return usage(err)
		}
		for _, s := range settable {
			if flags.Changed(s.Flag) {
				o.draft.Set(s.Key, s.Value.Interface())
			}
		}
		return ending(cmd.Context(), setup.ErrGivenUp.Error(), func(ctx context.Context) error {
			if o.quiet {
				return o.write(ctx, std)
			}
			return o.ask(ctx, std)
		})
	}
	return cmd
}

// write does what the flags say.
func (o *setupOptions) write(ctx context.Context, std stdio) error {
	result, err := o.draft.Run(ctx, o.Script)
	switch {
	case err != nil:
		return usage(err)
	case o.json:
		return writeJSON(std.out, result)
	}
	return o.draft.Print(std.out, std.err, result)
}

// ask has a person at a terminal fill the draft.
func (o *setupOptions) ask(ctx context.Context, std stdio) error {
	in, isFile := std.in.(*os.File)
	_, isTerminal := terminal(std.out)
	switch {
	case len(o.Set)+len(o.With)+len(o.draft.Parts) > 0 || o.FromEnv || o.Try || o.json:
		return usage(errors.New("only --env-file, --file and --force go without --non-interactive"))
	case !isFile || !term.IsTerminal(int(in.Fd())) || !isTerminal:
		return usage(errors.New("setup cannot ask without a terminal: say --non-interactive (trajgen setup --help shows how)"))
	}
	err := o.draft.Ask(ctx, setup.NewTerminal(in, std.out), o.Force)
	if errors.Is(err, setup.ErrGivenUp) {
		return withCode(exitInterrupted, err)
	}
	return usage(err)
}
