package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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
	setup := Setup{Episodes: r.Rows, InFlight: 16}
	for _, backend := range []string{"local", "native"} {
		if stage(backend).unfit() != "" {
			continue
		}
		each, err := d.firstRequests(ctx, stage(backend), setup)
		if err != nil {
			return err
		}
		r.EachRound[backend], r.FirstRequestMS[backend] = each, median(each, itself)
		d.logf("start: %s, %d rows: first request after %.0f ms", backend, r.Rows, r.FirstRequestMS[backend])
	}
	var err error
	if r.EachResume, err = d.resumes(ctx, setup); err != nil {
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
func (p *player) firstRequests(ctx context.Context, s Stage, setup Setup) (each []float64, err error) {
	if setup, err = p.prepare(s, setup); err != nil {
		return nil, err
	}
	defer os.RemoveAll(setup.Dir)
	for n := range p.Rounds + 1 { // the first one warms the cache
		ms, err := p.firstRequest(ctx, "run", "-f", setup.RunFile(), "--quiet")
		if err = errors.Join(err, os.RemoveAll(setup.Out())); err != nil {
			return nil, err
		}
		if n > 0 {
			each = append(each, ms)
		}
	}
	return each, nil
}

// resumes plays all but the last episode, and goes on with copies of that run.
func (p *player) resumes(ctx context.Context, setup Setup) (each []float64, err error) {
	if setup, err = p.prepare(kept, setup); err != nil {
		return nil, err
	}
	defer os.RemoveAll(setup.Dir)
	if _, err := p.measure(ctx, nil, p.Trajgen, "run", "-f", setup.RunFile(), "--quiet", "--max-tasks", strconv.Itoa(setup.Episodes-1)); err != nil {
		return nil, err
	}
	finished := setup.Out() + "-finished"
	if err := os.Rename(setup.Out(), finished); err != nil {
		return nil, err
	}
	for range p.Rounds {
		if err := os.CopyFS(setup.Out(), os.DirFS(finished)); err != nil {
			return nil, err
		}
		ms, err := p.firstRequest(ctx, "run", "--resume", "--out", setup.Out(), "--quiet", "--max-tasks", "0")
		if err = errors.Join(err, os.RemoveAll(setup.Out())); err != nil {
			return nil, err
		}
		each = append(each, ms)
	}
	return each, nil
}

// firstRequest is how long a process takes until the server hears from it, in milliseconds. Then the process is killed, and what
// it leaves is swept.
func (p *player) firstRequest(ctx context.Context, args ...string) (ms float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	p.server.Reset()
	cmd := exec.CommandContext(ctx, p.Trajgen, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for asked := false; !asked; {
		select {
		case err := <-ended:
			return 0, fmt.Errorf("%v ended before it asked the model: %w: %s", args, err, bytes.TrimSpace(said.Bytes()))
		case <-time.After(10 * time.Millisecond):
		}
		if seen := p.server.Counts().Early; len(seen) > 0 {
			ms, asked = milliseconds(seen[0].Sub(began)), true
		}
	}
	_ = cmd.Process.Kill()
	<-ended // that it was killed
	if out, err := exec.CommandContext(ctx, p.Trajgen, "sandbox", "sweep").CombinedOutput(); err != nil {
		return ms, fmt.Errorf("sweep: %w: %s", err, out)
	}
	return ms, reapStrays()
}
