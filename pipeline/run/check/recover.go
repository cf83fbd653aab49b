package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/tools/faults"
)

// menders are the agents that try to recover: one makes again what failed or is wrong, the other uses another tool for the same thing.
var menders = []string{"checker:1,1", "switcher:1"}

// Recover plays the reference solutions with each fault at each of their calls that can have it, and says which faults a reference solution
// recovers from. The run file is one of Prove, which has proven that it succeeds without faults.
func Recover(ctx context.Context, file run.File, settings faults.Settings, w io.Writer, watch Watch) (_ []faults.Recovery, err error) {
	settings.Level, settings.MaxPerEpisode, settings.Pairs, settings.Clean, settings.Where, settings.Recoverable = 0, 0, 0, "", "", ""
	settings.Twins, settings.Probability, settings.Mitigate = true, 1, faults.Mitigation{}
	file.Faults, file.Samples = settings, 1
	dir, err := os.MkdirTemp("", "trajgen-recover-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tried := map[faults.Recovery]*faults.Recovery{}
	for _, mender := range menders {
		file.Scripted.Policy, file.Out = mender, filepath.Join(dir, strings.ReplaceAll(mender, ":", "-"))
		if err := mend(ctx, file, w, watch); err != nil {
			return nil, err
		}
		if err := recovered(ctx, file.Out, tried); err != nil {
			return nil, err
		}
	}
	all := []faults.Recovery{}
	for _, r := range tried {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b faults.Recovery) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Task, b.Task))
	})
	return all, nil
}

// mend plays the clean episodes and their twins.
func mend(ctx context.Context, file run.File, w io.Writer, watch Watch) (err error) {
	s, err := run.Open(ctx, file, false, w, func(*run.Experiment) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, observe, drain, end := watch(ctx, s.Exp.Tasks)
	defer end()
	summary, err := s.Play(ctx, run.Watch{Observe: observe, Drain: drain})
	if summary.Drained || err != nil && ctx.Err() != nil {
		return errors.Join(ErrDrained, err)
	}
	return err
}

// recovered counts the twins of a run.
func recovered(ctx context.Context, dir string, tried map[faults.Recovery]*faults.Recovery) (err error) {
	reader, err := journal.OpenReader(run.JournalDir(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return err
		}
		t := ep.Twin
		if t == nil || t.Role == episode.TwinPlacebo || t.Prefix == episode.PrefixDiverged || t.Ordinal >= len(ep.Calls) || !ep.Outcome.AgentsDoing() {
			continue
		}
		key := faults.Recovery{Task: ep.Key.Task, Tool: ep.Calls[t.Ordinal].Name, Class: t.FullClass()}
		if tried[key] == nil {
			tried[key] = new(key)
		}
		tried[key].Tried++
		if ep.Outcome == episode.Success {
			tried[key].Recovered++
		}
	}
	return nil
}

// WriteRecoveries says in how many tasks which faults cannot be recovered from.
func WriteRecoveries(w io.Writer, all []faults.Recovery) error {
	type cell struct{ tool, class string }
	var order []cell
	of, lost := map[cell]int{}, map[cell][]string{}
	for _, r := range all {
		key := cell{r.Tool, r.Class}
		if of[key] == 0 {
			order = append(order, key)
		}
		if of[key]++; r.Recovered == 0 {
			lost[key] = append(lost[key], r.Task)
		}
	}
	const most = 3 // names of tasks
	for _, c := range order {
		line := fmt.Sprintf("%s of %s: recoverable in %d of %d tasks", c.class, c.tool, of[c]-len(lost[c]), of[c])
		if names := lost[c]; len(names) > 0 {
			line += ", not in " + strings.Join(names[:min(most, len(names))], ", ")
			if more := len(names) - most; more > 0 {
				line += fmt.Sprintf(" and %d more", more)
			}
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
