package report

import (
	"maps"
	"slices"
	"strings"
	"trajgen/pipeline/episode"
)

// toolTally counts the calls of one tool.
type toolTally struct {
	ToolStats
	statuses         map[episode.CallStatus]int
	classes          map[string]int
	elapsed, sandbox durations
}

// Names and classes that strangers choose are bounded: what comes after so many different ones is counted as "(other)".
const maxNames = 200

const other = "(other)"

func countName(m map[string]int, name string) {
	if _, ok := m[name]; !ok && len(m) >= maxNames {
		name = other
	}
	m[kept(name)]++
}

// callTallies count calls. Tools that do not exist share one line, since models make up names without end.
type callTallies struct {
	tools   map[string]*toolTally
	unknown map[string]int
}

func (c *callTallies) add(ep *episode.Episode) {
	for i := range ep.Calls {
		call := &ep.Calls[i]
		name := call.Name
		if call.Status == episode.CallUnknownTool {
			countName(c.unknown, name)
			name = "(unknown)"
		}
		t := tallyOf(c.tools, name)
		if t.statuses == nil {
			t.statuses, t.classes = make(map[episode.CallStatus]int), make(map[string]int)
		}
		t.Calls++
		t.statuses[kept(call.Status)]++
		if call.ErrorClass != "" {
			countName(t.classes, call.ErrorClass)
		}
		t.addFate(call)
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

var callStatuses = []episode.CallStatus{
	episode.CallOK, episode.CallError, episode.CallTimeout, episode.CallDenied,
	episode.CallInvalidArguments, episode.CallUnknownTool, episode.CallUnavailable,
}

func (c *callTallies) list() Calls {
	list := make([]ToolStats, 0, len(c.tools))
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		t := c.tools[name]
		stats := t.ToolStats
		stats.Tool, stats.Statuses, stats.ErrorClasses = name, []Count{}, byCount(t.classes)
		stats.Elapsed, stats.Sandbox = t.elapsed.quantiles(), t.sandbox.quantiles()
		for _, status := range callStatuses {
			if n := t.statuses[status]; n > 0 {
				stats.Statuses = append(stats.Statuses, Count{string(status), n})
			}
		}
		list = append(list, stats)
	}
	return Calls{list, byCount(c.unknown)}
}
