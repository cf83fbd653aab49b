package ssh_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// BenchmarkExec runs true through a connection, and by turns as a plain process: the ratio of the medians is what counts.
func BenchmarkExec(b *testing.B) {
	sb := sandboxtest.Box(b, open(b, serve(b, Account{})), sandbox.Spec{ID: "bench"})
	var raw, through []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		raw = append(raw, time.Since(began))
		began = time.Now()
		p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"/bin/true"}})
		if err == nil {
			_, err = p.Wait(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		through = append(through, time.Since(began))
	}
	b.ReportMetric(0, "ns/op")
	middle := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds())
	}
	b.ReportMetric(middle(raw), "raw-µs")
	b.ReportMetric(middle(through), "exec-µs")
	b.ReportMetric(middle(through)/middle(raw), "ratio")
}
