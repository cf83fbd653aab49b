package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// Writing is how fast episodes of a coding agent get into a file.
type Writing struct {
	Format   string  `json:"format"`
	Episodes int     `json:"episodes"`
	RowsPerS float64 `json:"rows_per_s"` // episodes
	MBPerS   float64 `json:"mb_per_s"`   // of their JSON
	JSONMB   float64 `json:"json_mb"`
	FileMB   float64 `json:"file_mb"`
	CPUMS    float64 `json:"cpu_ms_per_row"` // of the writing
	PeakMB   float64 `json:"peak_mb,omitempty"`
}

// Formats are those that are measured. The last is the library alone, which gets its rows ready made.
func Formats() []string { return []string{"journal", "parquet", "arrow", "parquet-go"} }

// writing measures each format in each round, so that all of them see the same weather.
func (d *driver) writing(ctx context.Context) error {
	each := map[string][]Writing{}
	for range d.Rounds {
		for _, format := range Formats() {
			dir, err := d.newDir()
			if err != nil {
				return err
			}
			var w Writing
			m, err := d.measure(ctx, &w, false, d.Itself, "write", "--format", format, "--episodes", strconv.Itoa(d.size(4000, 500, 20)), "--dir", dir)
			if err != nil {
				return err
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			w.PeakMB = m.PeakMB
			each[format] = append(each[format], w)
		}
	}
	for _, format := range Formats() {
		all := each[format]
		w := all[0]
		w.RowsPerS = median(all, func(w Writing) float64 { return w.RowsPerS })
		w.MBPerS = median(all, func(w Writing) float64 { return w.MBPerS })
		w.CPUMS = median(all, func(w Writing) float64 { return w.CPUMS })
		w.PeakMB = median(all, func(w Writing) float64 { return w.PeakMB })
		d.report.Writing = append(d.report.Writing, w)
		d.logf("writing: %s, %.0f rows/s", format, w.RowsPerS)
	}
	return nil
}

// MeasureWriting writes so many episodes below a directory.
func MeasureWriting(ctx context.Context, format, dir string, episodes int) (Writing, error) {
	w := Writing{Format: format, Episodes: episodes}
	all := make([]*episode.Episode, episodes)
	for n := range all {
		ep, err := generate(n)
		if err != nil {
			return w, err
		}
		text, err := journal.Encode(ep)
		if err != nil {
			return w, err
		}
		all[n] = ep
		w.JSONMB += float64(len(text)) / (1 << 20)
	}
	write, err := writerOf(format, dir, all)
	if err != nil {
		return w, err
	}
	cpu, began := ownCPU(), time.Now()
	if err := write(ctx); err != nil {
		return w, fmt.Errorf("write %s: %w", format, err)
	}
	seconds := time.Since(began).Seconds()
	w.CPUMS = (ownCPU() - cpu) / float64(episodes)
	w.RowsPerS, w.MBPerS = float64(episodes)/seconds, w.JSONMB/seconds
	w.FileMB, err = sizeBelow(dir)
	return w, err
}

// writerOf makes what is to be measured ready.
func writerOf(format, dir string, all []*episode.Episode) (func(context.Context) error, error) {
	switch format {
	case "journal":
		return func(ctx context.Context) error { return toJournal(ctx, dir, all) }, nil
	case "parquet-go":
		var trajectories []rows.Trajectory
		var calls []rows.ToolCall
		for _, ep := range all {
			row, err := rows.New(ep)
			if err != nil {
				return nil, err
			}
			trajectories, calls = append(trajectories, row), append(calls, rows.Calls(ep)...)
		}
		return func(context.Context) error {
			return errors.Join(toParquet(filepath.Join(dir, "trajectories.parquet"), rows.Trajectories, trajectories),
				toParquet(filepath.Join(dir, "tool_calls.parquet"), rows.ToolCalls, calls))
		}, nil
	}
	sink, err := export.Open(format, filepath.Join(dir, "out"), export.Options{})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for _, ep := range all {
			if err := sink.Write(ctx, ep); err != nil {
				return errors.Join(err, sink.Close())
			}
		}
		_, err := sink.Commit()
		return errors.Join(err, sink.Close())
	}, nil
}

// toJournal appends from many goroutines, which share their syncs, as those of a run do.
func toJournal(ctx context.Context, dir string, all []*episode.Episode) error {
	const writers = 32
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wait.Go(func() {
			for n := w; n < len(all) && errs[w] == nil; n += writers {
				errs[w] = j.Append(ctx, all[n])
			}
		})
	}
	wait.Wait()
	return errors.Join(errors.Join(errs...), j.Close())
}

// toParquet is what an engineer writes who has rows and parquet-go.
func toParquet[Row any](path string, schema *parquet.Schema, all []Row) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := parquet.NewGenericWriter[Row](f, schema, parquet.Compression(&zstd.Codec{Level: zstd.DefaultLevel}))
	for len(all) > 0 && err == nil {
		n := min(100, len(all))
		_, err = w.Write(all[:n])
		all = all[n:]
	}
	return errors.Join(err, w.Close(), f.Sync(), f.Close())
}

func sizeBelow(dir string) (mb float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			mb += float64(info.Size()) / (1 << 20)
		}
		return err
	})
	return mb, err
}
