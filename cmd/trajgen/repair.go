package main

import (
	"github.com/spf13/cobra"

	"trajgen/pipeline/run/check"
)

func newRepair(std stdio) *cobra.Command {
	var dir string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "repair --run DIR [--yes]",
		Short: "Take damaged bytes out of a run's journal, so that a resume plays what was lost",
		Long: `Reads every byte of a run's journal and names what is damaged: the segment, where in it, how long, and which attempts at
which episodes were there, as far as their heads or the segment's index file still tell. That is all it does without --yes.

With --yes the damaged bytes are moved into journal/damaged/, and each segment that had some is replaced whole by one without
them, so that trajgen run --resume plays again exactly what was lost. It may be killed at any moment and started again. A run
that is going on is refused.

Exit codes: 0 nothing is damaged, or it was taken out; 1 something is damaged and --yes was not given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := check.Repair(cmd.Context(), dir, yes)
			if found == nil {
				return err
			}
			if asJSON {
				if err := writeJSON(std.out, found); err != nil {
					return err
				}
			} else {
				found.Write(std.out)
			}
			if err == nil && !yes && found.Damaged() > 0 {
				err = withCode(exitFailed, errQuiet)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without, it is only said what would be done")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	_ = cmd.MarkFlagRequired("run")
	return cmd
}
