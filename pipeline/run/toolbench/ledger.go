package toolbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// ledgerName is the file of a ledger: a line per tool, backend, number of workers, source of calls and night.
const ledgerName = "tools.jsonl"

// reference is how many calls tell how a tool usually is.
const reference = 1000

// Entry is a line of the ledger.
type Entry struct {
	Night   string    `json:"night"`
	Tool    string    `json:"tool"`
	Toolset string    `json:"toolset"`
	Backend string    `json:"backend"`
	Workers int       `json:"workers"`
	Source  string    `json:"source"` // bench
	Of      string    `json:"of"`     // which calls
	Calls   int       `json:"calls"`  // first plays: those of one call depend on each other
	Errors  int       `json:"errors"`
	Classes counts    `json:"classes"`
	Lat     latencies `json:"lat"`
	P50US   float64   `json:"p50_us"`
	P95US   float64   `json:"p95_us"`
	P99US   float64   `json:"p99_us"`
	Bytes   int       `json:"bytes"`
	Pairs   int       `json:"pairs"`
	Differ  int       `json:"differing_pairs"`
	Slow    int       `json:"slow"`     // calls beyond the limit
	LimitUS float64   `json:"limit_us"` // 1.1 times the p99 of the reference; 0 before there is one
	ErrorR  float64   `json:"R_error"`
	SlowR   float64   `json:"R_slow"`
	digests           // as they were shown
}

// continues reports whether a line is about the same as another one, on another night.
func (e *Entry) continues(o Entry) bool {
	return e.Of == o.Of && e.Tool == o.Tool && e.Backend == o.Backend && e.Workers == o.Workers
}

// remember appends the tools to the ledger in a folder, and notes what got worse.
func (r *Report) remember(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	lock, err := locked(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	path := filepath.Join(dir, ledgerName)
	file, err := disk.Make(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	past, whole, err := readLedger(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	var lines bytes.Buffer
	for i := range r.Tools {
		entry, worse := follow(past, entryOf(r, &r.Tools[i]), r.Tools[i].micros)
		lines.WriteString(text(entry) + "\n")
		r.Alarms = append(r.Alarms, worse...)
	}
	// A writer that was killed may have left a part of a line, which is taken away.
	if err := file.Truncate(whole); err != nil {
		return disk.Explain(path, err)
	}
	if _, err := file.WriteAt(lines.Bytes(), whole); err != nil {
		return disk.Explain(path, err)
	}
	return file.Sync()
}

// locked waits for the lock of a folder, which others hold for the moment of writing.
func locked(ctx context.Context, dir string) (*os.File, error) {
	for {
		lock, err := log.Lock(dir)
		if !errors.Is(err, disk.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// readLedger reads the lines, and says where the last whole one ends.
func readLedger(file io.Reader) (entries []Entry, whole int64, err error) {
	lines := bufio.NewReader(file)
	for {
		line, err := log.ReadLine(lines, 1<<20)
		if err == io.EOF {
			return entries, whole, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("behind byte %d: %w", whole, err)
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		entries, whole = append(entries, entry), whole+int64(len(line))
	}
}

func entryOf(r *Report, t *Tool) Entry {
	e := Entry{Night: r.Night, Of: r.Calls, Tool: t.Name, Toolset: t.Toolset, Backend: t.Backend, Workers: t.Workers, Source: "bench",
		Calls: t.Calls, Errors: t.Failing, Classes: t.Classes, Bytes: t.Bytes, Pairs: t.Pairs, Differ: t.Differing, digests: t.digests,
		P50US: t.ElapsedUS.P50.Value, P95US: t.ElapsedUS.P95.Value, P99US: t.ElapsedUS.P99.Value}
	for _, micros := range t.micros {
		e.Lat.add(micros)
	}
	return e
}

// follow goes on with the evidence of a tool, by a night more.
func follow(all []Entry, now Entry, micros []float64) (Entry, []Alarm) {
	past := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return !e.continues(now) })
	now, alarms := judge(past, now, micros)
	for i := range alarms {
		alarms[i].tell(append(past, now))
	}
	return now, alarms
}
