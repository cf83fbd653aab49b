package reliability

import (
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// Tool is how a tool failed by itself in the clean episodes, and what that costs.
type Tool struct {
	Tool   string            `json:"tool"`
	Calls  float64           `json:"calls_per_episode"` // mean over tasks
	Errors int               `json:"errors"`
	Of     int               `json:"of"` // calls
	Rate   estimate.Interval `json:"error_rate"`
	// P50 and P99 are of the seconds that calls took.
	P50 estimate.Quantile `json:"p50_seconds"`
	P99 estimate.Quantile `json:"p99_seconds"`
	// Stake is the reward that an episode loses by the tool's errors and timeouts, as far as the harm of error_transient and timeout was
	// measured; null where neither was.
	Stake *Stake `json:"at_stake"`
}

// Stake is an amount with its 95 % interval.
type Stake struct {
	Value float64           `json:"value"`
	Range estimate.Interval `json:"interval"`
}

// tools counts the calls of clean episodes.
type tools struct {
	episodes map[string]int                // by task
	calls    map[string]map[string]float64 // by tool and task
	failed   map[string]map[string]int     // by tool and the class that stands for it
	took     map[string][]float64          // seconds of each call, by tool
}

func (t *tools) add(ep *episode.Episode) {
	if t.episodes == nil {
		t.episodes, t.took = map[string]int{}, map[string][]float64{}
		t.calls, t.failed = map[string]map[string]float64{}, map[string]map[string]int{}
	}
	t.episodes[ep.Key.Task]++
	for _, c := range ep.Calls {
		if c.Toolset == "" {
			continue // no tool of this name
		}
		if t.calls[c.Name] == nil {
			t.calls[c.Name], t.failed[c.Name] = map[string]float64{}, map[string]int{}
		}
		t.calls[c.Name][ep.Key.Task]++
		t.took[c.Name] = append(t.took[c.Name], c.Elapsed.Seconds())
		switch c.Status {
		case episode.CallTimeout:
			t.failed[c.Name]["timeout"]++
		case episode.CallError, episode.CallUnavailable:
			t.failed[c.Name]["error_transient"]++
		}
	}
}

// draws are how many products a stake's interval is taken from.
const draws = 2000

func (t *tools) list(cells []Cell) []Tool {
	list := []Tool{}
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		took := slices.Sorted(slices.Values(t.took[name]))
		one := Tool{Tool: name, Of: len(took), P50: estimate.QuantileOf(took, 0.5), P99: estimate.QuantileOf(took, 0.99)}
		var perEpisode []float64
		for _, task := range slices.Sorted(maps.Keys(t.episodes)) {
			perEpisode = append(perEpisode, t.calls[name][task]/float64(t.episodes[task]))
		}
		for _, v := range perEpisode {
			one.Calls += v / float64(len(perEpisode))
		}
		for _, n := range t.failed[name] {
			one.Errors += n
		}
		one.Rate = estimate.ClopperPearson(float64(one.Errors), float64(one.Of))
		for i, c := range cells {
			class, _, _ := strings.Cut(c.Class, ":")
			if c.Tool != name || c.Class != class || c.Unrecoverable || class != "timeout" && class != "error_transient" || c.Harm.Tasks == 0 {
				continue
			}
			value, interval := estimate.Stake{
				Calls: perEpisode, Errors: t.failed[name][class], Of: one.Of, Harm: c.Harm, Draws: draws, Seed: 1, Stream: uint64(i),
			}.Estimate()
			if one.Stake == nil {
				one.Stake = &Stake{}
			}
			one.Stake.Value += value // the sum of the ends of two intervals is wider than the interval of the sum
			one.Stake.Range = estimate.Interval{Low: one.Stake.Range.Low + interval.Low, High: one.Stake.Range.High + interval.High}
		}
		list = append(list, one)
	}
	return list
}
