package toolbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"trajgen/outputs/estimate"
	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// ledgerName is the file of a ledger: a line per tool, backend, number of workers, source of calls and night.
const ledgerName = "tools.jsonl"

// reference is how many calls tell how a tool usually is.
const reference = 1000

// Entry is a line of the ledger.
type Entry struct {
	Night   string  `json:"night"`
	Tool    string  `json:"tool"`
	Toolset string  `json:"toolset"`
	Backend string  `json:"backend"`
	Workers int     `json:"workers"`
	Source  string  `json:"source"` // bench
	Of      string  `json:"of"`     // which calls
	Calls   int     `json:"calls"`  // first plays: those of one call depend on each other
	Errors  int     `json:"errors"`
	Classes counts  `json:"classes"`
	Lat     [64]int `json:"lat"` // calls by elapsed time; see bucket
	P50US   float64 `json:"p50_us"`
	P95US   float64 `json:"p95_us"`
	P99US   float64 `json:"p99_us"`
	Bytes   int     `json:"bytes"`
	Pairs   int     `json:"pairs"`
	Differ  int     `json:"differing_pairs"`
	Slow    int     `json:"slow"`     // calls beyond the limit
	LimitUS float64 `json:"limit_us"` // 1.1 times the p99 of the reference; 0 before there is one
	ErrorR  float64 `json:"R_error"`
	SlowR   float64 `json:"R_slow"`
	digests         // as they were shown
}

// bucket is the one of 64 buckets that a time belongs to: from 100 µs on, each is 10^(1/10) times as long as the one before.
func bucket(micros float64) int {
	return min(63, max(0, int(10*math.Log10(max(micros, 1)/100))))
}

// Alarm is something that got worse.
type Alarm struct {
	Tool    string `json:"tool"`
	Backend string `json:"backend"`
	Workers int    `json:"workers"`
	What    string `json:"what"` // errors, latency, schema, description or result
	Text    string `json:"text"`
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
		e.Lat[bucket(micros)]++
	}
	return e
}

// follow goes on with the evidence of a tool, by a night more.
func follow(all []Entry, now Entry, micros []float64) (Entry, []Alarm) {
	var past []Entry
	for _, e := range all {
		if e.Of == now.Of && e.Tool == now.Tool && e.Backend == now.Backend && e.Workers == now.Workers {
			past = append(past, e)
		}
	}
	var alarms []Alarm
	alarm := func(what, format string, args ...any) {
		alarms = append(alarms, Alarm{now.Tool, now.Backend, now.Workers, what, now.Tool + " " + fmt.Sprintf(format, args...)})
	}
	if len(past) == 0 {
		return now, nil
	}
	last := past[len(past)-1]
	for _, each := range []struct{ what, was, is string }{
		{"schema", last.Schema, now.Schema}, {"description", last.Description, now.Description}, {"result", last.Result, now.Result},
	} {
		if each.was != each.is {
			alarm(each.what, "%s changed since %s: %s, was %s", each.what, last.Night, each.is, each.was)
		}
	}
	sum := func(entries []Entry) (total Entry) {
		for _, e := range entries {
			total.Calls, total.Errors, total.Slow = total.Calls+e.Calls, total.Errors+e.Errors, total.Slow+e.Slow
			for i, n := range e.Lat {
				total.Lat[i] += n
			}
		}
		return total
	}
	usual := sum(past[:nights(past)])
	if usual.Calls < reference {
		return now, alarms
	}
	if now.ErrorR = estimate.Drift(live(last.ErrorR), estimate.UpperRate(usual.Errors, usual.Calls, 0.002), now.Errors, now.Calls); now.ErrorR >= estimate.DriftAlarm {
		begun := since(append(past, now), func(e Entry) float64 { return e.ErrorR })
		bad := sum(begun)
		alarm("errors", "errors %.1f %% since %s, usually %.1f %%", share(bad.Errors, bad.Calls), begun[0].Night, share(usual.Errors, usual.Calls))
	}
	// The limit comes from the reference, and how often calls usually exceed it from as many calls behind it.
	p99 := usual.p99()
	now.LimitUS = 1.1 * p99
	for _, each := range micros {
		if each > now.LimitUS {
			now.Slow++
		}
	}
	rest := past[nights(past):]
	usual = sum(rest[:nights(rest)])
	if usual.Calls < reference {
		return now, alarms
	}
	if now.SlowR = estimate.Drift(live(last.SlowR), estimate.UpperRate(usual.Slow, usual.Calls, 0.01), now.Slow, now.Calls); now.SlowR >= estimate.DriftAlarm {
		begun := since(append(past, now), func(e Entry) float64 { return e.SlowR })
		bad := sum(begun)
		alarm("latency", "p99 %+.0f %% since %s (to a bucket of 26 %%)", 100*(bad.p99()/p99-1), begun[0].Night)
	}
	return now, alarms
}

// nights are how many entries from the first on make a reference.
func nights(entries []Entry) int {
	calls := 0
	for i, e := range entries {
		if calls += e.Calls; calls >= reference {
			return i + 1
		}
	}
	return len(entries)
}

// live is the evidence to go on with: behind an alarm it begins anew.
func live(evidence float64) float64 {
	if evidence >= estimate.DriftAlarm {
		return 0
	}
	return evidence
}

// since are the last nights through which the evidence grew.
func since(entries []Entry, evidence func(Entry) float64) []Entry {
	n := len(entries) - 1
	for n > 0 && evidence(entries[n-1]) > 1 && evidence(entries[n-1]) < evidence(entries[n]) {
		n--
	}
	return entries[n:]
}

// p99 is the 99 % quantile, as if times were spread evenly over their bucket.
func (e *Entry) p99() float64 {
	sum := 0
	for _, n := range e.Lat {
		sum += n
	}
	wanted := 0.99 * float64(sum)
	for i, n := range e.Lat {
		if wanted <= float64(n) {
			return 100 * math.Pow(10, (float64(i)+wanted/float64(max(1, n)))/10)
		}
		wanted -= float64(n)
	}
	return 0
}

func share(k, n int) float64 { return 100 * float64(k) / float64(n) }
