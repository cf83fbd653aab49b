package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

func newDatasets(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "datasets",
		Short: "Look at datasets before anything is paid for",
	}
	return group(cmd, newDatasetsShow(std))
}

// datasetFlags are the flags of a run that choose its tasks.
var datasetFlags = []string{
	"map", "shape", "subset", "split", "skip-bad-rows", "where", "parts", "use-part", "shuffle", "seed", "stratify", "per-stratum", "slice", "max-tasks",
}

func newDatasetsShow(std stdio) *cobra.Command {
	file := run.Default()
	var n int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show PATH... [flags]",
		Short: "Print what a dataset is read as: files, fields, what the choice leaves, the first tasks",
		Long: `Reads a dataset as a run would, and prints its files and formats, how many tasks have which field, what each step of the
choice has left, and the first tasks in the order in which they would be played. Nothing is played.

` + stepsHelp,
		Example: `  trajgen datasets show tasks.csv
  trajgen datasets show data/ --split test --map gsm8k --where 'question contains "apples"' --n 1
  trajgen datasets show 'data/*.parquet' --stratify difficulty --max-tasks 100 --json`,
		Args: cobra.MinimumNArgs(1),
	}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	apply := bindFields(all, &file)
	for _, name := range datasetFlags {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().IntVar(&n, "n", 5, "how many tasks are printed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with whole tasks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := apply(); err != nil {
			return usage(err)
		}
		if n < 0 {
			return usage(fmt.Errorf("--n is %d; not below 0", n))
		}
		file.Dataset.Path = args
		seen, err := look(cmd.Context(), file, n)
		if err != nil {
			return usage(err)
		}
		if asJSON {
			err = writeJSON(std.out, seen)
		} else {
			err = seen.print(std)
		}
		if err == nil && len(seen.Broken) > 0 && !file.Dataset.SkipBadRows {
			err = usage(fmt.Errorf("%d rows are broken: a run stops there, or leaves them out with --skip-bad-rows", seen.BrokenRows))
		}
		return err
	}
	return cmd
}

// stepsHelp says in which order tasks are chosen.
const stepsHelp = `Which tasks are played is decided in steps, always in this order, each on what the one before has left:
  where      those for which a condition holds (https://expr-lang.org)
  part       those of --use-part, one of --parts
  shuffle    all of them, in an order drawn from the seed
  stratify   a sample with so many of each value of a field
  slice      those at some positions
  max-tasks  the first ones`

// seenDataset is the output of `datasets show --json`.
type seenDataset struct {
	datasets.About
	Tasks      int             `json:"tasks"`
	Steps      []datasets.Step `json:"steps"`
	Fields     map[string]int  `json:"fields"`   // how many tasks have it
	Metadata   map[string]int  `json:"metadata"` // likewise, of the keys that no field took
	Repeated   int             `json:"repeated"` // tasks with the id of an earlier one
	BrokenRows int             `json:"broken_rows"`
	Reasons    map[string]int  `json:"broken_by_reason"` // reasons without quoted texts and numbers
	Broken     []string        `json:"broken"`           // the first ones
	First      []*episode.Task `json:"first"`
}

// look reads a dataset to its end.
func look(ctx context.Context, file run.File, n int) (*seenDataset, error) {
	const most = 10
	seen := &seenDataset{Fields: map[string]int{}, Metadata: map[string]int{}, Reasons: map[string]int{}, Broken: []string{}, First: []*episode.Task{}}
	reported := false
	source, _, err := file.Dataset.Open(datasets.Options{
		Choice: file.Dataset.Choice(file.Seed, os.TempDir()), SkipBadRows: true,
		OnSkip: func(bad *datasets.RowError) {
			if reported {
				return
			}
			seen.broken(bad.Reason)
			if seen.BrokenRows++; seen.BrokenRows <= most {
				seen.Broken = append(seen.Broken, bad.Error())
			}
		},
		OnRepeat: func(string) {
			if !reported {
				seen.Repeated++
			}
		},
		OnChosen: func(steps []datasets.Step) { seen.Steps, reported = steps, true },
	})
	if err != nil {
		return nil, err
	}
	seen.About = source.About()
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			lines := append(seen.Broken, seen.reasons()...) // they may explain why no task could be read
			return nil, errors.New(strings.Join(append(lines, err.Error()), "\n"))
		}
		if err := seen.count(task); err != nil {
			return nil, err
		}
		if seen.Tasks++; seen.Tasks <= n {
			seen.First = append(seen.First, task)
		}
	}
	return seen, nil
}

// broken counts a broken row by its reason.
func (s *seenDataset) broken(reasons string) {
	const most = 1000 // reasons, as a hostile dataset may have ever new ones
	for reason := range strings.SplitSeq(reasons, "; ") {
		reason = particulars.ReplaceAllString(reason, "…")
		if s.Reasons[reason] > 0 || len(s.Reasons) < most {
			s.Reasons[reason]++
		}
	}
}

// particulars are the parts in which reasons of one kind differ: quoted texts and numbers.
var particulars = regexp.MustCompile(`"(\\.|[^"\\])*"|\b[0-9]+\b`)

// reasons are the most frequent ones, where several rows are broken.
func (s *seenDataset) reasons() (lines []string) {
	const most = 10
	if s.BrokenRows < 2 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(s.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Reasons[b], s.Reasons[a]), cmp.Compare(a, b))
	})
	for _, name := range names[:min(most, len(names))] {
		lines = append(lines, fmt.Sprintf("%d of %d broken rows: %s", s.Reasons[name], s.BrokenRows, name))
	}
	if more := len(names) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d other reasons", more))
	}
	return lines
}

func (s *seenDataset) count(task *episode.Task) error {
	encoded, err := json.Marshal(task)
	if err != nil {
		return fmt.Errorf("encode task %s: %w", task.ID, err)
	}
	var fields, metadata map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return fmt.Errorf("encode task %s: %w", task.ID, err)
	}
	for name := range fields {
		if name != "row" && name != "metadata" {
			s.Fields[name]++
		}
	}
	if len(task.Metadata) > 0 {
		if err := json.Unmarshal(task.Metadata, &metadata); err != nil {
			return fmt.Errorf("metadata of task %s: %w", task.ID, err)
		}
	}
	for name := range metadata {
		s.Metadata[name]++
	}
	return nil
}

func (s *seenDataset) print(std stdio) error {
	const most = 10
	fmt.Fprintf(std.out, "%d tasks\n", s.Tasks)
	if text := run.LeftOut(s.Steps); text != "" {
		fmt.Fprintln(std.out, text)
	}
	if s.Card.Name != "" || len(s.Card.License) > 0 {
		fmt.Fprintf(std.out, "card: %s, license %s\n", run.QuoteEmpty(s.Card.Name), run.QuoteEmpty(strings.Join(s.Card.License, ", ")))
	}
	fmt.Fprintf(std.out, "\nfiles (%d):\n", len(s.Files))
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for i, file := range s.Files {
		if i == most {
			fmt.Fprintf(table, "  and %d more\n", len(s.Files)-most)
			break
		}
		fmt.Fprintf(table, "  %s\t%s\n", file.Path, file.Format)
	}
	fmt.Fprintf(table, "\nfields\ttasks\n")
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		fmt.Fprintf(table, "  %s\t%d\n", name, s.Fields[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metadata)) {
		fmt.Fprintf(table, "  %s (metadata)\t%d\n", name, s.Metadata[name])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, task := range s.First {
		fmt.Fprintf(std.out, "\nrow %d, task %s\n", task.Row, task.ID)
		for _, message := range task.Prompt {
			fmt.Fprintf(std.out, "  %s: %s\n", message.Role, beginning(message.Content))
		}
		if len(task.Verify) > 0 {
			checks, err := json.Marshal(task.Verify)
			if err != nil {
				return err
			}
			fmt.Fprintf(std.out, "  verify: %s\n", beginning(string(checks)))
		}
	}
	if s.Repeated > 0 {
		fmt.Fprintf(std.out, "\n%d tasks have the id of an earlier one: they are played under ids of their own\n", s.Repeated)
	}
	for _, text := range s.Broken {
		fmt.Fprintf(std.out, "\nbroken: %s\n", text)
	}
	if reasons := s.reasons(); len(reasons) > 0 {
		fmt.Fprintf(std.out, "\n%s\n", strings.Join(reasons, "\n"))
	}
	return nil
}

// beginning is a text's first characters on one line.
func beginning(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
