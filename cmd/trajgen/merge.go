package main

import (
	"context"
	"errors"
	"fmt"

	"trajgen/pipeline/run/check"

	"github.com/spf13/cobra"
)

func newMerge(std stdio) *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge RUN RUN... --out DIR",
		Short: "Make one run directory of several that played parts of an experiment",
		Long: `Makes one run directory of several that played parts of the same experiment: other seeds, other samples, other tasks of the
same dataset (slice, split, where, use_part, max_tasks), or the same on other machines. Episodes are copied from journal to
journal as they are, with all their attempts; the Parquet files and the report are made anew, and run.json says what it was
made of.

An episode that several runs have is taken once when it is the same. Otherwise the one that is the agent's doing (success,
failure, limit) wins over one that ended in an error, then the higher attempt; where that does not tell them apart, nothing
is written and the episodes are named. Runs of another experiment are refused with the difference.

The directory appears when all of it is there. It can be resumed when the runs differed in nothing.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if out == "" {
				return usage(errors.New("merge needs --out DIR"))
			}
			var result check.Merged
			err := ending(cmd.Context(), "interrupted; nothing was written", func(ctx context.Context) (err error) {
				result, err = check.Merge(ctx, dirs, out)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, result)
			}
			for _, run := range result.Runs {
				fmt.Fprintf(std.out, "%d episodes of %s\n", run.Episodes, run.Name)
			}
			if result.Same+result.Settled > 0 {
				fmt.Fprintf(std.out, "%d were in several runs and the same, of %d the better one was taken\n", result.Same, result.Settled)
			}
			fmt.Fprintf(std.out, "%d episodes in %s\n", result.Episodes, out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "run directory to make")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what came of it as JSON")
	return cmd
}
