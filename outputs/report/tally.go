package report

import (
	"cmp"
	"slices"
	"unique"

	"trajgen/pipeline/episode"
)

// Builder adds episodes up to a report. Its memory grows with the number of tasks and of different toolset
// combinations, tags and tools, not with what episodes hold. One goroutine uses it.
type Builder struct {
	meta      Meta
	present   int
	twins     Twins
	outcomes  counter[episode.Outcome]
	stops     counter[episode.Stop]
	turns     counts
	clock     clock
	tasks     taskTallies
	sweep     sweeps
	groups    groupTallies
	calls     callTallies
	skills    skillTallies
	drift     driftTally
	spending  spending
	subagents subagentTally
	mishaps   mishaps
}

// New begins a report.
func New(meta Meta) *Builder {
	return &Builder{
		meta: meta, turns: make(counts),
		spending: spending{Spending: Spending{Budget: meta.Budget}, prices: meta.Prices, asked: meta.Model},
	}
}

// kept is a text of an episode that outlives it. As it came, it is a part of all that was read with it.
func kept[Text ~string](text Text) Text { return unique.Make(text).Value() }

// tallyOf is the tally of a name, which is begun with the first episode.
func tallyOf[Name ~string, Tally any, Tallies ~map[Name]*Tally](tallies *Tallies, name Name) *Tally {
	t := (*tallies)[name]
	if t == nil {
		if *tallies == nil {
			*tallies = make(Tallies)
		}
		t = new(Tally)
		(*tallies)[kept(name)] = t
	}
	return t
}

// counter counts names.
type counter[Name ~string] map[Name]int

func (c *counter[Name]) add(name Name) {
	if *c == nil {
		*c = make(counter[Name])
	}
	(*c)[kept(name)]++
}

// Names and classes that models and servers choose are bounded: what comes after so many different ones is counted as "(other)".
const (
	maxNames = 200
	other    = "(other)"
)

func (c *counter[Name]) addBounded(name Name) {
	if _, ok := (*c)[name]; !ok && len(*c) >= maxNames {
		name = other
	}
	c.add(name)
}

// byCount lists the most frequent first.
func (c counter[Name]) byCount() []Count {
	list := make([]Count, 0, len(c))
	for name, n := range c {
		list = append(list, Count{string(name), n})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// inOrder lists the names that are given, also those that were not seen.
func (c counter[Name]) inOrder(names []Name) []Count {
	list := make([]Count, 0, len(names))
	for _, name := range names {
		list = append(list, Count{string(name), c[name]})
	}
	return list
}

// seen leaves out what was not seen.
func seen(list []Count) []Count {
	return slices.DeleteFunc(list, func(c Count) bool { return c.Count == 0 })
}

// outcomeCounts has all outcomes in their order.
func outcomeCounts(outcomes counter[episode.Outcome]) (list []OutcomeCount) {
	for _, outcome := range episode.Outcomes() {
		list = append(list, OutcomeCount{outcome, outcomes[outcome]})
	}
	return list
}

// Add counts an episode. It does not keep it.
func (b *Builder) Add(ep *episode.Episode) {
	if ep.Twin != nil { // which is no play of its task, and costs what it costs
		b.twins.add(ep)
		b.clock.add(ep)
		b.spending.add(ep)
		return
	}
	b.present++
	b.outcomes.add(ep.Outcome)
	b.stops.add(ep.Stop)
	b.turns[len(ep.Turns)]++
	b.clock.add(ep)
	b.tasks.add(ep)
	b.sweep.add(ep)
	b.groups.add(ep)
	for each := range ep.Tree() {
		b.calls.add(each)
	}
	b.skills.add(ep)
	b.drift.add(ep)
	b.spending.add(ep)
	b.subagents.add(ep, &b.spending)
	b.mishaps.add(ep)
}

func (t *Twins) add(ep *episode.Episode) {
	t.Played++
	switch {
	case ep.Twin.Prefix == episode.PrefixDiverged:
		t.Diverged++
	case !ep.Outcome.AgentsDoing():
		t.Errors++
	}
	t.PrefixTokens += int64(ep.Twin.PrefixTokens)
}

// judged says whether an episode proves anything: an error does not, nor does what nothing checked.
func judged(ep *episode.Episode) bool { return ep.Reward != nil && ep.Outcome.AgentsDoing() }

func succeeded(ep *episode.Episode) float64 {
	if ep.Outcome == episode.Success {
		return 1
	}
	return 0
}

// Finish is the report of what was added.
func (b *Builder) Finish() *Report {
	return &Report{
		Schema: episode.SchemaVersion, Origin: b.meta.Origin, Span: b.clock.span,
		Episodes: b.episodes(), Outcomes: outcomeCounts(b.outcomes), Verdicts: b.tasks.list(), Tasks: b.tasks.summary(),
		Sweep: b.sweep.list(), Groups: b.groups.list(), Calls: b.calls.list(), Skills: b.skills.list(), Drift: b.drift.stats(b.meta.TokenIDs),
		Turns: b.turns.spread(), Stops: b.stops.byCount(), Spending: b.spending.sum(), Subagents: b.subagents.list(),
		Time: b.clock.timing(b.meta.Wall, cmp.Or(b.meta.Played, b.present)), Mishaps: b.mishaps.list(),
	}
}

func (b *Builder) episodes() Episodes {
	e := Episodes{Twins: b.twins, Present: b.present, Tasks: len(b.tasks.tasks), Unjudged: b.tasks.unjudged}
	for outcome, n := range b.outcomes {
		if !outcome.AgentsDoing() {
			e.Errors += n
		}
	}
	e.Judged = e.Present - e.Errors - e.Unjudged
	if b.meta.Planned > 0 {
		e.Planned = new(b.meta.Planned)
		e.Missing = new(max(0, b.meta.Planned-b.present))
	}
	return e
}
