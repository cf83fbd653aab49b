package bench

// What the tests ask of the inside.
const (
	ScriptAnswer  = scriptAnswer
	ScriptEpisode = scriptEpisode
	AllTurns      = allTurns
)

var (
	BaseURL  = baseURL
	Quantile = quantile
	StageOf  = stage
)

// Judge fills in what is made of the rest of a report.
func (r *Report) Judge() {
	for i := range r.Parts {
		r.sum(&r.Parts[i])
	}
	r.Targets = r.judge()
}

func Median(values ...float64) float64 {
	return median(values, itself)
}

// Spend is spend.
func (g *Growth) Spend(at []float64) { g.spend(at) }
