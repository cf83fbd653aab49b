package check

import (
	"context"
	"errors"
	"fmt"
	"io"

	"trajgen/outputs/journal"
	"trajgen/pipeline/run"
)

// Repaired is the damage that was found, and whether it was removed.
type Repaired struct {
	Run      string           `json:"run"`
	Repaired bool             `json:"repaired"`
	Damage   []journal.Damage `json:"damage"`
	Replayed []string         `json:"played_again"` // known ids without any remaining attempt
}

// Repair finds the damage of a run's journal, and removes it if it may. It returns nil, and why, if the journal cannot be read.
func Repair(ctx context.Context, dir string, yes bool) (*Repaired, error) {
	if _, err := run.ReadManifest(dir); err != nil {
		return nil, err
	}
	damages, replayed, err := journal.Repair(ctx, run.JournalDir(dir), yes, nil)
	if errors.Is(err, journal.ErrLocked) {
		return nil, err
	}
	found := &Repaired{Run: dir, Repaired: yes && err == nil, Damage: []journal.Damage{}, Replayed: []string{}}
	found.Damage, found.Replayed = append(found.Damage, damages...), append(found.Replayed, replayed...)
	return found, err
}

// Damaged counts the damage other than the end of an interrupted write.
func (r *Repaired) Damaged() (n int) {
	for _, d := range r.Damage {
		if !d.Torn {
			n++
		}
	}
	return n
}

// Write says what was found, and what to do.
func (r *Repaired) Write(w io.Writer) {
	unknown := false
	for _, d := range r.Damage {
		if d.Torn {
			fmt.Fprintf(w, "%v: no damage; the next run cuts it off and keeps it\n", d)
			continue
		}
		unknown = unknown || d.Unknown
		fmt.Fprintf(w, "%v\n  lost: %s\n", d, d.LostText())
	}
	if r.Damaged() == 0 {
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
