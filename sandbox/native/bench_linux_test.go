package native_test

import (
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// median reports the middle of what f took, which a loaded machine disturbs less than the mean.
func median(b *testing.B, f func(i int)) {
	b.Helper()
	var took []time.Duration
	i := 0
	for b.Loop() {
		began := time.Now()
		f(i)
		took = append(took, time.Since(began))
		i++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
}

func benchBackend(b *testing.B) sandbox.Backend {
	b.Helper()
	return sandboxtest.Open(b, "native", sandbox.Options{})
}

// BenchmarkRawExec is what the others are measured by.
func BenchmarkRawExec(b *testing.B) {
	median(b, func(int) {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkNativeOpenClose(b *testing.B) {
	backend := benchBackend(b)
	var opens, closes []time.Duration
	median(b, func(i int) {
		began := time.Now()
		sb, err := backend.Open(b.Context(), sandbox.Spec{ID: "bench-" + strconv.Itoa(i)})
		if err != nil {
			b.Fatal(err)
		}
		opened := time.Now()
		if err := sb.Close(); err != nil {
			b.Fatal(err)
		}
		opens, closes = append(opens, opened.Sub(began)), append(closes, time.Since(opened))
	})
	slices.Sort(opens)
	slices.Sort(closes)
	b.ReportMetric(float64(opens[len(opens)/2].Microseconds()), "open-µs")
	b.ReportMetric(float64(closes[len(closes)/2].Microseconds()), "close-µs")
}

func BenchmarkNativeExec(b *testing.B) {
	sb, err := benchBackend(b).Open(b.Context(), sandbox.Spec{ID: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	median(b, func(int) {
		p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"/bin/true"}})
		if err == nil {
			_, err = p.Wait(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkNativeRun(b *testing.B) {
	sb, err := benchBackend(b).Open(b.Context(), sandbox.Spec{ID: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	median(b, func(int) {
		if _, err := sandbox.Run(b.Context(), sb, sandbox.Command{Args: []string{"/bin/true"}}, sandbox.RunOptions{}); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkNativeKillAll(b *testing.B) {
	sb, err := benchBackend(b).Open(b.Context(), sandbox.Spec{ID: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := sandbox.Run(b.Context(), sb, sandbox.Command{Args: []string{"/bin/true"}}, sandbox.RunOptions{}); err != nil {
		b.Fatal(err)
	}
	median(b, func(int) {
		if err := sb.KillAll(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}
