package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// StartResult is how soon a run begins.
type StartResult struct {
	Rows int `json:"rows"`
	// FirstRequestMS is from the start of the process until the server has the first request, with the dataset in the
	// machine's cache. By sandbox backend.
	FirstRequestMS map[string]float64   `json:"first_request_ms"`
	EachRound      map[string][]float64 `json:"first_request_ms_each_round"`
	// ResumeMS is the same for a run of which all but the last episode are in the journal.
	ResumeMS   float64   `json:"resume_ms"`
	EachResume []float64 `json:"resume_ms_each_round"`
	BinaryMB   float64   `json:"binary_mb"` // of 1,000,000 bytes
}

func (d *driver) start(ctx context.Context) error {
	r := &StartResult{Rows: d.size(100_000, 10_000, 50), FirstRequestMS: map[string]float64{}, EachRound: map[string][]float64{}}
	d.report.Start = r
	all, err := d.serve(ctx, 64)
	if err != nil {
		return err
	}
	defer all.Close()
	setup := Setup{Episodes: r.Rows, InFlight: 16, Addrs: all.addrs(), DelayedTurn: allTurns}
	itself := func(v float64) float64 { return v }
	for _, name := range []string{"local", "limits"} {
		stage, err := FindStage(name)
		if err != nil {
			return err
		}
		if unfit(stage) != "" {
			continue
		}
		each, err := d.firstRequests(ctx, all, stage, setup)
		if err != nil {
			return err
		}
		r.EachRound[stage.Sandbox], r.FirstRequestMS[stage.Sandbox] = each, median(each, itself)
		d.logf("start: %s, %d rows: first request after %.0f ms", stage.Sandbox, r.Rows, r.FirstRequestMS[stage.Sandbox])
	}
	if r.EachResume, err = d.resumes(ctx, all, setup); err != nil {
		return err
	}
	r.ResumeMS = median(r.EachResume, itself)
	d.logf("start: resume with %d finished: first request after %.0f ms", r.Rows-1, r.ResumeMS)
	info, err := os.Stat(d.Trajgen)
	if err != nil {
		return err
	}
	r.BinaryMB = float64(info.Size()) / 1e6
	return nil
}

// firstRequests starts runs and kills them when they have asked.
func (d *driver) firstRequests(ctx context.Context, all servers, stage Stage, setup Setup) (each []float64, err error) {
	if setup.Dir, err = d.newDir(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(setup.Dir)
	if err := stage.Prepare(setup); err != nil {
		return nil, err
	}
	for n := range d.Rounds + 1 { // the first one warms the cache
		ms, err := d.firstRequest(ctx, all, "run", "-f", setup.RunFile(), "--quiet")
		if err != nil {
			return nil, err
		}
		if n > 0 {
			each = append(each, ms)
		}
		if err := os.RemoveAll(setup.Out()); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// resumes plays all but the last episode, and goes on with copies of that run.
func (d *driver) resumes(ctx context.Context, all servers, setup Setup) (each []float64, err error) {
	if setup.Dir, err = d.newDir(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(setup.Dir)
	if err := kept.Prepare(setup); err != nil {
		return nil, err
	}
	var played Played
	args := append([]string{"play", "--stage", kept.Name, "--leave", "1"}, setup.flags()...)
	if _, err := d.measure(ctx, &played, false, d.Itself, args...); err != nil {
		return nil, err
	}
	finished := setup.Out() + "-finished"
	if err := os.Rename(setup.Out(), finished); err != nil {
		return nil, err
	}
	for range d.Rounds {
		if err := os.CopyFS(setup.Out(), os.DirFS(finished)); err != nil {
			return nil, err
		}
		ms, err := d.firstRequest(ctx, all, "run", "--resume", "--out", setup.Out(), "--quiet")
		if err != nil {
			return nil, err
		}
		each = append(each, ms)
		if err := os.RemoveAll(setup.Out()); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// firstRequest is how long a process takes until the server hears from it, in milliseconds. Then the process is killed.
func (d *driver) firstRequest(ctx context.Context, all servers, args ...string) (ms float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := all.reset(ctx); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, d.Trajgen, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := false
	for {
		select {
		case err = <-ended:
			over = true
		case <-time.After(10 * time.Millisecond):
		}
		counts, asked := all.counts(ctx)
		if asked == nil && len(counts.EarlyNS) > 0 {
			ms, err = float64(counts.EarlyNS[0]-began.UnixNano())/1e6, nil
			break
		}
		if over || asked != nil {
			if err = errors.Join(err, asked); err == nil {
				err = errors.New("it ended")
			}
			err = fmt.Errorf("%v asked nothing: %w: %s", args, err, bytes.TrimSpace(said.Bytes()))
			break
		}
	}
	if !over {
		_ = cmd.Process.Kill()
		<-ended // that it was killed
	}
	return ms, errors.Join(err, d.sweep(ctx))
}

// sweep waits until what a killed run leaves is gone.
func (d *driver) sweep(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, d.Trajgen, "sandbox", "sweep").CombinedOutput(); err != nil {
		return fmt.Errorf("sweep: %w: %s", err, out)
	}
	return nil
}
