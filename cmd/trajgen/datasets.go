package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	apply := bindFields(all, file.Settings())
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
			err = run.PrintDataset(std.out, seen)
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
