package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// benchDir is on the disk that TMPDIR names; a memory file system would make fsync free.
func benchDir(b *testing.B) string {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// benchSize is how many episodes a benchmark goes over: scripts/bench/journal asks for more than there is time for in
// make bench.
func benchSize(b *testing.B, otherwise int) int {
	text := os.Getenv("JOURNAL_EPISODES")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// typical returns a function that makes the n-th episode of about 20 KB of JSON. They differ in their keys; their
// contents come round again.
func typical() func(n int) *episode.Episode {
	round := make([]*episode.Episode, 200)
	for n := range round {
		round[n] = sinktest.Episode(n, 0)
		for i := range 6 {
			round[n].Messages = append(round[n].Messages, episode.Message{Role: "tool", Content: sinktest.Large(2500 + 10*n + i)})
		}
	}
	return func(n int) *episode.Episode {
		ep := *round[n%len(round)]
		ep.Key.Sample, ep.Row = n, n/4
		ep.ID = ep.Key.ID()
		return &ep
	}
}

// appendAll appends n episodes from so many goroutines, at so many a second unless that is 0, and returns how long each
// took.
func appendAll(b *testing.B, j *journal.Journal, n, writers, rate int, episodes func(int) *episode.Episode) []time.Duration {
	b.Helper()
	took := make([]time.Duration, n)
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				ep := episodes(i)
				if rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				}
				start := time.Now()
				if err := j.Append(b.Context(), ep); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	return took
}

func benchJournal(b *testing.B, dir string, options journal.Options) *journal.Journal {
	b.Helper()
	j, err := journal.Open(dir, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	return j
}

func BenchmarkJournalAppend(b *testing.B) {
	episodes := typical()
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", writers), func(b *testing.B) {
			j := benchJournal(b, filepath.Join(benchDir(b), "journal"), journal.Options{})
			b.ReportAllocs()
			b.ResetTimer()
			appendAll(b, j, b.N, writers, 0, episodes)
		})
	}
}

// What durability costs: the same appends to a disk that syncs and to one that does not, in turn, from 64 goroutines, at
// 1,000 a second and as fast as they come.
func BenchmarkJournalDurability(b *testing.B) {
	episodes := typical()
	for _, rate := range []int{1000, 0} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			n := benchSize(b, 2000)
			var seconds, cpu [2]float64
			var latencies []time.Duration
			for b.Loop() {
				for round := range 6 {
					idle := round % 2
					var d journal.Options
					if idle == 1 {
						d.Disk = &faultyDisk{idle: true, forgets: true}
					}
					j := benchJournal(b, filepath.Join(benchDir(b), "journal"), d)
					before, began := cpuSeconds(), time.Now()
					took := appendAll(b, j, n, 64, rate, episodes)
					seconds[idle] += time.Since(began).Seconds()
					cpu[idle] += cpuSeconds() - before
					if idle == 0 {
						latencies = append(latencies, took...)
					}
					j.Close()
				}
			}
			slices.Sort(latencies)
			done := float64(len(latencies))
			b.ReportMetric(done/seconds[0], "episodes/s")
			b.ReportMetric(done/seconds[1], "unsynced/s")
			b.ReportMetric(100*(1-seconds[1]/seconds[0]), "%cost")
			b.ReportMetric(100*(cpu[0]/cpu[1]-1), "%cpu")
			b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds())/1e3, "p50-ms")
			b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds())/1e3, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// heap is what is in use after a collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// Memory and time of opening a journal of many episodes, small ones and such of 20 KB, nothing of which is in the cache.
func BenchmarkJournalOpen(b *testing.B) {
	sizes := map[string]func(int) *episode.Episode{
		"small":   func(n int) *episode.Episode { return small(n, 1, false) },
		"typical": typical(),
	}
	for _, name := range []string{"small", "typical"} {
		b.Run(name, func(b *testing.B) {
			n := benchSize(b, 5000)
			dir := filepath.Join(benchDir(b), "journal")
			empty := heap()
			j := benchJournal(b, dir, journal.Options{Disk: &faultyDisk{idle: true, forgets: true}})
			began := time.Now()
			appendAll(b, j, n, 16, 0, sizes[name])
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "appends/s")
			written := heap() - empty
			j.Close()
			j = nil
			var writer, reader time.Duration
			var opened, read float64
			for b.Loop() {
				coolDown(b, dir)
				empty := heap()
				began := time.Now()
				j, err := journal.Open(dir, journal.Options{})
				writer += time.Since(began)
				if err != nil || j.Len() != n {
					b.Fatalf("%d episodes, want %d: %v", j.Len(), n, err)
				}
				opened += heap() - empty
				j.Close()
				j = nil
				coolDown(b, dir)
				empty = heap()
				began = time.Now()
				r, err := journal.OpenReader(dir)
				reader += time.Since(began)
				if err != nil || r.Len() != n {
					b.Fatalf("%d episodes, want %d: %v", r.Len(), n, err)
				}
				read += heap() - empty
				r.Close()
			}
			rounds := float64(b.N)
			b.ReportMetric(writer.Seconds()*1e3/rounds, "open-ms")
			b.ReportMetric(reader.Seconds()*1e3/rounds, "reader-ms")
			b.ReportMetric(written/float64(n), "B/written")
			b.ReportMetric(opened/rounds/float64(n), "B/opened")
			b.ReportMetric(read/rounds/float64(n), "B/read")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// coolDown takes the files of a directory out of the page cache.
func coolDown(b *testing.B, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
