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

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/outputs/export"
	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/progress"
)

// exportOptions are the flags of export.
type exportOptions struct {
	run            string
	from           []string
	to, out        string
	set            []string
	choice         export.Choice
	withoutHarness bool
	inlineMedia    bool
	partial        bool
	unsound        bool
	faulted        bool
	list, json     bool

	images func(sha256 string) ([]byte, error) // of the source
	lacks  string                              // which episodes the run lacks; empty when it is complete or its plan is unknown
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
	flags.StringVar(&o.run, "run", "", "run directory whose journal is exported")
	flags.StringVar(&o.to, "to", "", "format: "+strings.Join(export.Names(), ", "))
	flags.StringVar(&o.out, "out", "", "file or directory to write; - is stdout")
	o.shared(flags)
	flags.StringVar(&o.choice.Where, "where", "", "condition that an episode must meet (see above)")
	flags.StringVar(&o.choice.PerTask, "per-task", "all", "samples of a task: all, best, or a number: so many of the best")
	flags.StringVar(&o.choice.Dedupe, "dedupe", "none", "leave out samples that repeat an earlier one of the task: none, exact (the same messages) or answer (the same final answer)")
	flags.IntVar(&o.choice.Max, "max", 0, "end after so many episodes (default: all)")
	flags.BoolVar(&o.withoutHarness, "without-harness", false, "leave out what the harness said")
	flags.BoolVar(&o.inlineMedia, "inline-media", false, "put images into formats that have a place for them, as data URLs; rows name them in any case")
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
	var errs []error
	if (o.run == "") == (len(o.from) == 0) {
		errs = append(errs, errors.New("export needs either --run RUN_DIRECTORY or --from PATH"))
	}
	for _, flag := range [][2]string{{"to", o.to}, {"out", o.out}} {
		if flag[1] == "" {
			errs = append(errs, fmt.Errorf("export needs --%s", flag[0]))
		}
	}
	if o.json && o.out == "-" {
		errs = append(errs, errors.New("--json and --out - are both for stdout (want one of them)"))
	}
	return errors.Join(errs...)
}

// settings are the values of --set.
func (o *exportOptions) settings() (map[string]string, error) {
	set := map[string]string{}
	var errs []error
	for _, text := range o.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("--set %q (want NAME=VALUE)", text))
		} else if had, twice := set[name]; twice && had != value {
			errs = append(errs, fmt.Errorf("--set %s is both %q and %q (want one of them)", name, had, value))
		}
		set[name] = value
	}
	return set, errors.Join(errs...)
}

func (o *exportOptions) export(ctx context.Context, std stdio) (err error) {
	set, wrong := o.settings()
	if err := errors.Join(o.validate(), wrong); err != nil {
		return usage(err)
	}
	o.out = filepath.Clean(o.out)
	source, notes, total, about, closeSource, err := o.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	if o.choice.Grouped() {
		total *= 2 // readings
	}
	if width, ok := terminal(std.err); ok {
		bar := progress.NewBar(std.err, total, max(10, min(30, width-50)), progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("ep"), progressbar.OptionClearOnFinish())
		source = export.Seen(source, func(*episode.Episode) { _ = bar.Add(1) })
		defer func() { _ = bar.Clear() }()
	}
	if o.withoutHarness {
		source = export.WithoutHarness(source)
	}
	if source, err = export.Choose(source, o.choice); err != nil {
		return usage(err)
	}
	result, err := run.ExportTo(ctx, std.out, source, o.to, o.out, export.Options{Set: set, Run: about, Images: o.images, Inline: o.inlineMedia, Unsound: o.unsound, Faulted: o.faulted})
	if err != nil {
		return err
	}
	if !export.Formats()[o.to].Rows {
		result.Notes = append(notes, result.Notes...)
	}
	result.Notes = append(result.Notes, o.partialNotes()...)
	if o.json {
		return cmp.Or(writeJSON(std.out, result), o.complete())
	}
	o.listFiles(std, result.Files)
	for _, reason := range slices.Sorted(maps.Keys(result.Dropped)) {
		fmt.Fprintf(std.err, "left out %d: %s\n", result.Dropped[reason], reason)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(std.err, "note: %s\n", note)
	}
	return o.complete()
}

// maxListed is how many files of a directory are listed one by one.
const maxListed = 20

// listFiles prints the written files, one path a line.
func (o *exportOptions) listFiles(std stdio, files []export.FileInfo) {
	within := func(file export.FileInfo) bool { return strings.HasPrefix(file.Path, o.out+string(filepath.Separator)) }
	beside := slices.DeleteFunc(slices.Clone(files), within)
	if n := len(files) - len(beside); n > maxListed {
		fmt.Fprintln(std.out, o.out)
		fmt.Fprintf(std.err, "%d files in %s\n", n, o.out)
		files = beside
	}
	for _, file := range files {
		fmt.Fprintln(std.out, file.Path)
	}
}

// shared are the flags that compress has, too.
func (o *exportOptions) shared(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.from, "from", nil, "run directory, directory of an export or file .jsonl that is read instead of a journal; may be given several times")
	flags.StringArrayVar(&o.set, "set", nil, "setting of the format, as NAME=VALUE; may be given several times")
	flags.BoolVar(&o.unsound, "unsound", false, "in formats that trainers learn rewards from, keep episodes of tasks whose proof failed: whose reference solution fails, or whose verifier doing nothing or an attack passes")
	flags.BoolVar(&o.faulted, "include-faulted", false, "in formats that trainers learn from, keep episodes with planted faults and twins")
	flags.BoolVar(&o.partial, "partial", false, "exit with 0, not 3, when the run has not played all of its episodes yet")
}

// partialNotes says which episodes are missing, if the export is meant to be partial.
func (o *exportOptions) partialNotes() []string {
	if !o.partial || o.lacks == "" {
		return nil
	}
	return []string{o.lacks}
}

// complete is the error of an export of a run that is not complete.
func (o *exportOptions) complete() error {
	if o.partial || o.lacks == "" {
		return nil
	}
	return withCode(exitErrors, fmt.Errorf("%s; trajgen run --resume plays the rest, and --partial says that what is there is meant", o.lacks))
}

// source opens the episodes to export, decoded ahead of the writer. The notes say which data of the format they lack.
func (o *exportOptions) source() (source export.Source, notes []string, total int, about export.Run, closeSource func() error, err error) {
	if o.run != "" {
		m, reader, err := run.OpenFinished(o.run)
		if err != nil {
			return nil, nil, 0, about, nil, err
		}
		o.lacks, o.images = m.Lacks(o.run, reader.Len()), media.Open(media.Dir(o.run)).Read
		return export.Ahead(reader), []string{}, reader.Len(), m.Exported(o.run), reader.Close, nil
	}
	files, err := export.OpenFiles(o.from...)
	if err != nil {
		return nil, nil, 0, about, nil, usage(err)
	}
	o.images = files.Image
	if m, err := run.ReadManifest(o.from[0]); err == nil && len(o.from) == 1 {
		about, o.lacks = m.Exported(o.from[0]), m.Lacks(o.from[0], files.Len())
	}
	return export.Ahead(files), files.Notes(), files.Len(), about, files.Close, nil
}
