package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// sampling is how often the memory of what is measured is looked at. It costs a process with much memory some time.
const sampling = 100 * time.Millisecond

// newDir makes an empty directory below the scratch one.
func (d *driver) newDir() (string, error) {
	d.scratch++
	dir := filepath.Join(d.dir, strconv.Itoa(d.scratch))
	return dir, os.Mkdir(dir, 0o755)
}

// measure runs a program under the eyes of another one, and reads what it says of itself into said, unless that is nil.
func (d *driver) measure(ctx context.Context, said any, private bool, program string, args ...string) (m Measurement, err error) {
	to := filepath.Join(d.dir, "measurement.json")
	all := []string{"measure", "--to", to, "--every", sampling.String()}
	if private {
		all = append(all, "--private-mounts")
	}
	var out, warnings bytes.Buffer
	cmd := exec.CommandContext(ctx, d.Itself, append(append(all, "--", program), args...)...)
	cmd.Stdout, cmd.Stderr = &out, &warnings
	// It ends what it measures before it ends itself.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return m, fmt.Errorf("%v: %w: %s", args, err, bytes.TrimSpace(warnings.Bytes()))
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if said != nil {
		if err := json.Unmarshal(out.Bytes(), said); err != nil {
			return m, fmt.Errorf("%v said %q: %w", args, out.Bytes(), err)
		}
	}
	return m, nil
}

// play measures a stage. The dataset is made beforehand, so that it is not counted.
func (d *driver) play(ctx context.Context, stage Stage, setup Setup) (m Measurement, played Played, err error) {
	if setup.Dir, err = d.newDir(); err != nil {
		return m, played, err
	}
	defer os.RemoveAll(setup.Dir)
	if !stage.Loop {
		if err := stage.Prepare(setup); err != nil {
			return m, played, err
		}
	}
	if stage.Full {
		if m, err = d.measure(ctx, nil, false, d.Trajgen, "run", "-f", setup.RunFile(), "--quiet"); err == nil {
			err = errors.Join(allSucceeded(setup), d.noteLimits(setup))
		}
		return m, played, err
	}
	m, err = d.measure(ctx, &played, stage.NoCgroups, d.Itself, append([]string{"play", "--stage", stage.Name}, setup.flags()...)...)
	return m, played, err
}

// flags are those of play.
func (s Setup) flags() []string {
	args := []string{"--dir", s.Dir, "--episodes", strconv.Itoa(s.Episodes), "--in-flight", strconv.Itoa(s.InFlight),
		"--delay", s.Delay.String(), "--delayed-turn", strconv.Itoa(s.DelayedTurn), "--prompt-bytes", strconv.Itoa(s.PromptBytes)}
	for _, at := range s.Addrs {
		args = append(args, "--addr", at)
	}
	return args
}

// allSucceeded makes sure that what was measured is what was meant.
func allSucceeded(setup Setup) error {
	text, err := os.ReadFile(filepath.Join(setup.Out(), "report.json"))
	if err != nil {
		return err
	}
	var report struct {
		Outcomes []struct {
			Outcome string `json:"outcome"`
			Count   int    `json:"count"`
		} `json:"outcomes"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	for _, o := range report.Outcomes {
		if o.Outcome == "success" && o.Count == setup.Episodes {
			return nil
		}
	}
	return fmt.Errorf("not all of %d episodes succeeded: %+v", setup.Episodes, report.Outcomes)
}

// noteLimits says where sandboxes are played without hard limits, which cost something.
func (d *driver) noteLimits(setup Setup) error {
	text, err := os.ReadFile(filepath.Join(setup.Out(), "run.json"))
	if err != nil {
		return err
	}
	var manifest struct {
		Sandbox struct {
			Limits map[string]string `json:"limits"`
		} `json:"sandbox"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return err
	}
	d.report.Limits = manifest.Sandbox.Limits
	return nil
}

// servers are enough servers for so many connections.
type servers []*ServerProcess

// serve starts servers, each with as many connections as it can have open.
func (d *driver) serve(ctx context.Context, clients int) (all servers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, all.Close())
		}
	}()
	// More than some thousand connections at once overflow the queue of a port, and more than 28,000 the client's own
	// ports for it.
	const perPort = 3000
	for left := clients; left > 0; {
		here := min(left, connections())
		s, err := StartServer(ctx, d.Itself, max(1, (here+perPort-1)/perPort), d.Log)
		if err != nil {
			return all, err
		}
		all, left = append(all, s), left-here
	}
	return all, nil
}

// Close ends all of them.
func (s servers) Close() error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// addrs are those of all.
func (s servers) addrs() (all []string) {
	for _, one := range s {
		all = append(all, one.Addrs...)
	}
	return all
}

func (s servers) reset(ctx context.Context) error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Reset(ctx))
	}
	return errors.Join(errs...)
}

// counts adds up what all of them saw.
func (s servers) counts(ctx context.Context) (sum Counts, err error) {
	sum.Ticks = map[int64]int{}
	for _, one := range s {
		c, err := one.Counts(ctx)
		if err != nil {
			return sum, err
		}
		sum.add(c)
	}
	return sum, nil
}
