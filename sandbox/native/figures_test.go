//go:build linux

package native_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// laps are what something took, lap after lap.
type laps map[string][]time.Duration

func (l laps) time(name string, f func() error) error {
	began := time.Now()
	err := f()
	l[name] = append(l[name], time.Since(began))
	return err
}

func (l laps) median(name string) time.Duration {
	all := slices.Sorted(slices.Values(l[name]))
	return all[len(all)/2]
}

// report gives each median as a multiple of that of raw, which was measured in the same laps.
func (l laps) report(b *testing.B) {
	b.Helper()
	raw := l.median("raw")
	b.ReportMetric(float64(raw.Microseconds()), "raw-µs")
	for name := range l {
		if name != "raw" {
			b.ReportMetric(float64(l.median(name))/float64(raw), name+"/raw")
		}
	}
}

func rawExec() error { return exec.Command("/bin/true").Run() }

func execTrue(b *testing.B, sb sandbox.Sandbox) error {
	p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"/bin/true"}})
	if err == nil {
		_, err = p.Wait(b.Context())
	}
	return err
}

// BenchmarkFigures takes turns, so that whatever else the machine does hits all alike. Run it with -benchtime=100x.
func BenchmarkFigures(b *testing.B) {
	cold := benchBackend(b)
	warm, dir := pooled(b, 1)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	live, err := cold.Open(b.Context(), sandbox.Spec{ID: "live"})
	must(err)
	seed, err := cold.Open(b.Context(), sandbox.Spec{ID: "seed"})
	must(err)
	_, err = sandbox.Run(b.Context(), seed, sandbox.Command{Args: []string{"sh", "-c", "mkdir d; cd d; i=0; while [ $i -lt 20000 ]; do echo $i > $i; i=$((i+1)); done"}}, sandbox.RunOptions{})
	must(err)
	snapshot, err := seed.(sandbox.Snapshotter).Snapshot(b.Context())
	must(err)
	l, n := laps{}, 0
	for b.Loop() {
		n++
		must(l.time("raw", rawExec))
		must(l.time("exec", func() error { return execTrue(b, live) }))
		var sb sandbox.Sandbox
		open := func(from sandbox.Backend, spec sandbox.Spec) func() error {
			spec.ID = fmt.Sprintf("figure-%d", n)
			return func() (err error) { sb, err = from.Open(b.Context(), spec); return err }
		}
		must(l.time("open", open(cold, sandbox.Spec{})))
		must(execTrue(b, sb))
		must(l.time("close", sb.Close))
		must(l.time("fork", open(cold, sandbox.Spec{From: snapshot})))
		must(sb.Close())
		if n > 1 {
			ahead(b, dir, 1)
			must(l.time("open-pooled", open(warm, sandbox.Spec{})))
		} else {
			must(open(warm, sandbox.Spec{})())
		}
		must(sb.Close())
		must(l.time("life", func() error {
			if err := open(cold, sandbox.Spec{})(); err != nil {
				return err
			}
			if err := execTrue(b, sb); err != nil {
				return err
			}
			return sb.Close()
		}))
	}
	l.report(b)
	b.ReportMetric(float64(l.median("fork"))/float64(l.median("open")), "fork/open")
}

// BenchmarkOpenWithHeap compares opening with 2 GiB of live heap in the runner and without.
func BenchmarkOpenWithHeap(b *testing.B) {
	backend := benchBackend(b)
	l, n := laps{}, 0
	opens := func(name string) {
		for range 25 {
			n++
			var sb sandbox.Sandbox
			if err := l.time(name, func() (err error) {
				sb, err = backend.Open(b.Context(), sandbox.Spec{ID: fmt.Sprintf("heap-%d", n)})
				return err
			}); err != nil {
				b.Fatal(err)
			}
			if err := sb.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		opens("without")
		heap := make([][]byte, 2048)
		for i := range heap {
			heap[i] = make([]byte, 1<<20)
			for at := 0; at < len(heap[i]); at += 4096 {
				heap[i][at] = 1
			}
		}
		opens("with")
		runtime.KeepAlive(heap)
		heap = nil
		runtime.GC()
	}
	b.ReportMetric(float64(l.median("with"))/float64(l.median("without")), "with/without")
}

// BenchmarkLives is whole lives, open, exec and close, by 8 callers.
func BenchmarkLives(b *testing.B) {
	backend := benchBackend(b)
	began := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	total := int64(max(b.N, 1))
	for range 8 {
		all.Go(func() {
			for n := next.Add(1); n <= total; n = next.Add(1) {
				sb, err := backend.Open(b.Context(), sandbox.Spec{ID: fmt.Sprintf("life-%d", n)})
				if err == nil {
					err = execTrue(b, sb)
				}
				if err == nil {
					err = sb.Close()
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(total)/time.Since(began).Seconds(), "lives/s")
}

// BenchmarkAlive keeps 1,000 sandboxes, all of which answer, and says what each costs the machine.
func BenchmarkAlive(b *testing.B) {
	backend := benchBackend(b)
	const alive = 1000
	for b.Loop() {
		before := available(b)
		boxes := make([]sandbox.Sandbox, alive)
		began := time.Now()
		for i := range boxes {
			var err error
			if boxes[i], err = backend.Open(b.Context(), sandbox.Spec{ID: fmt.Sprintf("alive-%d", i)}); err != nil {
				b.Fatal(err)
			}
		}
		opened := time.Since(began)
		b.ReportMetric(float64(before-available(b))/alive/1024, "MB/sandbox")
		for _, sb := range boxes {
			if err := execTrue(b, sb); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(before-available(b))/alive/1024, "MB/sandbox-used")
		b.ReportMetric(opened.Seconds(), "open-all-s")
		began = time.Now()
		var all sync.WaitGroup
		for _, sb := range boxes {
			all.Go(func() {
				if err := sb.Close(); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		b.ReportMetric(time.Since(began).Seconds(), "close-all-s")
	}
}

// BenchmarkKilledRunner kills a runner of ten sandboxes and waits until the last of their processes is gone.
func BenchmarkKilledRunner(b *testing.B) {
	var gone []time.Duration
	for b.Loop() {
		seconds := fmt.Sprintf("%d.75", 30000+len(gone))
		c := sandboxtest.Runner(b, sandboxtest.Holder, "native", b.TempDir(), seconds, "10")
		for sandboxtest.Sleepers(seconds) < 30 {
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		if err := c.Process.Kill(); err != nil {
			b.Fatal(err)
		}
		for sandboxtest.Sleepers(seconds) > 0 {
			time.Sleep(time.Millisecond)
		}
		gone = append(gone, time.Since(began))
	}
	b.ReportMetric(slices.Max(gone).Seconds(), "gone-s")
}

// available is the memory, in KiB, that the machine has left.
func available(b *testing.B) (kib int64) {
	b.Helper()
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for scan := bufio.NewScanner(file); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "MemAvailable:") {
			_, err := fmt.Sscanf(scan.Text(), "MemAvailable: %d kB", &kib)
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return kib
}
