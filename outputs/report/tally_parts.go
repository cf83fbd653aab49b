package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

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

// addCall counts a call. Tools that do not exist share one line, since models make up names without end.
func (b *Builder) addCall(ep *episode.Episode, i int) {
	call := &ep.Calls[i]
	name := call.Name
	if call.Status == episode.CallUnknownTool {
		countName(b.unknownTools, name)
		name = "(unknown)"
	}
	t := tallyOf(b.tools, name)
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

func (b *Builder) listTools() []ToolStats {
	list := make([]ToolStats, 0, len(b.tools))
	for _, name := range slices.Sorted(maps.Keys(b.tools)) {
		t := b.tools[name]
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
	return list
}

// modelTally counts the turns of one model.
type modelTally struct {
	price *Price
	usage TokenUsage
	// cached tokens of a turn are never more than its prompt, whatever the server says.
	cached int64
}

// addTurn counts a turn's tokens and retries.
func (b *Builder) addTurn(ep *episode.Episode, turn *episode.Turn) {
	for _, fault := range turn.Retries {
		b.retries.add(fault, ep)
	}
	b.usage.Turns++
	b.usage.add(turn.Usage, &b.usage.Unreported)
	b.addPriced(turn.Usage, ep.Billed(turn, b.meta.Model)...)
}

// addPriced counts tokens that are paid for under one of the names.
func (b *Builder) addPriced(u episode.Usage, names ...string) {
	name, price, known := b.meta.Prices.Find(names...)
	m := tallyOf(b.models, name)
	if known && m.price == nil {
		m.price = &price
	}
	m.usage.Turns++
	m.usage.add(u, &m.usage.Unreported)
	if u.Reported {
		m.cached += int64(min(u.Cached, u.Prompt))
	}
}

// add adds what a server reported, or counts that it reported nothing.
func (t *Tokens) add(u episode.Usage, unreported *int) {
	if !u.Reported {
		*unreported++
		return
	}
	t.Prompt += int64(u.Prompt)
	t.Completion += int64(u.Completion)
	t.Reasoning += int64(u.Reasoning)
	t.Cached += int64(u.Cached)
}

// cost adds up what is known. Unknown is never zero: one turn without usage or price leaves the sum open.
func (b *Builder) cost() Cost {
	cost := Cost{Models: []ModelCost{}, Earlier: b.before}
	known, priced := 0.0, false
	for _, name := range slices.Sorted(maps.Keys(b.models)) {
		m := b.models[name]
		part := ModelCost{Model: name, Price: m.price, Usage: m.usage}
		if m.price == nil || m.usage.Unreported == m.usage.Turns {
			cost.UnknownTurns += m.usage.Turns
		} else {
			cost.UnknownTurns += m.usage.Unreported
			usd := m.price.Of(episode.Usage{Prompt: int(m.usage.Prompt), Completion: int(m.usage.Completion), Cached: int(m.cached)})
			part.USD = &usd
			known, priced = known+usd, true
		}
		cost.Models = append(cost.Models, part)
	}
	if priced {
		cost.KnownUSD = &known
	}
	if priced && cost.UnknownTurns == 0 {
		cost.USD = new(known)
	}
	if cost.Outcomes, cost.PerEpisode = b.spent.list(); cost.USD == nil {
		cost.PerEpisode = nil
	}
	return cost
}

// faultTally counts faults by outcome and class.
type faultTally map[faultKind]*faultCount

type faultKind struct {
	outcome episode.Outcome
	class   string
}

type faultCount struct {
	n       int
	example string
	first   place
	pause   time.Duration
}

// place is where an episode stands in the dataset.
type place struct {
	row, sample int
	id          string
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.row, o.row), cmp.Compare(p.sample, o.sample), cmp.Compare(p.id, o.id))
}

func (t faultTally) add(f episode.Fault, ep *episode.Episode) {
	kind := faultKind{kept(f.Outcome), kept(f.Class)}
	if _, ok := t[kind]; !ok && len(t) >= maxNames {
		kind.class = other
	}
	c := t[kind]
	here := place{ep.Row, ep.Key.Sample, ep.ID}
	if c == nil {
		c = new(faultCount)
		t[kind] = c
	}
	c.n++
	c.pause += f.Pause
	// The first in dataset order, whatever the order in which episodes are added.
	if c.n == 1 || here.compare(c.first) < 0 {
		here.id = kept(here.id)
		c.example, c.first = strings.Clone(cut(f.Message, 500)), here
	}
}

func (t faultTally) list() []FaultCount {
	list := make([]FaultCount, 0, len(t))
	for kind, c := range t {
		list = append(list, FaultCount{kind.outcome, kind.class, c.n, c.example, c.first.id, c.pause.Microseconds()})
	}
	slices.SortFunc(list, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	seen := 0
	for i := range s {
		if seen++; seen > n {
			return s[:i] + "…"
		}
	}
	return s
}
