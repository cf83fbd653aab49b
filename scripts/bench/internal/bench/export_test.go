package bench

import "time"

// What the tests ask of the inside.
const (
	ScriptAnswer  = scriptAnswer
	ScriptEpisode = scriptEpisode
	AllTurns      = allTurns
)

var (
	BaseURL  = baseURL
	Quantile = quantile
	Generate = generate
)

// Judge fills in what is made of the rest of a report.
func (r *Report) Judge() {
	for i := range r.Parts {
		r.sum(&r.Parts[i])
	}
	r.Targets = r.judge()
}

func Median(values ...float64) float64 {
	return median(values, func(v float64) float64 { return v })
}

func (c Counts) Before(after time.Duration) int64 { return c.before(after) }

func (c *Counts) Add(other Counts) { c.add(other) }

// Spend is spend.
func (g *Growth) Spend(at []float64) { g.spend(at) }
