package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// toolTally counts the calls of one tool.
type toolTally struct {
	ToolStats
	statuses         counter[episode.CallStatus]
	classes          counter[string]
	elapsed, sandbox durations
}

// callTallies count calls. Tools that do not exist share one line, since models make up names without end.
type callTallies struct {
	tools   map[string]*toolTally
	unknown counter[string]
	web     Replays
	twin    Replays
}

func (c *callTallies) add(ep *episode.Episode) {
	for i := range ep.Calls {
		call := &ep.Calls[i]
		if call.Planted != nil { // what became of it was the run's doing
			continue
		}
		name := call.Name
		if call.Status == episode.CallUnknownTool {
			c.unknown.addBounded(name)
			name = "(unknown)"
		}
		t := tallyOf(&c.tools, name)
		t.Calls++
		t.statuses.add(call.Status)
		if call.ErrorClass != "" {
			t.classes.addBounded(call.ErrorClass)
		}
		t.addFate(call)
		c.addReplay(call)
		hash := hashOf(ep.ID, i)
		t.elapsed.add(hash, call.Elapsed)
		t.sandbox.add(hash, call.SandboxTime)
	}
}

// addFate counts what was done about a call, its arguments and its result.
func (t *toolTally) addFate(call *episode.ToolCall) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	count(&t.Repaired, call.Repaired)
	count(&t.Coerced, len(call.Coerced) > 0)
	count(&t.Nonzero, call.ExitCode != nil && *call.ExitCode != 0)
	count(&t.Stored, call.Stored != "")
	count(&t.Masked, len(call.Masked) > 0)
	count(&t.Shared, call.SameAs != "")
	if v := call.Verdict; v != nil && call.SameAs == "" {
		count(&t.Approved, strings.HasPrefix(v.Decision, "approved"))
		count(&t.Refused, strings.HasPrefix(v.Decision, "refused") || strings.HasPrefix(v.Decision, "denied"))
	}
}

// addReplay counts a call that a recording was to answer: one of tools, or else one of the web.
func (c *callTallies) addReplay(call *episode.ToolCall) {
	var source struct{ Mode, Via string }
	if len(call.Source) == 0 || json.Unmarshal(call.Source, &source) != nil {
		return
	}
	switch {
	case source.Via == "replay":
		c.twin.add(call.ErrorClass == "twin_miss")
	case source.Mode == "replay":
		c.web.add(call.ErrorClass == "replay_miss")
	}
}

func (r *Replays) add(missed bool) {
	r.Calls++
	if missed {
		r.Missed++
	}
	r.HitShare = float64(r.Calls-r.Missed) / float64(r.Calls)
}

var callStatuses = []episode.CallStatus{
	episode.CallOK, episode.CallError, episode.CallTimeout, episode.CallDenied,
	episode.CallInvalidArguments, episode.CallUnknownTool, episode.CallUnavailable,
}

func (c *callTallies) list() Calls {
	list := make([]ToolStats, 0, len(c.tools))
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		t := c.tools[name]
		stats := t.ToolStats
		stats.Tool, stats.Statuses, stats.ErrorClasses = name, seen(t.statuses.inOrder(callStatuses)), t.classes.byCount()
		stats.Elapsed, stats.Sandbox = t.elapsed.quantiles(), t.sandbox.quantiles()
		list = append(list, stats)
	}
	calls := Calls{Tools: list, UnknownTools: c.unknown.byCount()}
	if c.web.Calls > 0 {
		calls.Web = &c.web
	}
	if c.twin.Calls > 0 {
		calls.Twin = &c.twin
	}
	return calls
}
