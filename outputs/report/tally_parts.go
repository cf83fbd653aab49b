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
	calls, repaired, coerced int
	stored, masked, shared   int
	refused, approved        int
	nonzero                  int
	statuses                 map[episode.CallStatus]int
	classes                  map[string]int
	elapsed, sandbox         durations
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
	t := b.tools[name]
	if t == nil {
		t = &toolTally{statuses: make(map[episode.CallStatus]int), classes: make(map[string]int)}
		b.tools[kept(name)] = t
	}
	t.calls++
	t.statuses[kept(call.Status)]++
	if call.ErrorClass != "" {
		countName(t.classes, call.ErrorClass)
	}
	if call.Repaired {
		t.repaired++
	}
	if len(call.Coerced) > 0 {
		t.coerced++
	}
	if call.ExitCode != nil && *call.ExitCode != 0 {
		t.nonzero++
	}
	t.addFate(call)
	hash := hashOf(ep.ID, i)
	t.elapsed.add(hash, call.Elapsed)
	t.sandbox.add(hash, call.SandboxTime)
}

// addFate counts what was done about a call and its result.
func (t *toolTally) addFate(call *episode.ToolCall) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	count(&t.stored, call.Stored != "")
	count(&t.masked, len(call.Masked) > 0)
	count(&t.shared, call.SameAs != "")
	if v := call.Verdict; v != nil && call.SameAs == "" {
		count(&t.approved, strings.HasPrefix(v.Decision, "approved"))
		count(&t.refused, strings.HasPrefix(v.Decision, "refused") || strings.HasPrefix(v.Decision, "denied"))
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
		stats := ToolStats{
			Tool: name, Calls: t.calls, Statuses: []Count{}, ErrorClasses: byCount(t.classes),
			Repaired: t.repaired, Coerced: t.coerced,
			Stored: t.stored, Masked: t.masked, Shared: t.shared, Refused: t.refused, Approved: t.approved, Nonzero: t.nonzero,
			Elapsed: t.elapsed.quantiles(), Sandbox: t.sandbox.quantiles(),
		}
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
	b.usage.add(turn.Usage)
	b.addPriced(turn.Usage, ep.Billed(turn, b.meta.Model)...)
}

// addPriced counts tokens that are paid for under one of the names.
func (b *Builder) addPriced(u episode.Usage, names ...string) {
	name, price := b.priced(names...)
	m := b.models[name]
	if m == nil {
		m = &modelTally{price: price}
		b.models[kept(name)] = m
	}
	m.usage.add(u)
	if u.Reported {
		m.cached += int64(min(u.Cached, u.Prompt))
	}
}

// priced finds the first name that has a price.
func (b *Builder) priced(names ...string) (string, *Price) {
	name, price, ok := b.meta.Prices.Find(names...)
	if !ok {
		return name, nil
	}
	return name, &price
}

func (u *TokenUsage) add(v episode.Usage) {
	u.Turns++
	if !v.Reported {
		u.Unreported++
		return
	}
	u.Prompt += int64(v.Prompt)
	u.Completion += int64(v.Completion)
	u.Reasoning += int64(v.Reasoning)
	u.Cached += int64(v.Cached)
}

func (u *OtherUsage) add(v episode.Usage) {
	u.Episodes++
	if !v.Reported {
		u.Unreported++
		return
	}
	u.Prompt += int64(v.Prompt)
	u.Completion += int64(v.Completion)
	u.Reasoning += int64(v.Reasoning)
	u.Cached += int64(v.Cached)
}

// cost adds up what is known. Unknown is never zero: one turn without usage or price leaves the sum open.
func (b *Builder) cost() Cost {
	cost := Cost{Models: []ModelCost{}, Earlier: b.before}
	known, priced := 0.0, false
	for _, name := range slices.Sorted(maps.Keys(b.models)) {
		m := b.models[name]
		part := ModelCost{Model: name, Price: m.price, Usage: m.usage}
		switch {
		case m.price == nil:
			cost.UnknownTurns += m.usage.Turns
		case m.usage.Unreported == m.usage.Turns:
			cost.UnknownTurns += m.usage.Turns
		default:
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
