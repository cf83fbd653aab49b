package main

import (
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/report"
	"trajgen/pipeline/run/check"
)

func newDiff(std stdio) *cobra.Command {
	return showing(std, &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Show what changed from one run to another, with intervals",
		Long: `Compares two run directories task by task: which tasks came out otherwise, and by how much the success rate, the
reward, turns, tokens, cost and time changed over the tasks that both runs have. Intervals are of the paired differences,
so that hard tasks and easy ones do not blur them; tasks count equally, however many samples they have. Episodes that ended
in an error are not samples. Where the experiments differ is said, too.`,
		Example: `  trajgen diff runs/monday runs/tuesday
  trajgen diff runs/base runs/tuned --json | jq '.changed[] | .task'`,
		Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, runs []string) (*report.Difference, error) {
		return check.Compare(cmd.Context(), runs[0], runs[1])
	}, func(w io.Writer, difference *report.Difference) error {
		width, color := paper(w)
		return difference.WriteTerminal(w, width, color)
	})
}
