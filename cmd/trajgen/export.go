package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/progress"
)

// exportOptions are the flags of export.
type exportOptions struct {
	run.Exporting
	list, json bool
}

func newExport(std stdio) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export --run DIR --to FORMAT --out PATH",
		Short: "Write a run's episodes in another format",
		Long: `Writes what the journal holds, in dataset order. It may be done at any time and again: the same journal gives the same
bytes. An earlier export to the same place stands until the new one is whole. --from reads what runs and exports have
written instead of a journal: run directories, exports to parquet, arrow or hf, and files of an export to jsonl.

Formats (trajgen export --list has their settings, for --set):
` + export.FormatTexts() + `
What a format cannot carry is counted and said on stderr: episodes that it has no place for, such as those without a
reward where one is needed, and columns that it lacks. Error outcomes are episodes like all others: --where
'outcome == "success"' or 'reward > 0' is what most fine-tuning wants.

--where keeps the episodes for which a condition holds, in the language of https://expr-lang.org, such as
'reward >= 0.5 and "terminal" in tools and turns < 20', or, of tasks that are neither too easy nor too hard,
'group.mean >= 0.2 and group.mean <= 0.8'. A comparison with nil by < or > is false. A meta.NAME that
no episode has is refused; meta?.NAME asks for it all the same. It can ask about:
` + export.VariableTexts() + `
Then --dedupe leaves out repetitions within a task, and --per-task chooses among its samples: the best has the highest
reward, then the fewest tokens, then the lowest sample. What is left out stays in the journal.

--without-harness leaves out what the harness said and neither the dataset nor the model: messages that are flagged
(prefill, warnings), and in the system message the ephemeral system prompt and what was recalled. Token ids go with it,
since they are those of the conversation as it was.

A run that has not played all of its episodes is exported as far as it is, and the exit code is 3; with --partial, which says
that this is meant, it is 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.list {
				return listFormats(std, o.json)
			}
			work := func(ctx context.Context) error { return o.export(ctx, std) }
			return ending(cmd.Context(), "interrupted; nothing was written", work)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Run, "run", "", "run directory whose journal is exported")
	flags.StringVar(&o.To, "to", "", "format: "+strings.Join(export.Names(), ", "))
	flags.StringVar(&o.Out, "out", "", "file or directory to write; - is stdout")
	sharedFlags(flags, &o.Exporting)
	flags.StringVar(&o.Choice.Where, "where", "", "condition that an episode must meet (see above)")
	flags.StringVar(&o.Choice.PerTask, "per-task", "all", "samples of a task: all, best, or a number: so many of the best")
	flags.StringVar(&o.Choice.Dedupe, "dedupe", "none", "leave out samples that repeat an earlier one of the task: none, exact (the same messages) or answer (the same final answer)")
	flags.IntVar(&o.Choice.Max, "max", 0, "end after so many episodes (default: all)")
	flags.BoolVar(&o.WithoutHarness, "without-harness", false, "leave out what the harness said")
	flags.BoolVar(&o.Options.Inline, "inline-media", false, "put images into formats that have a place for them, as data URLs; rows name them in any case")
	flags.BoolVar(&o.list, "list", false, "list the formats with their settings")
	flags.BoolVar(&o.json, "json", false, "print what came of it on stdout as JSON: files, episodes, dropped (by reason) and notes")
	return cmd
}

func listFormats(std stdio, asJSON bool) error {
	if asJSON {
		return writeJSON(std.out, export.List())
	}
	for _, format := range export.List() {
		fmt.Fprint(std.out, format.Text())
	}
	return nil
}

func (o *exportOptions) validate() error {
	errs := []error{o.Exporting.Validate("export")}
	for _, flag := range [][2]string{{"to", o.To}, {"out", o.Out}} {
		if flag[1] == "" {
			errs = append(errs, fmt.Errorf("export needs --%s", flag[0]))
		}
	}
	if o.json && o.Out == "-" {
		errs = append(errs, errors.New("--json and --out - are both for stdout (want one of them)"))
	}
	return errors.Join(errs...)
}

func (o *exportOptions) export(ctx context.Context, std stdio) (err error) {
	if err := o.validate(); err != nil {
		return usage(err)
	}
	clear := func() {}
	if width, ok := terminal(std.err); ok {
		o.Watch = func(total int) func(*episode.Episode) {
			var one func()
			one, clear = progress.Count(std.err, total, width, "ep")
			return func(*episode.Episode) { one() }
		}
	}
	defer func() { clear() }()
	result, err := o.Write(ctx, std.out)
	if err != nil {
		return err
	}
	if o.json {
		err = writeJSON(std.out, result)
	} else {
		listWritten(std, o.Out, result.Files)
		leftOut(std, result)
	}
	return cmp.Or(err, withCode(exitErrors, o.Complete()))
}

// leftOut prints what an export lacks.
func leftOut(std stdio, result export.Result) {
	for _, reason := range slices.Sorted(maps.Keys(result.Dropped)) {
		fmt.Fprintf(std.err, "left out %d: %s\n", result.Dropped[reason], reason)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(std.err, "note: %s\n", note)
	}
}

// maxListed is how many files of a directory are listed one by one.
const maxListed = 20

// listWritten prints the written files, one path a line.
func listWritten(std stdio, out string, files []export.FileInfo) {
	within := func(file export.FileInfo) bool { return strings.HasPrefix(file.Path, out+string(filepath.Separator)) }
	beside := slices.DeleteFunc(slices.Clone(files), within)
	if n := len(files) - len(beside); n > maxListed {
		fmt.Fprintln(std.out, out)
		fmt.Fprintf(std.err, "%d files in %s\n", n, out)
		files = beside
	}
	for _, file := range files {
		fmt.Fprintln(std.out, file.Path)
	}
}

// sharedFlags are those that compress has, too.
func sharedFlags(flags *pflag.FlagSet, x *run.Exporting) {
	flags.StringArrayVar(&x.From, "from", nil, "run directory, directory of an export or file .jsonl that is read instead of a journal; may be given several times")
	flags.StringArrayVar(&x.Set, "set", nil, "setting of the format, as NAME=VALUE; may be given several times")
	flags.BoolVar(&x.Options.Unsound, "unsound", false, "in formats that trainers learn rewards from, keep episodes of tasks whose proof failed: whose reference solution fails, or whose verifier doing nothing or an attack passes")
	flags.BoolVar(&x.Options.Faulted, "include-faulted", false, "in formats that trainers learn from, keep episodes with planted faults and twins")
	flags.BoolVar(&x.Partial, "partial", false, "exit with 0, not 3, when the run has not played all of its episodes yet")
}
