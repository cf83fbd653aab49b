package gate

import (
	"fmt"
	"io"
	"math"
)

// Forecast is how many plays a gate is likely to take.
type Forecast struct {
	Question
	W      float64  `json:"w"`
	V0     float64  `json:"v0"`
	Budget int      `json:"budget_plays"`
	Cases  []Likely `json:"cases"`
}

// Likely is what happens where the true difference is D.
type Likely struct {
	D       float64 `json:"d"`
	Verdict Verdict `json:"verdict"`
	Plays   int     `json:"plays"` // on average, of both arms together; in one case of ten it takes two to three times as many
}

// Forecast says what the plan is likely to take.
func (p *Plan) Forecast() *Forecast {
	f := &Forecast{Question: p.Question, W: p.W, V0: p.V0, Budget: p.Budget}
	plays := func(gap, rate float64) int { return 2 * int(math.Ceil(p.Steps(gap, rate))) }
	f.Cases = append(f.Cases, Likely{0, Pass, plays(p.Margin, p.Beta)})
	for times := 2.0; times <= 3; times++ {
		f.Cases = append(f.Cases, Likely{-times * p.Margin, Fail, plays((times-1)*p.Margin, p.Alpha)})
	}
	return f
}

// WriteText is a line for each case.
func (f *Forecast) WriteText(w io.Writer) error {
	for _, c := range f.Cases {
		fmt.Fprintf(w, "true difference %+5.1f points: %s after about %d plays\n", 100*c.D, c.Verdict, c.Plays)
	}
	_, err := fmt.Fprintf(w, "budget: %d plays of both together (budget_plays)\n", f.Budget)
	return err
}
