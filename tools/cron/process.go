package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Work is what a tick starts.
type Work struct {
	Args []string
	Env  []string
	// After may change the output when the process has ended. Optional.
	After func(output *os.File) error
}

// Processes runs jobs as processes of this machine. What a job writes goes to a file, so that it outlives the daemon.
type Processes struct {
	Store *Store
	// Work makes the work of a tick that is not a command.
	Work func(tick Tick) (Work, error)
	// Message sends the output of a job to the place that its Deliver names.
	Message func(ctx context.Context, tick Tick, ended Ended, output io.Reader) error
	// Hurry is closed to end what does not end when it is asked to.
	Hurry <-chan struct{}
}

// killAfter is how long a process has to end.
const killAfter = 10 * time.Second

func (p *Processes) lock(id string) string { return filepath.Join(p.Store.Dir, "output", id+".lock") }

// Busy implements Runner: a job's processes hold its lock, even when the daemon that started them is dead.
func (p *Processes) Busy(id string) bool {
	syscall.ForkLock.RLock() // a process that is just being started would hold the lock, too
	defer syscall.ForkLock.RUnlock()
	release, err := hold(p.lock(id), nil)
	if err == nil {
		err = release()
	}
	return err != nil
}

// Run implements Runner.
func (p *Processes) Run(ctx context.Context, tick Tick) Ended {
	ended := Ended{Tick: tick.At, Status: OK}
	if err := p.run(ctx, tick, &ended); err != nil {
		ended.Error = err.Error()
		if ended.Status == OK {
			ended.Status = Failed
		}
	}
	return ended
}

func (p *Processes) run(ctx context.Context, tick Tick, ended *Ended) (err error) {
	var lock *os.File
	release, err := hold(p.lock(tick.Job.ID), func(f *os.File) { lock = f })
	if err != nil {
		return fmt.Errorf("what it started before is still there: %w", err)
	}
	defer func() {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		err = errors.Join(err, release())
	}()
	work := Work{Args: tick.Job.Command}
	if len(work.Args) == 0 {
		if work, err = p.Work(tick); err != nil {
			return err
		}
	}
	place := p.Store.Output(tick.Job.ID)
	output, err := os.OpenFile(place+".part", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd := exec.Command(work.Args[0], work.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = tick.Job.Workdir, output, output
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Env = append(append(os.Environ(), work.Env...), about(tick)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is passed on, once
	if err := cmd.Start(); err != nil {
		return err
	}
	ended.Status = p.wait(ctx, cmd, tick.Job)
	if ended.Exit = cmd.ProcessState.ExitCode(); ended.Status == OK && ended.Exit != 0 {
		ended.Status = Failed
	}
	if work.After != nil {
		err = work.After(output)
	}
	if err = errors.Join(err, os.Rename(place+".part", place)); err != nil {
		return err
	}
	return p.deliver(ctx, tick, *ended)
}

// about tells a process about its job.
func about(tick Tick) []string {
	return []string{Variable + "=" + tick.Job.Name, TickVariable + "=" + tick.At.Format(time.RFC3339)}
}

// wait waits for a process. It ends one whose time is up, or that goes on when Hurry is closed.
func (p *Processes) wait(ctx context.Context, cmd *exec.Cmd, job Job) string {
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // which ProcessState tells
		close(ended)
	}()
	signal := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
	stop, hurry, status := ctx.Done(), p.Hurry, OK
	var late, kill <-chan time.Time
	if limit, _ := duration(job.Timeout); limit > 0 { // which was checked
		late = time.After(limit)
	}
	for {
		select {
		case <-ended:
			if status == Timeout {
				signal(syscall.SIGKILL) // what it left behind
			}
			return status
		case <-stop:
			stop = nil
			signal(syscall.SIGINT)
		case <-hurry:
			hurry, kill = nil, time.After(killAfter)
			signal(syscall.SIGTERM)
		case <-late:
			late, status, kill = nil, Timeout, time.After(killAfter)
			signal(syscall.SIGTERM)
		case <-kill:
			signal(syscall.SIGKILL)
		}
	}
}

// How the output of a job is handed on.
const (
	ToFile    = "file"
	ToCommand = "command"
	ByMessage = "message" // to a place such as telegram:CHAT
)

// Delivery is how and where the job's output is handed on; "" where it is only kept.
func (j *Job) Delivery() (how, where string) {
	switch how, where, _ = strings.Cut(j.Deliver, ":"); how {
	case ToFile, ToCommand:
		return how, where
	case "", "local", "origin":
		return "", ""
	}
	return ByMessage, j.Deliver
}

// deliver hands the output on.
func (p *Processes) deliver(ctx context.Context, tick Tick, ended Ended) (err error) {
	how, where := tick.Job.Delivery()
	if how == "" {
		return nil
	}
	output, err := os.Open(p.Store.Output(tick.Job.ID))
	if err != nil {
		return err
	}
	defer output.Close()
	if how == ToFile {
		to, err := os.Create(where)
		if err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
		_, err = io.Copy(to, output)
		return errors.Join(err, to.Close())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if how == ByMessage {
		return p.Message(ctx, tick, ended, output)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", where)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = tick.Job.Workdir, output, time.Second
	cmd.Env = append(append(os.Environ(), about(tick)...), "TRAJGEN_CRON_STATUS="+ended.Status)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("deliver: %w: %s", err, cmp.Or(tail(said), "it said nothing"))
	}
	return nil
}

// tail is the end of what a process said.
func tail(said []byte) string {
	return strings.ToValidUTF8(strings.TrimSpace(string(said[max(0, len(said)-500):])), "\uFFFD")
}

// Bounded is how much of the output of a job another begins with.
const bounded = 8000

// Context is the last output of some jobs, for a prompt to begin with.
func (s *Store) Context(t Table, refs []string) (string, error) {
	var text strings.Builder
	for _, ref := range refs {
		j, err := t.find(ref)
		if err != nil {
			return "", fmt.Errorf("context_from: %w", err)
		}
		f, err := os.Open(s.Output(j.ID))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(io.LimitReader(f, bounded))
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "The last output of %s:\n%s\n\n", j.Name, strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")))
	}
	return text.String(), nil
}
