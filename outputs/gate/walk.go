package gate

import (
	"math"

	"trajgen/outputs/estimate"
)

// Verdict is the answer of a gate.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "PASS"         // the candidate is not worse by more than the margin
	Fail         Verdict = "FAIL"         // it is
	Inconclusive Verdict = "INCONCLUSIVE" // neither is shown
	Broken       Verdict = "BROKEN"       // the measurement cannot be trusted
)

// Why a verdict is Inconclusive.
const (
	ReasonBudget = "budget" // so many plays do not show it
	ReasonInfra  = "infra"  // they would have, had all plays been resolved
)

// Unresolved is what is known of a play that ended without a value.
var Unresolved = estimate.Interval{Low: 0, High: 1}

// Value is a play's value, within 0 and 1.
func Value(x float64) estimate.Interval { return estimate.Interval{Low: x, High: x} }

// Walk judges the steps of a plan in their order. Its state is a function of the plan and the plays.
type Walk struct {
	plan       *Plan
	fail, pass *bets
	// sureFail and surePass skip steps that are not resolved; nil until one is not.
	sureFail, surePass *bets
	sure               bool // these would have decided

	ofFail, ofPass []float64 // the steps' values, with unresolved plays for the candidate and against it
	unresolved     int
	verdict        Verdict
}

// Walk begins to judge.
func (p *Plan) Walk() *Walk {
	return &Walk{
		plan: p,
		fail: newBets(-p.Margin, 1, stake/(p.W+p.Margin), p.V0, p.Margin, 3*p.Margin),
		pass: newBets(-p.Margin, -1, stake/(p.W-p.Margin), p.V0, p.Margin),
	}
}

// Steps is how many were judged.
func (w *Walk) Steps() int { return len(w.ofFail) }

// Step judges the next step, which played a task with both arms, and returns Pass or Fail when that is shown, and "" before. No step
// may follow that.
func (w *Walk) Step(task int, base, candidate estimate.Interval) Verdict {
	weight := w.plan.weight(task)
	f, p := weight*(candidate.High-base.Low), weight*(candidate.Low-base.High)
	if f != p {
		if w.sureFail == nil {
			w.sureFail, w.surePass = w.fail.clone(), w.pass.clone()
		}
		for _, play := range []estimate.Interval{base, candidate} {
			if play.Low != play.High {
				w.unresolved++
			}
		}
	} else if w.sureFail != nil {
		w.sureFail.add(f)
		w.surePass.add(p)
		w.sure = w.sure || w.decides(w.sureFail, w.surePass) != ""
	}
	w.ofFail, w.ofPass = append(w.ofFail, f), append(w.ofPass, p)
	w.fail.add(f)
	w.pass.add(p)
	w.verdict = w.decides(w.fail, w.pass)
	return w.verdict
}

func (w *Walk) decides(fail, pass *bets) Verdict {
	switch {
	case fail.log() >= math.Log(1/w.plan.Alpha):
		return Fail
	case pass.log() >= math.Log(1/w.plan.Beta):
		return Pass
	}
	return ""
}

// Evidence is the logarithms of the evidence for Fail and for Pass.
func (w *Walk) Evidence() (fail, pass float64) { return w.fail.log(), w.pass.log() }
