package gate

import (
	"fmt"
	"io"
	"math"

	"trajgen/outputs/estimate"
)

// The modes of a gate.
const (
	Sequential = "sequential" // play until it is shown
	Fixed      = "fixed"      // look once
)

// Result is what a gate says.
type Result struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // why it is INCONCLUSIVE or BROKEN
	Mode    string  `json:"mode"`
	Metric  string  `json:"metric"`
	// Base and Candidate are the fingerprints of the experiments.
	Base      string `json:"base,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	Question
	Tasks      int     `json:"tasks"`
	Steps      int     `json:"steps,omitempty"` // judged, each with a play of both arms
	Plays      int     `json:"plays"`
	Unresolved int     `json:"unresolved"` // plays that ended without a value
	Clipped    int     `json:"clipped,omitempty"`
	D          float64 `json:"d"` // candidate − base, over these very tasks
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	// LogFail and LogPass are the logarithms of the evidence, of the sequential mode.
	LogFail float64 `json:"log_fail,omitempty"`
	LogPass float64 `json:"log_pass,omitempty"`
	// More is how many plays altogether are likely to show that nothing changed, where this is INCONCLUSIVE.
	More int `json:"settled_by_plays,omitempty"`
}

// Result is what the walk says when it ends here.
func (w *Walk) Result(metric string) *Result {
	p := w.plan
	r := &Result{Verdict: w.verdict, Mode: Sequential, Metric: metric, Question: p.Question, Tasks: len(p.Tasks), Steps: w.Steps(), Plays: 2 * w.Steps(), Unresolved: w.unresolved}
	d, in := w.Difference()
	r.D, r.Low, r.High = d, in.Low, in.High
	r.LogFail, r.LogPass = w.Evidence()
	if w.verdict == "" {
		r.undecided(w.sure, 2*int(math.Ceil(2.5*p.Steps(p.Margin, p.Beta))))
	}
	r.check()
	return r
}

// undecided says why, and what it takes.
func (r *Result) undecided(sure bool, plays int) {
	r.Verdict, r.Reason, r.More = Inconclusive, ReasonBudget, plays
	if sure {
		r.Reason = ReasonInfra
	}
}

// check overrules a verdict on plays of which too many have no value.
func (r *Result) check() {
	if share := float64(r.Unresolved) / float64(max(1, r.Plays)); share > r.UnresolvedMax {
		r.Verdict, r.More = Broken, 0
		r.Reason = fmt.Sprintf("%d of %d plays ended without a value, more than %.3g %%: mend what they ended in and play again", r.Unresolved, r.Plays, 100*r.UnresolvedMax)
	}
}

// Paired is the plays of one task by both arms.
type Paired struct{ Base, Candidate []estimate.Interval }

// Look judges finished plays once. Each arm needs two plays of each task at least.
func (q Question) Look(metric string, tasks []Paired) *Result {
	r := &Result{Mode: Fixed, Metric: metric, Question: q, Tasks: len(tasks)}
	low := func(i estimate.Interval) float64 { return i.Low }
	high := func(i estimate.Interval) float64 { return i.High }
	for _, t := range tasks {
		for _, play := range append(append([]estimate.Interval(nil), t.Base...), t.Candidate...) {
			if r.Plays++; play.Low != play.High {
				r.Unresolved++
			}
		}
	}
	worst, worstSE := difference(tasks, high, low)
	best, bestSE := difference(tasks, low, high)
	zAlpha, zBeta := quantile(1-q.Alpha), quantile(1-q.Beta)
	r.D, r.Low, r.High = (worst+best)/2, max(-1, worst-quantile(0.975)*worstSE), min(1, best+quantile(0.975)*bestSE)
	switch {
	case best+zAlpha*bestSE < -q.Margin:
		r.Verdict = Fail
	case worst-zBeta*worstSE > -q.Margin:
		r.Verdict = Pass
	default:
		middle, se := (worst+best)/2, max(worstSE, bestSE)
		sure := middle+zAlpha*se < -q.Margin || middle-zBeta*se > -q.Margin
		// SE falls with the root of the plays; it must be so small that PASS is said in four of five such looks.
		enough := q.Margin / (zBeta + quantile(0.8))
		r.undecided(sure && r.Unresolved > 0, int(math.Ceil(float64(r.Plays)*se*se/enough/enough)))
	}
	r.check()
	return r
}

// difference is of the means over the tasks, and its error on these very tasks.
func difference(tasks []Paired, ofBase, ofCandidate func(estimate.Interval) float64) (d, se float64) {
	base, candidate := make([]estimate.Cluster, len(tasks)), make([]estimate.Cluster, len(tasks))
	for i, t := range tasks {
		for _, play := range t.Base {
			base[i].Add(ofBase(play))
		}
		for _, play := range t.Candidate {
			candidate[i].Add(ofCandidate(play))
		}
		d += (candidate[i].Mean() - base[i].Mean()) / float64(len(tasks))
	}
	return d, math.Sqrt(estimate.SuiteVariance(base) + estimate.SuiteVariance(candidate))
}

// WriteText is a few lines for people.
func (r *Result) WriteText(w io.Writer) error {
	text := string(r.Verdict)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	if r.Plays > 0 {
		text += "\n" + r.measured()
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// measured says what the plays showed.
func (r *Result) measured() string {
	early := ""
	if r.Mode == Sequential && r.Verdict != Inconclusive {
		early = " (after an early stop this is exaggerated)"
	}
	text := fmt.Sprintf("%s of the candidate − base: %+.1f points%s, between %+.1f and %+.1f; margin %.3g points\n%d plays of %d tasks",
		r.Metric, 100*r.D, early, 100*r.Low, 100*r.High, 100*r.Margin, r.Plays, r.Tasks)
	if r.Mode == Sequential {
		text += fmt.Sprintf(" in %d steps, evidence for FAIL %.3g of %.3g, for PASS %.3g of %.3g", r.Steps, math.Exp(r.LogFail), 1/r.Alpha, math.Exp(r.LogPass), 1/r.Beta)
	}
	if r.Unresolved > 0 {
		text += fmt.Sprintf("; %d without a value, counted against each verdict", r.Unresolved)
	}
	if r.Clipped > 0 {
		text += fmt.Sprintf("; %d rewards outside 0 to 1 were clipped", r.Clipped)
	}
	if r.More > 0 {
		text += fmt.Sprintf("\nIf nothing changed, about %d plays altogether are likely to show it", r.More)
	}
	return text
}
