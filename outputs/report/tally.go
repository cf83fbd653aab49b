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
	meta     Meta
	present  int
	outcomes map[episode.Outcome]int
	stops    map[string]int
	turns    counts
	clock    clock
	tasks    taskTallies
	sweep    sweeps
	groups   groupTallies
	calls    callTallies
	drift    driftTally
	spending spending
	mishaps  mishaps
}

// New begins a report.
func New(meta Meta) *Builder {
	return &Builder{
		meta: meta, outcomes: make(map[episode.Outcome]int), stops: make(map[string]int), turns: make(counts),
		tasks: taskTallies{tasks: make(map[string]taskTally)}, sweep: make(sweeps),
		groups:   groupTallies{make(groups), make(groups), make(groups), make(groups)},
		calls:    callTallies{make(map[string]*toolTally), make(map[string]int)},
		drift:    driftTally{verdicts: make(map[episode.DriftVerdict]int)},
		spending: spending{prices: meta.Prices, asked: meta.Model, models: make(map[string]*modelTally), outcomes: make(costs)},
		mishaps:  mishaps{make(faultTally), make(faultTally), make(faultTally)},
	}
}

// kept is a text of an episode that outlives it. As it came, it is a part of all that was read with it.
func kept[Text ~string](text Text) Text { return unique.Make(text).Value() }

// tallyOf is the tally of a name, which is begun with the first episode.
func tallyOf[Name ~string, Tally any](tallies map[Name]*Tally, name Name) *Tally {
	t := tallies[name]
	if t == nil {
		t = new(Tally)
		tallies[kept(name)] = t
	}
	return t
}

// Add counts an episode. It does not keep it.
func (b *Builder) Add(ep *episode.Episode) {
	b.present++
	b.outcomes[kept(ep.Outcome)]++
	b.stops[kept(string(ep.Stop))]++
	b.turns[len(ep.Turns)]++
	b.clock.add(ep)
	b.tasks.add(ep)
	b.sweep.add(ep)
	b.groups.add(ep)
	b.calls.add(ep)
	b.drift.add(ep)
	b.spending.add(ep)
	b.mishaps.add(ep)
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
	r := &Report{
		Schema: episode.SchemaVersion, Origin: b.meta.Origin, Span: b.clock.span(), Episodes: b.episodes(), Verdicts: b.tasks.verdicts(),
		Tasks: b.tasks.summary(), Sweep: b.sweep.list(), Groups: b.groups.list(), Calls: b.calls.list(), Drift: b.drift.stats(b.meta.TokenIDs),
		Turns: b.turns.spread(), Stops: byCount(b.stops), Spending: b.spending.sum(b.meta.Budget),
		Time: b.clock.timing(b.meta.Wall, cmp.Or(b.meta.Played, b.present)), Mishaps: b.mishaps.list(),
	}
	for _, outcome := range episode.Outcomes() {
		r.Outcomes = append(r.Outcomes, OutcomeCount{outcome, b.outcomes[outcome]})
	}
	return r
}

func (b *Builder) episodes() Episodes {
	e := Episodes{Present: b.present, Tasks: len(b.tasks.tasks), Unjudged: b.tasks.unjudged}
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

// byCount lists the most frequent first.
func byCount(m map[string]int) []Count {
	list := make([]Count, 0, len(m))
	for name, n := range m {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return list
}
