package relay_test

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// agent opens a sandbox of an agent in a process of its own, as others do over ssh or into a container.
func agent(t testing.TB, args ...string) sandbox.Sandbox {
	t.Helper()
	return box(t, dialAgent(t, args...))
}

func box(t testing.TB, backend sandbox.Backend) sandbox.Sandbox {
	t.Helper()
	return sandboxtest.Box(t, backend, sandbox.Spec{ID: "box"})
}

// BenchmarkExec runs true in turn in all ways, so that the load of the machine is that of all.
func BenchmarkExec(b *testing.B) {
	native := sandboxtest.Open(b, "native", sandbox.Options{})
	host := agent(b, "host", "--state-dir", b.TempDir())
	piped := box(b, serve(b, sandboxtest.Open(b, "native", sandbox.Options{}), relay.Options{}))
	direct := box(b, native)
	start := func(sb sandbox.Sandbox) func() error {
		return func() error {
			p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"/bin/true"}})
			if err == nil {
				_, err = p.Wait(b.Context())
			}
			return err
		}
	}
	ways := []struct {
		name string
		run  func() error
		took []time.Duration
	}{
		{name: "raw", run: func() error { return exec.Command("/bin/true").Run() }},
		{name: "native", run: start(direct)},
		{name: "relay", run: start(piped)},
		{name: "agent", run: start(host)},
	}
	for b.Loop() {
		for i := range ways {
			began := time.Now()
			if err := ways[i].run(); err != nil {
				b.Fatal(err)
			}
			ways[i].took = append(ways[i].took, time.Since(began))
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		b.ReportMetric(float64(w.took[len(w.took)/2].Microseconds()), w.name+"-µs")
	}
}

// BenchmarkFile writes and reads 16 MiB.
func BenchmarkFile(b *testing.B) {
	sb := agent(b, "host", "--plain-ok", "--state-dir", b.TempDir())
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	b.SetBytes(2 * int64(len(data)))
	for b.Loop() {
		if err := sb.Files().Write(b.Context(), sandbox.FileWrite{Path: "f", Data: data}); err != nil {
			b.Fatal(err)
		}
		if _, _, err := sb.Files().Read(b.Context(), "f", 0, 1<<30); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutput has a command print 64 MiB.
func BenchmarkOutput(b *testing.B) {
	sb := agent(b, "host", "--plain-ok", "--state-dir", b.TempDir())
	b.SetBytes(64 << 20)
	for b.Loop() {
		kept := sandbox.NewCapture(1, 1)
		p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"head", "-c", "67108864", "/dev/zero"}, Stdout: kept})
		if err == nil {
			_, err = p.Wait(b.Context())
		}
		if err != nil || kept.Total() != 64<<20 {
			b.Fatalf("got %d bytes, %v", kept.Total(), err)
		}
	}
}
