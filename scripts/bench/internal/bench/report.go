package bench

import "slices"

// Report is what bench.json holds. A section that was not run is missing.
type Report struct {
	When    string    `json:"when"`
	Seconds float64   `json:"seconds"`
	Version string    `json:"version"`
	Machine Machine   `json:"machine"`
	Load    []float64 `json:"load_average"` // before the first section and after each
	Rounds  int       `json:"rounds"`
	Quick   bool      `json:"quick,omitempty"`

	Parts  []StageResult `json:"parts,omitempty"`
	Memory *MemoryResult `json:"memory,omitempty"`
	Flight []Flight      `json:"flight,omitempty"`
	Scale  *ScaleResult  `json:"scale,omitempty"`
	Start  *StartResult  `json:"start,omitempty"`

	NotMeasured []string `json:"not_measured,omitempty"` // what this machine cannot show, and why
	Targets     []Target `json:"targets"`
}

// Missed are the targets that were measured and not met.
func (r *Report) Missed() (names []string) {
	for _, t := range r.Targets {
		if t.Verdict == VerdictFail {
			names = append(names, t.Name)
		}
	}
	return names
}

// StageResult is a stage of the parts: medians of its rounds.
type StageResult struct {
	Stage
	Round
	Episodes       int     `json:"episodes"` // of the large run; the small one has a tenth
	RequestKBPerEp float64 `json:"request_kb_per_episode"`
	CPURatio       float64 `json:"cpu_ratio,omitempty"`  // to the stage that this one is held against
	RateRatio      float64 `json:"rate_ratio,omitempty"` // likewise
	Each           []Round `json:"each_round"`
	CPUSpread      float64 `json:"cpu_spread"` // largest of the rounds by the smallest
}

// Round is one measurement of a stage.
type Round struct {
	EpisodesPerS    float64 `json:"episodes_per_s"`
	CPUMSPerEpisode float64 `json:"cpu_ms_per_episode"`
	PeakMB          float64 `json:"peak_mb"`
}

// stage returns the result of a stage; nil without.
func (r *Report) stage(name string) *StageResult {
	if i := slices.IndexFunc(r.Parts, func(s StageResult) bool { return s.Name == name }); i >= 0 {
		return &r.Parts[i]
	}
	return nil
}

// median is the middle of what f says of each; 0 of none.
func median[T any](all []T, f func(T) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	values := make([]float64, len(all))
	for i, one := range all {
		values[i] = f(one)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// itself is for the median of plain numbers.
func itself(v float64) float64 { return v }

// ratio is 0 where there is none: noise can make a small difference nothing, or less.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
