package bench

import (
	"fmt"
	"slices"

	"trajgen/sandbox"
)

// Target is where the runner's own cost has to get to, and where it is.
type Target struct {
	Name     string   `json:"name"`
	Measured *float64 `json:"measured"` // null when it was not
	AtLeast  bool     `json:"at_least,omitempty"`
	Wanted   float64  `json:"wanted"`
	Unit     string   `json:"unit"`
	Verdict  Verdict  `json:"verdict"`
	Note     string   `json:"note,omitempty"`
}

// Verdict is what became of a target.
type Verdict string

// The verdicts.
const (
	VerdictPass Verdict = "pass"
	VerdictFail Verdict = "fail"
	VerdictNone Verdict = "not measured"
)

// atMost and atLeast make a target. ok says whether value was measured as the target means it.
func atMost(name string, value float64, ok bool, wanted float64, unit, note string) Target {
	return target(name, value, ok, wanted, unit, note, false)
}

func atLeast(name string, value float64, ok bool, wanted float64, unit, note string) Target {
	return target(name, value, ok, wanted, unit, note, true)
}

func target(name string, value float64, ok bool, wanted float64, unit, note string, least bool) Target {
	t := Target{Name: name, AtLeast: least, Wanted: wanted, Unit: unit, Verdict: VerdictNone, Note: note}
	if !ok {
		return t
	}
	t.Measured, t.Verdict = &value, VerdictFail
	if least && value >= wanted || !least && value <= wanted {
		t.Verdict = VerdictPass
	}
	return t
}

// judge holds what was measured against the targets.
func (r *Report) judge() []Target {
	return slices.Concat(r.judgeParts(), r.judgeMemory(), r.judgeFlight(), r.judgeGrowth(), r.judgeStart())
}

func (r *Report) judgeParts() []Target {
	against := func(name string) (float64, bool) {
		if s := r.stage(name); s != nil {
			return s.CPURatio, s.CPURatio > 0
		}
		return 0, false
	}
	limits := ""
	if kind := r.Limits[sandbox.LimitMemory]; kind != "" && kind != "hard" {
		limits = "memory limits are " + kind + " here"
	}
	noop, hasNoop := against("noop")
	local, hasLocal := against("local")
	_, hasFull := against("full")
	var rate, share float64
	if hasFull {
		rate, share = r.stage("full").EpisodesPerS, r.stage("full").RateRatio
	}
	return []Target{
		atMost("no-op tools: CPU an episode against the limit loop", noop, hasNoop, 1.5, "times", ""),
		atMost("local: CPU an episode against the limit loop with shells", local, hasLocal, 1.5, "times", ""),
		atLeast("native, limits, verifier, journal, Parquet: episodes", rate, hasFull, 100, "/s", limits),
		atLeast("the same, against the limit loop with shells", share, hasFull, 0.5, "times", ""),
	}
}

func (r *Report) judgeMemory() []Target {
	var live, waiting float64
	var note, waits string
	hasLive, hasWaiting := false, false
	if r.Memory != nil && r.Memory.Live != nil {
		l := r.Memory.Live
		live, hasLive = l.PeakMB, l.AllAlive && l.InFlight >= 1000 && l.MemoryIs == "pss"
		note = fmt.Sprintf("%d in flight, peak %.0f MB, all at once: %t", l.InFlight, l.PeakMB, l.AllAlive)
	}
	if r.Memory != nil && r.Memory.Waiting != nil {
		w := r.Memory.Waiting
		waiting, hasWaiting = w.KBEach, w.AllWaiting && w.MemoryIs == "pss"
		waits = fmt.Sprintf("%d waiting", w.InFlight)
	}
	return []Target{
		atMost("1,000 live sandboxes: peak of runner and broker", live, hasLive, 150, "MB", note),
		atMost("an episode that waits for a model, history of 2 KB", waiting, hasWaiting, 64, "KB", waits),
	}
}

func (r *Report) judgeFlight() []Target {
	var most Flight
	for _, f := range r.Flight {
		if f.InFlight >= most.InFlight && f.DelayS == 2 {
			most = f
		}
	}
	ok := most.InFlight >= mostInFlight
	note := ""
	switch {
	case ok && most.Sent < most.InFlight:
		note = fmt.Sprintf("%d requests at a time: each takes an open file (ulimit -Hn)", most.Sent)
	case !ok && most.InFlight > 0:
		note = fmt.Sprintf("with %d: %.2f times, first 1,000 after %.2f s (the limit %.2f), p99 %.0f ms (the limit %.0f)",
			most.InFlight, most.RateRatio, most.Trajgen.First1000S, most.Limit.First1000S, most.Trajgen.P99MS, most.Limit.P99MS)
	}
	return []Target{
		atLeast("50,000 in flight, 2 s: rate against what server and CPU allow", most.RateRatio, ok, 0.8, "times", note),
		atMost("the same: until the first 1,000 requests are out", most.Trajgen.First1000S, ok, 1, "s", ""),
		atMost("the same: p99 of the scheduler's delay", most.Trajgen.P99MS, ok, 50, "ms", ""),
	}
}

func (r *Report) judgeGrowth() []Target {
	var last Growth
	if r.Scale != nil && len(r.Scale.Growth) > 0 {
		last = r.Scale.Growth[len(r.Scale.Growth)-1]
	}
	// Less is no worse: the first of the episodes pay for what all use.
	return []Target{atMost("1,000,000 episodes in one run: CPU of the last 3 tenths by tenths 2 to 4", last.LateToEarly, last.Rows >= 1_000_000, 1.1, "times", "")}
}

func (r *Report) judgeStart() []Target {
	var native, resume, binary float64
	hasRows := false
	if r.Start != nil {
		native, resume, binary = r.Start.FirstRequestMS["native"], r.Start.ResumeMS, r.Start.BinaryMB
		hasRows = r.Start.Rows >= 100_000
	}
	return []Target{
		atMost("start until the first request, 100,000 rows", native, hasRows && native > 0, 1000, "ms", ""),
		atMost("resume with 100,000 finished episodes", resume, hasRows && resume > 0, 2000, "ms", ""),
		atMost("binary", binary, binary > 0, 60, "MB", ""),
	}
}
