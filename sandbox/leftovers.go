package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"trajgen/sandbox/internal/state"
)

// Leftover is something that a dead runner left behind.
type Leftover struct {
	Path    string
	Backend string
	Owner   int // process number of the runner
}

// Sweep removes what dead runners left in a state directory, their cgroups and processes included.
func Sweep(stateDir string) ([]Leftover, error) {
	var removed []Leftover
	_, err := state.Sweep(stateDir, func(path string, owner state.Owner) error {
		if err := sweep(path, owner); err != nil {
			return err
		}
		removed = append(removed, Leftover{Path: path, Backend: owner.Backend, Owner: owner.PID})
		return nil
	})
	return removed, err
}

// sweepTime bounds how long a server may take to remove what a dead runner left there.
const sweepTime = 20 * time.Second

// sweep has an instance's backend end and remove what it left. When something cannot be removed, sweep keeps the instance's
// directory for the next try.
func sweep(path string, owner state.Owner) error {
	if owner.Backend == "" {
		return nil
	}
	name := filepath.Base(path)
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	if end := enders[owner.Backend]; end != nil {
		names, err := state.Names(path)
		if err == nil && len(names) > 0 {
			err = end(ctx, names, owner.Settings)
		}
		if err != nil {
			return fmt.Errorf("sweep %s: %w", name, err)
		}
		return nil
	}
	kind, ok := kinds[owner.Backend]
	if !ok {
		return fmt.Errorf("sweep %s: this program has no sandbox backend %q", name, owner.Backend)
	}
	if kind.Sweep == nil {
		return nil
	}
	if err := kind.Sweep(ctx, Instance{Name: name, Dir: path, Settings: owner.Settings, Cgroups: owner.Cgroups}); err != nil {
		return fmt.Errorf("sweep %s: %w", name, err)
	}
	return nil
}

// Live is an open sandbox of a living runner.
type Live struct {
	ID      string
	Backend string
	PID     int // of the guest; 0 when the backend has none
	Owner   int // of the runner
	Started time.Time
}

// List returns the sandboxes that are open below a state directory, of all runners.
func List(stateDir string) ([]Live, error) {
	records, err := state.List(stateDir)
	live := make([]Live, 0, len(records))
	for _, r := range records {
		live = append(live, Live(r))
	}
	return live, err
}
