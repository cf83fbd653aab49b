package bench

import "fmt"

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

// judge holds what was measured against the targets. A value of 0 was not measured, or not as the target means it.
func (r *Report) judge() (all []Target) {
	add := func(value float64, t Target) {
		t.Verdict = VerdictNone
		if value > 0 {
			t.Measured, t.Verdict = &value, VerdictFail
			if t.AtLeast && value >= t.Wanted || !t.AtLeast && value <= t.Wanted {
				t.Verdict = VerdictPass
			}
		}
		all = append(all, t)
	}
	var noop, local, full StageResult
	for name, part := range map[string]*StageResult{"noop": &noop, "local": &local, "full": &full} {
		if s := r.stage(name); s != nil {
			*part = *s
		}
	}
	add(noop.CPURatio, Target{Name: "no-op tools: CPU an episode against the limit loop", Wanted: 1.5, Unit: "times"})
	add(local.CPURatio, Target{Name: "local: CPU an episode against the limit loop with shells", Wanted: 1.5, Unit: "times"})
	add(full.EpisodesPerS, Target{Name: "native, limits, verifier, journal, Parquet: episodes", AtLeast: true, Wanted: 100, Unit: "/s"})
	add(full.RateRatio, Target{Name: "the same, against the limit loop with shells", AtLeast: true, Wanted: 0.5, Unit: "times"})

	live, liveNote, waiting, waitingNote := r.memoryTargets()
	add(live, Target{Name: "1,000 live sandboxes: peak of runner and broker", Wanted: 150, Unit: "MB", Note: liveNote})
	add(waiting, Target{Name: "an episode that waits for a model, history of 2 KB", Wanted: 64, Unit: "KB", Note: waitingNote})

	most, note := r.mostFlight()
	add(most.RateRatio, Target{Name: "50,000 in flight, 2 s: rate against what server and CPU allow", AtLeast: true, Wanted: 0.8, Unit: "times", Note: note})
	add(most.Trajgen.First1000S, Target{Name: "the same: until the first 1,000 requests are out", Wanted: 1, Unit: "s"})
	add(most.Trajgen.SchedP99MS, Target{Name: "the same: p99 of the scheduler's delay", Wanted: 50, Unit: "ms"})

	var late float64
	if r.Scale != nil && len(r.Scale.Growth) > 0 {
		if last := r.Scale.Growth[len(r.Scale.Growth)-1]; last.Rows >= 1_000_000 {
			late = last.LateToEarly
		}
	}
	// Less passes, too: the first of the episodes pay for what all use.
	add(late, Target{Name: "1,000,000 episodes in one run: CPU of the last 3 tenths by tenths 2 to 4", Wanted: 1.1, Unit: "times"})

	var native, resume, binary float64
	if r.Start != nil {
		binary = r.Start.BinaryMB
		if r.Start.Rows >= 100_000 {
			native, resume = r.Start.FirstRequestMS["native"], r.Start.ResumeMS
		}
	}
	add(native, Target{Name: "start until the first request, 100,000 rows", Wanted: 1000, Unit: "ms"})
	add(resume, Target{Name: "resume with 100,000 finished episodes", Wanted: 2000, Unit: "ms"})
	add(binary, Target{Name: "binary", Wanted: 75, Unit: "MB"})
	return all
}

// memoryTargets are the memory of 1,000 live sandboxes in MB, and of a waiting episode in KB.
func (r *Report) memoryTargets() (live float64, liveNote string, waiting float64, waitingNote string) {
	if r.Memory == nil {
		return
	}
	if l := r.Memory.Live; l != nil {
		liveNote = fmt.Sprintf("%d in flight, peak %.0f MB, all at once: %t", l.InFlight, l.PeakMB, l.AllAlive)
		if l.AllAlive && l.InFlight >= 1000 {
			live = l.PeakMB
		}
	}
	if w := r.Memory.Waiting; w != nil {
		waitingNote = fmt.Sprintf("%d waiting", w.InFlight)
		if w.AllWaiting {
			waiting = w.KBEach
		}
	}
	return live, liveNote, waiting, waitingNote
}

// mostFlight is the flight that the targets are about; without it the note says what the largest other one showed.
func (r *Report) mostFlight() (most Flight, note string) {
	for _, f := range r.Flight {
		if f.InFlight >= most.InFlight && f.DelayS == 2 {
			most = f
		}
	}
	switch {
	case most.InFlight < mostInFlight && most.InFlight > 0:
		note = fmt.Sprintf("with %d: %.2f times, first 1,000 after %.2f s (the limit %.2f), p99 %.0f ms (the limit %.0f)",
			most.InFlight, most.RateRatio, most.Trajgen.First1000S, most.Limit.First1000S, most.Trajgen.SchedP99MS, most.Limit.SchedP99MS)
		return Flight{}, note
	case most.Sent < most.InFlight:
		note = fmt.Sprintf("%d requests at a time: each takes an open file (ulimit -Hn)", most.Sent)
	}
	return most, note
}
