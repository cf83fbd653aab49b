package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"trajgen/pipeline/episode"
)

// Builder adds episodes up to a report. Its memory grows with the number of tasks and of different toolset
// combinations, tags and tools, not with what episodes hold. One goroutine uses it.
type Builder struct {
	meta     Meta
	present  int
	began    time.Time // of the first episode
	ended    time.Time // of the last one
	tasks    map[string]taskTally
	outcomes map[episode.Outcome]int
	unjudged int

	reward, success sample

	combinations, toolsets, tags, difficulties groups
	sweep                                      sweeps
	spent                                      costs

	tools        map[string]*toolTally
	unknownTools map[string]int

	drift          driftTally
	turns          counts
	stops          map[string]int
	usage          TokenUsage
	user, approver OtherUsage
	models         map[string]*modelTally
	elapsed        durations
	all, wait, use time.Duration // sums over episodes: elapsed, model, tools

	faults, retries, earlier faultTally
	before                   EarlierCost
}

// New begins a report.
func New(meta Meta) *Builder {
	return &Builder{
		meta:         meta,
		tasks:        make(map[string]taskTally),
		outcomes:     make(map[episode.Outcome]int),
		sweep:        make(sweeps),
		spent:        make(costs),
		combinations: make(groups), toolsets: make(groups), tags: make(groups), difficulties: make(groups),
		tools: make(map[string]*toolTally), unknownTools: make(map[string]int),
		turns: make(counts), stops: make(map[string]int), models: make(map[string]*modelTally),
		faults: make(faultTally), retries: make(faultTally), earlier: make(faultTally),
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
	task := kept(ep.Key.Task)
	b.present++
	b.addTime(ep)
	b.addTask(ep, task)
	b.outcomes[kept(ep.Outcome)]++
	b.stops[kept(string(ep.Stop))]++
	b.turns[len(ep.Turns)]++
	b.addVerdict(ep, task)
	b.drift.add(ep)

	b.sweep.add(ep)
	b.spent.add(ep, b.meta.Prices, b.meta.Model)
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.Usage != nil {
			b.addPriced(*c.Usage, c.Model, c.Asked)
		}
	}
	b.combinations.add(cmp.Or(strings.Join(ep.Toolsets, "+"), "(none)"), ep)
	for _, toolset := range slices.Compact(slices.Sorted(slices.Values(ep.Toolsets))) {
		b.toolsets.add(toolset, ep)
	}
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(ep.Task.Tags))) {
		b.tags.add(tag, ep)
	}
	if ep.Task.Difficulty != "" {
		b.difficulties.add(ep.Task.Difficulty, ep)
	}
	for i := range ep.Calls {
		b.addCall(ep, i)
	}
	for i := range ep.Turns {
		b.addTurn(ep, &ep.Turns[i])
	}
	if ep.User != nil && ep.User.Model != "" {
		b.user.Episodes++
		b.user.add(ep.User.Usage, &b.user.Unreported)
	}
	if usage, asked := ep.ApproverUsage(); asked {
		b.approver.Episodes++
		b.approver.add(usage, &b.approver.Unreported)
	}
	b.elapsed.add(hashOf(ep.ID), ep.Elapsed)
	b.all, b.wait, b.use = b.all+ep.Elapsed, b.wait+ep.Phases.Model, b.use+ep.Phases.Tools
	if ep.Fault != nil {
		b.faults.add(*ep.Fault, ep)
	}
	for i := range ep.Earlier {
		b.addEarlier(&ep.Earlier[i], ep)
	}
}

// addVerdict counts reward and success. An answer that nothing checked is called a success for want of a better word;
// it proves nothing and is not counted as one here.
func (b *Builder) addVerdict(ep *episode.Episode, task string) {
	if ep.Reward == nil && ep.Outcome.AgentsDoing() {
		b.unjudged++
	}
	verdict(ep, task, &b.reward, &b.success)
}

// verdict adds an episode's reward, and 1 for a success or 0. One that was to be judged and was not is unresolved.
func verdict(ep *episode.Episode, task string, reward, success *sample) {
	switch {
	case judged(ep):
		reward.add(task, *ep.Reward)
		success.add(task, succeeded(ep))
	case len(ep.Task.Verify) > 0:
		reward.unresolved(task)
		success.unresolved(task)
	}
}

// judged says whether an episode proves anything: an error does not, nor does what nothing checked.
func judged(ep *episode.Episode) bool { return ep.Reward != nil && ep.Outcome.AgentsDoing() }

func succeeded(ep *episode.Episode) float64 {
	if ep.Outcome == episode.Success {
		return 1
	}
	return 0
}

// addTime finds out from when to when episodes were played.
func (b *Builder) addTime(ep *episode.Episode) {
	if ep.Started.IsZero() {
		return
	}
	if b.began.IsZero() || ep.Started.Before(b.began) {
		b.began = ep.Started
	}
	if end := ep.Started.Add(ep.Elapsed); end.After(b.ended) {
		b.ended = end
	}
}

// Finish is the report of what was added.
func (b *Builder) Finish() *Report {
	r := &Report{
		Schema:       episode.SchemaVersion,
		Origin:       b.meta.Origin,
		Episodes:     b.episodes(),
		Reward:       b.reward.estimate(),
		SuccessRate:  b.success.estimate(),
		PassAtK:      b.success.passRates(PassAtK),
		PassHatK:     b.success.passRates(PassHatK),
		Tasks:        b.taskSummary(),
		Sweep:        b.sweep.list(),
		Combinations: b.combinations.list(), Toolsets: b.toolsets.list(),
		Tags: b.tags.list(), Difficulties: b.difficulties.list(),
		Tools: b.listTools(), UnknownTools: byCount(b.unknownTools),
		Drift: b.drift.stats(b.meta.TokenIDs), Turns: b.turns.spread(), Stops: byCount(b.stops),
		Usage: b.usage, Cost: b.cost(), Budget: b.meta.Budget, User: b.user, Approver: b.approver, Time: b.timing(),
		Faults: b.faults.list(), ModelRetries: b.retries.list(), EarlierAttempts: b.earlier.list(),
	}
	for _, outcome := range episode.Outcomes() {
		r.Outcomes = append(r.Outcomes, OutcomeCount{outcome, b.outcomes[outcome]})
	}
	if !b.began.IsZero() {
		r.Started, r.Ended = new(b.began.UTC()), new(b.ended.UTC())
	}
	return r
}

func (b *Builder) episodes() Episodes {
	e := Episodes{Present: b.present, Tasks: len(b.tasks), Unjudged: b.unjudged}
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

func (b *Builder) timing() Timing {
	t := Timing{Episode: b.elapsed.quantiles()}
	if wall := b.meta.Wall; wall > 0 {
		t.WallUS = new(wall.Microseconds())
		t.PerSecond = new(float64(cmp.Or(b.meta.Played, b.present)) / wall.Seconds())
	}
	if b.all > 0 {
		t.ModelShare = new(float64(b.wait) / float64(b.all))
		t.ToolShare = new(float64(b.use) / float64(b.all))
	}
	return t
}

// groups collects rewards by what episodes have in common.
type groups map[string]*groupTally

type groupTally struct {
	episodes int
	reward   sample
}

func (g groups) add(name string, ep *episode.Episode) {
	t := tallyOf(g, name)
	t.episodes++
	if judged(ep) {
		t.reward.add(kept(ep.Key.Task), *ep.Reward)
	}
}

func (g groups) list() []Group {
	list := make([]Group, 0, len(g))
	for _, name := range slices.Sorted(maps.Keys(g)) {
		list = append(list, Group{Name: name, Episodes: g[name].episodes, Reward: g[name].reward.estimate()})
	}
	return list
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
