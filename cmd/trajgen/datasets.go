package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/datasets"
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
		seen, err := file.Dataset.Look(cmd.Context(), file.Seed, os.TempDir(), n)
		if err != nil {
			return usage(err)
		}
		if asJSON {
			err = writeJSON(std.out, seen)
		} else {
			err = printDataset(std, seen)
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

// printDataset prints what a dataset is read as.
func printDataset(std stdio, s *datasets.Seen) error {
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
	if reasons := s.Frequent(); len(reasons) > 0 {
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
