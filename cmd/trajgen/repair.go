package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/journal"
	"trajgen/pipeline/run"
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
			if _, err := run.ReadManifest(dir); err != nil {
				return err
			}
			damages, replayed, err := journal.Repair(cmd.Context(), run.JournalDir(dir), yes, nil)
			if errors.Is(err, journal.ErrLocked) {
				return err
			}
			found := repaired{Run: dir, Damage: damages, Replayed: replayed, Repaired: yes && err == nil}
			if asJSON {
				if err := writeJSON(std.out, found.lists()); err != nil {
					return err
				}
			} else {
				found.write(std.out)
			}
			if err == nil && !yes && found.damaged() > 0 {
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

// repaired is the damage that was found, and whether it was removed.
type repaired struct {
	Run      string           `json:"run"`
	Repaired bool             `json:"repaired"`
	Damage   []journal.Damage `json:"damage"`
	Replayed []string         `json:"played_again"` // known ids without any remaining attempt
}

// lists replaces nil lists by empty ones, for JSON.
func (r repaired) lists() repaired {
	if r.Damage == nil {
		r.Damage = []journal.Damage{}
	}
	if r.Replayed == nil {
		r.Replayed = []string{}
	}
	return r
}

// damaged counts the damage other than the end of an interrupted write.
func (r repaired) damaged() (n int) {
	for _, d := range r.Damage {
		if !d.Torn {
			n++
		}
	}
	return n
}

func (r repaired) write(w io.Writer) {
	unknown := false
	for _, d := range r.Damage {
		if d.Torn {
			fmt.Fprintf(w, "%v: no damage; the next run cuts it off and keeps it\n", d)
			continue
		}
		unknown = unknown || d.Unknown
		fmt.Fprintf(w, "%v\n  lost: %s\n", d, d.LostText())
	}
	if r.damaged() == 0 {
		fmt.Fprintf(w, "%s: nothing is damaged\n", r.Run)
		return
	}
	lost := fmt.Sprintf("%d episodes", len(r.Replayed))
	if unknown {
		lost = "at least " + lost
	}
	if !r.Repaired {
		fmt.Fprintf(w, "nothing was changed; %s would be played again. To take out what is damaged, and keep it in %s/damaged:\n  trajgen repair --run %s --yes\n",
			lost, run.JournalDir(r.Run), r.Run)
		return
	}
	fmt.Fprintf(w, "taken out and kept in %s/damaged; %s are to be played again, with the flags or the run file of this run and:\n  trajgen run --out %s --resume\n",
		run.JournalDir(r.Run), lost, r.Run)
}
