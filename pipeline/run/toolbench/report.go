package toolbench

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"trajgen/outputs/estimate"
	"trajgen/registry"
)

// Report is what a bench found.
type Report struct {
	Night    string   `json:"night"`
	Calls    string   `json:"calls"` // which ones: a script, a run, or generated
	Tools    []Tool   `json:"tools"`
	Failed   []Failed `json:"failed"`   // what did not come out as expected
	Backends []Unlike `json:"backends"` // calls whose results differ from those with the first backend
	Alarms   []Alarm  `json:"alarms"`   // what got worse than it was in the ledger
	shapes   map[string]digests
	cases    []Case
	plays    []Play
}

// Tool is one tool, with one backend and number of workers.
type Tool struct {
	Name    string `json:"tool"`
	Toolset string `json:"toolset"`
	Backend string `json:"backend"`
	Workers int    `json:"workers"`
	Calls   int    `json:"calls"`   // different ones
	Plays   int    `json:"plays"`   // of them
	Errors  int    `json:"errors"`  // plays that did not end as expected
	Classes counts `json:"classes"` // of errors

	Failing int               `json:"failing"`    // calls of which a play ended in an error
	Rate    float64           `json:"error_rate"` // of calls: plays of a call depend on each other
	Between estimate.Interval `json:"error_rate_95"`

	ElapsedUS latency `json:"elapsed_us"` // of the first play of each call, as the others depend on it
	SandboxUS latency `json:"sandbox_us"`

	Pairs     int         `json:"pairs"` // of plays of the same call
	Differing int         `json:"differing"`
	Kinds     counts      `json:"kinds"` // of their first differences
	First     *Difference `json:"first_difference,omitempty"`

	Bytes   int `json:"result_bytes"` // all plays
	digests     // of its shape

	micros []float64
	failed map[int]bool // calls with an error
}

type counts map[string]int

type latency struct {
	P50 estimate.Quantile `json:"p50"`
	P95 estimate.Quantile `json:"p95"`
	P99 estimate.Quantile `json:"p99"`
}

func latencyOf(values []float64) latency {
	slices.Sort(values)
	return latency{estimate.QuantileOf(values, 0.5), estimate.QuantileOf(values, 0.95), estimate.QuantileOf(values, 0.99)}
}

type digests struct {
	Schema      string `json:"schema_digest"`
	Description string `json:"description_digest"`
	Result      string `json:"result_digest"` // of keys and types of results that were ok
}

// Failed is a call that did not come out as expected.
type Failed struct {
	Call    string   `json:"call"`
	Tool    string   `json:"tool"`
	Backend string   `json:"backend"`
	Workers int      `json:"workers"`
	Wrong   []string `json:"wrong"`
}

// Unlike is a call that comes out otherwise with another backend.
type Unlike struct {
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	Backend string `json:"backend"`
	Difference
}

func (r *Report) describe(toolset *registry.Toolset) {
	r.shapes = map[string]digests{}
	for _, tool := range toolset.Tools() {
		r.shapes[tool.Name] = digests{Schema: digest(text(plain(tool.Parameters))), Description: digest(tool.Description)}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// tally counts the plays, of which repeat in a row are of one call.
func (r *Report) tally(repeat int) {
	tools := map[string]*Tool{}
	first := map[int]*Play{}
	sandboxed, shapes := map[string][]float64{}, map[string]map[string]bool{}
	for n := range r.plays {
		play := &r.plays[n]
		c := &r.cases[play.Case]
		key := fmt.Sprintf("%s %s %06d", c.Tool, play.Backend, play.Workers)
		tool := tools[key]
		if tool == nil {
			tool = &Tool{Name: c.Tool, Toolset: play.Call.Toolset, Backend: play.Backend, Workers: play.Workers, digests: r.shapes[c.Tool],
				Classes: counts{}, Kinds: counts{}, failed: map[int]bool{}}
			tools[key], shapes[key] = tool, map[string]bool{}
		}
		tool.Plays++
		tool.Bytes += len(play.Call.Result)
		if len(play.Wrong) > 0 {
			tool.Errors++
			tool.Classes[cmp.Or(play.Call.ErrorClass, "unexpected")]++
			tool.failed[play.Case] = true
			r.Failed = append(r.Failed, Failed{c.ID, c.Tool, play.Backend, play.Workers, play.Wrong})
		}
		result := resultOf(play)
		if play.Call.ErrorClass == "" {
			shape(shapes[key], "", result)
		}
		if n%repeat > 0 {
			tool.Pairs++
			tool.note(difference("", resultOf(&r.plays[n-1]), result))
		} else {
			tool.Calls++
			tool.micros = append(tool.micros, float64(play.Call.Elapsed.Microseconds()))
			sandboxed[key] = append(sandboxed[key], float64(play.Call.SandboxTime.Microseconds()))
		}
		if begun := first[play.Case]; begun == nil {
			first[play.Case] = play
		} else if begun.Backend != play.Backend && n%repeat == 0 && play.Workers == begun.Workers {
			if d := difference("", resultOf(begun), result); d != nil {
				r.Backends = append(r.Backends, Unlike{c.ID, c.Tool, play.Backend, *d})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tools)) {
		tool := tools[key]
		tool.Failing = len(tool.failed)
		tool.Rate = float64(tool.Failing) / float64(tool.Calls)
		tool.Between = estimate.ClopperPearson(float64(tool.Failing), float64(tool.Calls))
		tool.ElapsedUS, tool.SandboxUS = latencyOf(tool.micros), latencyOf(sandboxed[key])
		tool.Result = digest(fmt.Sprint(slices.Sorted(maps.Keys(shapes[key]))))
		r.Tools = append(r.Tools, *tool)
	}
}

func (t *Tool) note(d *Difference) {
	if d == nil {
		return
	}
	t.Differing++
	t.Kinds[d.Kind]++
	if t.First == nil {
		t.First = d
	}
}

// resultOf is what plays are compared by.
func resultOf(play *Play) any {
	var result any
	if json.Unmarshal([]byte(play.Call.Result), &result) != nil {
		result = play.Call.Result
	}
	return map[string]any{"status": play.Call.Status, "result": result}
}

// shape collects the places of a value and their types; items of a list share a place.
func shape(into map[string]bool, at string, value any) {
	switch in := value.(type) {
	case map[string]any:
		for name, each := range in {
			shape(into, at+"/"+name, each)
		}
	case []any:
		for _, each := range in {
			shape(into, at+"/-", each)
		}
	default:
		into[fmt.Sprintf("%s %T", at, value)] = true
	}
}
