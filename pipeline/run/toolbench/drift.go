package toolbench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/estimate"
)

// Alarm is something that got worse.
type Alarm struct {
	Tool    string `json:"tool"`
	Backend string `json:"backend"`
	Workers int    `json:"workers"`
	What    string `json:"what"`  // errors, latency, schema, description or result
	Since   string `json:"since"` // night
	Text    string `json:"text"`

	begun int     // place of that night in its series
	usual float64 // of the reference
}

// tell words the alarm, by all nights of its series since it began.
func (a *Alarm) tell(series []Entry) {
	bad := sum(series[a.begun:])
	switch a.What {
	case "errors":
		a.Text = fmt.Sprintf("%s errors %.1f %% since %s, usually %.1f %%", a.Tool, share(bad.Errors, bad.Calls), a.Since, a.usual)
	case "latency":
		a.Text = fmt.Sprintf("%s p99 %+.0f %% since %s", a.Tool, 100*(bad.Lat.p99()/a.usual-1), a.Since)
	}
}

// Drift is what got worse in a ledger.
type Drift struct {
	Nights int     `json:"nights"` // lines
	Tools  int     `json:"tools"`  // with one backend, number of workers and choice of calls each
	Alarms []Alarm `json:"alarms"`
}

// ReadDrift reads the ledger in a folder.
func ReadDrift(dir string) (*Drift, error) {
	path := filepath.Join(dir, ledgerName)
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; tools bench --ledger %s writes one", err, dir)
	}
	defer file.Close()
	left, _, err := readLedger(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	d := &Drift{Nights: len(left), Alarms: []Alarm{}}
	for ; len(left) > 0; d.Tools++ {
		first := left[0]
		series := slices.DeleteFunc(slices.Clone(left), func(e Entry) bool { return !e.continues(first) })
		left = slices.DeleteFunc(left, func(e Entry) bool { return e.continues(first) })
		d.Alarms = append(d.Alarms, alarmsOf(series)...)
	}
	return d, nil
}

// alarmsOf are the alarms of a series of nights. Of errors and latencies it is the first one: how much worse they are since then
// takes in the later ones.
func alarmsOf(series []Entry) (all []Alarm) {
	for i, night := range series {
		_, alarms := judge(series[:i], night, nil)
		for _, a := range alarms {
			if a.Text == "" && slices.ContainsFunc(all, func(was Alarm) bool { return was.What == a.What }) {
				continue
			}
			a.tell(series)
			all = append(all, a)
		}
	}
	return all
}

// Bad reports whether something got worse.
func (d *Drift) Bad() bool { return len(d.Alarms) > 0 }

// WriteText writes a line for each alarm.
func (d *Drift) WriteText(w io.Writer) error {
	for _, a := range d.Alarms {
		if _, err := fmt.Fprintf(w, "%s (%s, %d workers)\n", a.Text, a.Backend, a.Workers); err != nil {
			return err
		}
	}
	if d.Bad() {
		return nil
	}
	_, err := fmt.Fprintf(w, "nothing got worse: %d series of %d lines\n", d.Tools, d.Nights)
	return err
}

// judge goes on with the evidence of a series by a night. The micros of a night in the ledger are nil: its slow calls are counted.
func judge(past []Entry, now Entry, micros []float64) (_ Entry, alarms []Alarm) {
	if len(past) == 0 {
		return now, nil
	}
	alarm := func(what string, usual float64, begun int) {
		night := append(slices.Clip(past), now)[begun].Night
		alarms = append(alarms, Alarm{Tool: now.Tool, Backend: now.Backend, Workers: now.Workers, What: what, Since: night, usual: usual, begun: begun})
	}
	last := past[len(past)-1]
	for _, each := range []struct{ what, was, is string }{
		{"schema", last.Schema, now.Schema}, {"description", last.Description, now.Description}, {"result", last.Result, now.Result},
	} {
		if each.was != each.is {
			alarm(each.what, 0, len(past)-1)
			alarms[len(alarms)-1].Text = fmt.Sprintf("%s %s changed since %s: %s, was %s", now.Tool, each.what, last.Night, each.is, each.was)
		}
	}
	usual := sum(past[:nights(past)])
	if usual.Calls < reference {
		return now, alarms
	}
	now.ErrorR = estimate.Drift(live(last.ErrorR), estimate.UpperRate(usual.Errors, usual.Calls, 0.002), now.Errors, now.Calls)
	if now.ErrorR >= estimate.DriftAlarm {
		alarm("errors", share(usual.Errors, usual.Calls), since(past, now.ErrorR, func(e Entry) float64 { return e.ErrorR }))
	}
	// The limit comes from the reference, and how often calls usually exceed it from as many calls behind it.
	p99 := usual.Lat.p99()
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
	now.SlowR = estimate.Drift(live(last.SlowR), estimate.UpperRate(usual.Slow, usual.Calls, 0.01), now.Slow, now.Calls)
	if now.SlowR >= estimate.DriftAlarm {
		alarm("latency", p99, since(past, now.SlowR, func(e Entry) float64 { return e.SlowR }))
	}
	return now, alarms
}

// sum adds up nights.
func sum(entries []Entry) (total Entry) {
	for _, e := range entries {
		total.Calls, total.Errors, total.Slow = total.Calls+e.Calls, total.Errors+e.Errors, total.Slow+e.Slow
		for i, n := range e.Lat {
			total.Lat[i] += n
		}
	}
	return total
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

// since is the first of the nights through which the evidence grew.
func since(past []Entry, now float64, evidence func(Entry) float64) int {
	n := len(past)
	for n > 0 && evidence(past[n-1]) > 1 && evidence(past[n-1]) < now {
		n--
		now = evidence(past[n])
	}
	return n
}

func share(k, n int) float64 { return 100 * float64(k) / float64(n) }
