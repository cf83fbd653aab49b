package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// TestCut ends an agent, or the way to it, in the middle of everything.
func TestCut(t *testing.T) {
	for name, cut := range map[string]func(child) error{
		"agent killed":     func(c child) error { return c.cmd.Process.Kill() },
		"agent terminated": func(c child) error { return c.cmd.Process.Signal(syscall.SIGTERM) },
		"runner gone":      func(c child) error { return errors.Join(c.WriteCloser.Close(), c.ReadCloser.Close()) },
		"input ends":       func(c child) error { return c.WriteCloser.Close() },
		"output ends":      func(c child) error { return c.ReadCloser.Close() },
	} {
		for _, kind := range [][]string{{"host", "--plain-ok", "--state-dir", t.TempDir()}, {"bare", "--workdir", t.TempDir()}} {
			t.Run(name+", "+kind[0], func(t *testing.T) {
				if name == "agent killed" && kind[0] == "bare" {
					t.Skip("the backend that made the container ends it")
				}
				agent := startAgent(t, kind...)
				client, err := relay.Dial(t.Context(), agent, relay.Options{Patience: 2 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if kind[0] == "host" && client.Guarantees().Backend == "local" && name == "agent killed" {
					t.Skip("local has no broker that outlives it")
				}
				sb := box(t, client)
				cut := func() error { return cut(agent) }
				askEverything(t, sb, cut)
				sandboxtest.Eventually(t, 20*time.Second, "no process is left", func() bool { return sandboxtest.Sleepers("75.1") == 0 })
				if err := client.Err(); err == nil {
					t.Error("the client knows no reason")
				}
				if _, err := client.Open(t.Context(), sandbox.Spec{ID: "more"}); !errors.Is(err, sandbox.ErrGone) {
					t.Errorf("open: got %v, want ErrGone", err)
				}
				if err := errors.Join(sb.Close(), client.Close()); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
	}
}

// askEverything has calls of all kinds wait, cuts, and wants all of them to fail as the machine's fault.
func askEverything(t *testing.T, sb sandbox.Sandbox, cut func() error) {
	t.Helper()
	endless, feed := io.Pipe()
	defer feed.Close()
	sleep, err := sb.Start(t.Context(), sandbox.Command{
		Args: []string{"sh", "-c", "setsid sleep 75.1 & sleep 75.1 & sleep 75.1"}, Stdin: endless, Stdout: io.Discard, Socket: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sleep.Socket().Close()
	flood, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"yes"}, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	asked := map[string]func() error{
		"wait": func() error {
			_, err := sleep.Wait(ctx)
			return err
		},
		"wait for a flood": func() error {
			_, err := flood.Wait(ctx)
			return err
		},
		"write": func() error {
			data := bytes.Repeat([]byte("x"), 8<<20)
			for {
				if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "f", Data: data}); err != nil {
					return err
				}
			}
		},
		"list": func() error {
			for {
				if _, err := sb.Files().List(ctx, "."); err != nil {
					return err
				}
			}
		},
		"start": func() error {
			for {
				p, err := sb.Start(ctx, sandbox.Command{Args: []string{"true"}})
				if err == nil {
					_, err = p.Wait(ctx)
				}
				if err != nil {
					return err
				}
			}
		},
	}
	type result struct {
		what string
		err  error
	}
	results := make(chan result, len(asked))
	for what, ask := range asked {
		go func() { results <- result{what, ask()} }()
	}
	sandboxtest.Eventually(t, 20*time.Second, "all sleep", func() bool { return sandboxtest.Sleepers("75.1") == 3 })
	began := time.Now()
	if err := cut(); err != nil {
		t.Fatal(err)
	}
	for range asked {
		if r := <-results; !errors.Is(r.err, sandbox.ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", r.what, r.err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if n, err := sleep.Socket().Read(make([]byte, 1)); err == nil {
		t.Errorf("the socket: got %d bytes, want its end", n)
	}
}

// TestHungAgent stops an agent: who has a deadline is served by it, the rest by the client's patience.
func TestHungAgent(t *testing.T) {
	agent := startAgent(t, "bare", "--workdir", t.TempDir())
	client, err := relay.Dial(t.Context(), agent, relay.Options{Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	sb := box(t, client)
	p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "75.2"}})
	if err != nil {
		t.Fatal(err)
	}
	// A client that asks for nothing is patient: the agent says that it lives.
	time.Sleep(3 * time.Second)
	if err := client.Err(); err != nil {
		t.Fatal(err)
	}
	if err := agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
	defer cancel()
	// More than fits into a pipe.
	began := time.Now()
	if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "f", Data: make([]byte, 8<<20)}); !errors.Is(err, cause) || time.Since(began) > 20*time.Second {
		t.Errorf("write: got %v after %v, want the cause", err, time.Since(began))
	}
	if err := sb.KillAll(ctx); !errors.Is(err, cause) {
		t.Errorf("kill all: got %v, want the cause", err)
	}
	_, err = p.Wait(t.Context())
	if !errors.Is(err, sandbox.ErrGone) || !strings.Contains(err.Error(), "said nothing for 2s") {
		t.Errorf("wait: got %v, want ErrGone and why", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if err := agent.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 20*time.Second, "no process is left", func() bool { return sandboxtest.Sleepers("75.2") == 0 })
}
