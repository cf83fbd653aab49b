package relay_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// TestIdle leaves a connection alone for twenty times its patience, which must not end it. The time is the real one: the
// HTTP/2 of a server keeps channels for the next one, which may not be in the same bubble.
func TestIdle(t *testing.T) {
	client := serve(t, &sandboxtest.Scripted{}, relay.Options{Patience: 200 * time.Millisecond})
	sb := box(t, client)
	time.Sleep(4 * time.Second)
	if _, err := sb.Files().List(t.Context(), "."); err != nil {
		t.Error(err)
	}
}

// TestSilence ends a connection whose other end says nothing any more, at either end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		go func() { _, _ = there.Write(relay.Hello(relay.Version)) }()
		client, err := relay.Dial(t.Context(), here, relay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = client.Open(t.Context(), sandbox.Spec{ID: "x"})
		if !errors.Is(err, sandbox.ErrGone) || !strings.Contains(err.Error(), "the other end said nothing for 1m0s") {
			t.Errorf("got %v, want ErrGone and why", err)
		}
		if took := time.Since(began); took > 70*time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		go func() { _, _ = here.Write(relay.Hello(relay.Version)) }()
		if err := relay.Serve(there, &sandboxtest.Scripted{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "said nothing for") {
			t.Errorf("got %v, want silence", err)
		}
	})
}

// TestNothingStays opens and closes connections with all that they can hold.
func TestNothingStays(t *testing.T) {
	use := func() {
		ours, theirs := pair(t)
		served := make(chan error)
		go func() {
			served <- relay.Serve(theirs, sandboxtest.Open(t, "local", sandbox.Options{}), slog.New(slog.DiscardHandler))
		}()
		client, err := relay.Dial(t.Context(), ours, relay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sb := box(t, client)
		for range 5 {
			endless, feed := io.Pipe()
			defer feed.Close()
			p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "cat <&3 & yes"}, Stdin: endless, Stdout: io.Discard, Socket: true})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Socket().Close()
		}
		if err := errors.Join(client.Close(), <-served); err != nil {
			t.Fatal(err)
		}
	}
	use()
	before := runtime.NumGoroutine()
	for range 10 {
		use()
	}
	sandboxtest.Eventually(t, 20*time.Second, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before+2 })
}
