package export_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/rows"
)

// scripts/bench/export runs these, each in a process of its own so that its peak of memory is its own, on a run directory
// in EXPORT_BENCH_DIR with EXPORT_EPISODES episodes, whose code is from the Go files below EXPORT_CORPUS.
func benchRun(b *testing.B) (dir string, episodes int) {
	dir, episodes = os.Getenv("EXPORT_BENCH_DIR"), 1000
	if text := os.Getenv("EXPORT_EPISODES"); text != "" {
		var err error
		if episodes, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	if dir == "" {
		dir = benchDir(b)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal")); err != nil {
		makeJournal(b, filepath.Join(dir, "journal"), episodes)
	}
	return dir, episodes
}

func makeJournal(b *testing.B, dir string, episodes int) {
	source, err := newRealistic(os.DirFS(cmp.Or(os.Getenv("EXPORT_CORPUS"), "../..")))
	if err != nil {
		b.Fatal(err)
	}
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	var wait sync.WaitGroup
	const writers = 32 // share their syncs
	for w := range writers {
		wait.Go(func() {
			for n := w; n < episodes; n += writers {
				if err := j.Append(b.Context(), source.Episode(n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func peakMB() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Maxrss) / 1024
}

// BenchmarkRunJournal makes the run directory.
func BenchmarkRunJournal(b *testing.B) {
	_, episodes := benchRun(b)
	source, err := newRealistic(os.DirFS(cmp.Or(os.Getenv("EXPORT_CORPUS"), "../..")))
	if err != nil {
		b.Fatal(err)
	}
	var size int
	for n := range min(episodes, 1000) {
		line, err := json.Marshal(source.Episode(n))
		if err != nil {
			b.Fatal(err)
		}
		size += len(line)
	}
	b.ReportMetric(float64(size)/float64(min(episodes, 1000)), "JSON-bytes/episode")
}

// BenchmarkRunExport is journal to Parquet, as at the end of a run, garbage collector and all.
func BenchmarkRunExport(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	dir, episodes := benchRun(b)
	for b.Loop() {
		reader, err := journal.OpenReader(filepath.Join(dir, "journal"))
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		files, err := export.RunFiles(b.Context(), export.Ahead(reader), dir)
		if err != nil {
			b.Fatal(err)
		}
		reader.Close()
		var size int64
		for _, f := range files {
			size += f.Bytes
		}
		b.ReportMetric(float64(episodes)/time.Since(began).Seconds(), "episodes/s")
		b.ReportMetric(float64(size)/float64(episodes), "Parquet-bytes/episode")
		b.ReportMetric(peakMB(), "peak-MB")
	}
}

// BenchmarkRunFromMemory is parquet-go alone, on the same rows: as it comes, and set up to write files as small as the
// export's.
func BenchmarkRunFromMemory(b *testing.B) {
	b.Run("plain", func(b *testing.B) { fromMemory(b, parquet.Compression(&zstd.Codec{Level: zstd.DefaultLevel})) })
	b.Run("as small", func(b *testing.B) {
		fromMemory(b, parquet.Compression(&zstd.Codec{Level: zstd.SpeedBetterCompression}), parquet.PageBufferSize(4<<20))
	})
}

func fromMemory(b *testing.B, options ...parquet.WriterOption) {
	dir, episodes := benchRun(b)
	reader, err := journal.OpenReader(filepath.Join(dir, "journal"))
	if err != nil {
		b.Fatal(err)
	}
	defer reader.Close()
	for b.Loop() {
		trajectories, closeTrajectories := plainWriter[rows.Trajectory](b, filepath.Join(dir, "memory.parquet"), rows.Trajectories, options)
		calls, closeCalls := plainWriter[rows.ToolCall](b, filepath.Join(dir, "memory-calls.parquet"), rows.ToolCalls, options)
		var batch []rows.Trajectory
		var batchCalls []rows.ToolCall
		var writing time.Duration
		write := func() {
			began := time.Now()
			for len(batch) > 0 {
				n := min(100, len(batch))
				if _, err := trajectories.Write(batch[:n]); err != nil {
					b.Fatal(err)
				}
				batch = batch[n:]
			}
			if _, err := calls.Write(batchCalls); err != nil {
				b.Fatal(err)
			}
			for _, flush := range []func() error{trajectories.Flush, calls.Flush} {
				if err := flush(); err != nil {
					b.Fatal(err)
				}
			}
			writing += time.Since(began)
			batch, batchCalls = nil, nil
		}
		for ep, err := range export.Ahead(reader).Episodes(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			row, err := rows.New(ep)
			if err != nil {
				b.Fatal(err)
			}
			batch, batchCalls = append(batch, row), append(batchCalls, rows.Calls(ep)...)
			if len(batch) == 10_000 {
				write()
			}
		}
		write()
		began := time.Now()
		closeTrajectories()
		closeCalls()
		writing += time.Since(began)
		b.ReportMetric(float64(episodes)/writing.Seconds(), "episodes/s")
	}
}

func plainWriter[Row any](b *testing.B, path string, schema *parquet.Schema, options []parquet.WriterOption) (*parquet.GenericWriter[Row], func()) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := parquet.NewGenericWriter[Row](f, append([]parquet.WriterOption{schema, parquet.DataPageStatistics(false)}, options...)...)
	return w, func() {
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		f.Close()
		os.Remove(path)
	}
}
