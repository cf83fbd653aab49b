//go:build linux

package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
)

// stopped opens a sandbox whose guest can be stopped, as if it hung.
func stopped(t *testing.T, patience time.Duration) (sb sandbox.Sandbox, stop func()) {
	t.Helper()
	stateDir := t.TempDir()
	b := try(t, native.Trial{Patience: patience}, stateDir)
	sb = sandboxtest.Box(t, b, sandbox.Spec{ID: "hung"})
	live, err := sandbox.List(stateDir)
	if err != nil || len(live) != 1 {
		t.Fatalf("list: got %v, %v", live, err)
	}
	return sb, func() {
		t.Helper()
		if err := syscall.Kill(live[0].PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		sandboxtest.Eventually(t, 30*time.Second, "every thread of the guest stopped", func() bool {
			threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", live[0].PID))
			for _, name := range threads {
				stat, err := os.ReadFile(name)
				if err != nil || stat[bytes.LastIndexByte(stat, ')')+2] != 'T' {
					return false
				}
			}
			return len(threads) > 0
		})
	}
}

// TestHungGuest stops guests: what they are asked must fail as the machine's fault, long before the caller's deadline.
func TestHungGuest(t *testing.T) {
	sleep := sandbox.Command{Args: []string{"sleep", "100"}}
	for name, ask := range map[string]func(ctx context.Context, sb sandbox.Sandbox, p sandbox.Process) error{
		"start": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			_, err := sb.Start(ctx, sleep)
			return err
		},
		"stat": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			_, err := sb.Files().Stat(ctx, ".")
			return err
		},
		"list": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			_, err := sb.Files().List(ctx, ".")
			return err
		},
		"remove": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			return sb.Files().Remove(ctx, "x")
		},
		"kill all": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error { return sb.KillAll(ctx) },
		"read": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			_, _, err := sb.Files().Read(ctx, "x", 0, 1)
			return err
		},
		"write": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			return sb.Files().Write(ctx, sandbox.FileWrite{Path: "x", Data: make([]byte, 300<<10)})
		},
		"kill and wait": func(ctx context.Context, _ sandbox.Sandbox, p sandbox.Process) error {
			if err := p.Kill(ctx, 0); err != nil {
				return err
			}
			_, err := p.Wait(ctx)
			return err
		},
		"run that times out": func(ctx context.Context, sb sandbox.Sandbox, _ sandbox.Process) error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			r, err := sandbox.Run(ctx, sb, sleep, sandbox.RunOptions{})
			if err == nil && r.TimedOut { // even before the start: nobody knows yet
				return sb.KillAll(context.WithoutCancel(ctx))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sb, stop := stopped(t, time.Second)
			p, err := sb.Start(t.Context(), sleep)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stop()
			if err := ask(ctx, sb, p); !errors.Is(err, sandbox.ErrGone) || ctx.Err() != nil || name != "kill and wait" && !strings.Contains(err.Error(), "answered nothing for") {
				t.Errorf("got %v, want ErrGone with a reason", err)
			}
			if _, err := p.Wait(ctx); !errors.Is(err, sandbox.ErrGone) {
				t.Errorf("wait: got %v, want ErrGone", err)
			}
			if _, err := sb.Start(ctx, sleep); !errors.Is(err, sandbox.ErrGone) {
				t.Errorf("start: got %v, want ErrGone", err)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPatientWithGuest keeps a sandbox whose guest has nothing to answer, or much to copy.
func TestPatientWithGuest(t *testing.T) {
	sb, _ := stopped(t, 400*time.Millisecond)
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sleep", "1"}}, sandbox.RunOptions{})
	if err != nil || r.Exit.Code != 0 {
		t.Fatalf("got %+v, %v", r.Exit, err)
	}
	if err := sb.Files().Write(t.Context(), sandbox.FileWrite{Path: "big", Data: make([]byte, 200<<20)}); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Files().Stat(t.Context(), "big"); err != nil {
		t.Error(err)
	}
}

// TestSlowGuest gives up on a guest that does not answer, or does not even take what it is sent, when the caller wants
// to.
func TestSlowGuest(t *testing.T) {
	sb, stop := stopped(t, time.Hour)
	stop()
	cause := errors.New("the caller's cause")
	ask := map[string]func(ctx context.Context) error{
		"stat": func(ctx context.Context) error { _, err := sb.Files().Stat(ctx, "."); return err },
		"read": func(ctx context.Context) error { _, _, err := sb.Files().Read(ctx, "x", 0, 1); return err },
		"write": func(ctx context.Context) error {
			return sb.Files().Write(ctx, sandbox.FileWrite{Path: "x", Data: make([]byte, 20<<10)})
		},
		"kill all": sb.KillAll,
		"start": func(ctx context.Context) error {
			_, err := sb.Start(ctx, sandbox.Command{Args: []string{"cat"}, Stdin: strings.NewReader("x"), Stdout: io.Discard, Socket: true})
			return err
		},
	}
	for round := range 80 { // more than the socket holds
		for name, f := range ask {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(cause) })
			began := time.Now()
			err := f(ctx)
			if took := time.Since(began); !errors.Is(err, cause) || took > 20*time.Second {
				t.Fatalf("round %d, %s: got %v after %v, want the caller's cause", round, name, err, took)
			}
		}
	}
}
