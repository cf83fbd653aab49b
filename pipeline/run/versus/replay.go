package versus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/gate"
	"trajgen/pipeline/run"
)

// Replay judges the plays of the gate in Out again, and holds gate.json to it. Nothing is played.
func (s Settings) Replay(ctx context.Context) (*gate.Result, error) {
	plan, err := readPlan(filepath.Join(s.Out, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, run.AsMistake(fmt.Errorf("%s is not the directory of a gate (--out): it has no %s", s.Out, planFile))
	}
	if err != nil {
		return nil, err
	}
	s.Metric = plan.Metric
	n, err := s.begun(ctx, plan, &arm{plays: map[string]play{}}, &arm{plays: map[string]play{}})
	if err != nil {
		return nil, err
	}
	if !n.decided {
		return nil, run.AsMistake(fmt.Errorf("the gate in %s has no verdict yet, after %d of at most %d steps: trajgen gate goes on with it", s.Out, n.walk.Steps(), len(n.steps)))
	}
	r := n.result()
	text, err := encode(r)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.Out, gateFile)
	if was, err := os.ReadFile(path); err != nil {
		return nil, err
	} else if !slices.Equal(was, text) {
		return nil, fmt.Errorf("%s says otherwise than the plays of its gate, which come to %s at step %d", path, r.Verdict, r.Steps)
	}
	return r, nil
}

// Forecast is how many plays a verdict is likely to take, by what the run directory Base shows of the tasks.
func (s Settings) Forecast(ctx context.Context) (*gate.Forecast, error) {
	if err := s.Validate(); err != nil {
		return nil, run.AsMistake(err)
	}
	names := []string{""} // without history it is the same for any tasks
	if isRun(s.Base) {
		base, err := s.read(ctx, s.Base)
		if err != nil {
			return nil, err
		}
		names = slices.Sorted(maps.Keys(base.plays))
	}
	plan, err := s.weighed(ctx, names)
	if err != nil {
		return nil, err
	}
	return plan.Forecast(), nil
}
