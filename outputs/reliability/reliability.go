// Package reliability says what agents did and lost when tools failed: it pairs twins with their clean episodes.
package reliability

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// Report is what a run with twins, or with faults at a level, came to.
type Report struct {
	Clean    int `json:"clean_episodes"`
	Twins    int `json:"twins"`
	Placebos int `json:"placebos"`
	Diverged int `json:"diverged"` // a tool gave another result before the fault: left out
	Orphans  int `json:"orphans"`  // twins whose clean episode the run does not have: left out
	// Unplanted twins had no fault, as a tool gave something else at the call itself than in the clean episode: left out.
	Unplanted int `json:"unplanted"`
	// PrefixTokens are those of what twins have in common with their clean episodes, which were not paid again; PaidTokens are the twins' own.
	PrefixTokens int `json:"prefix_tokens"`
	PaidTokens   int `json:"paid_tokens"`
	// PlaceboOff says that the 99.9 % interval of the placebos' harm leaves out 0: the harm of the other cells cannot be trusted.
	PlaceboOff bool    `json:"placebo_off"`
	Placebo    *Cell   `json:"placebo"` // of all tools; null without placebos
	Cells      []Cell  `json:"cells"`
	Levels     []Level `json:"levels"`
	Tools      []Tool  `json:"tools"` // as they failed by themselves in the clean episodes
	Limits     Limits  `json:"limits"`
}

// Limits are what a run must not exceed.
type Limits struct {
	Harm       float64 `json:"max_harm"`       // of a call
	ErrorRate  float64 `json:"max_error_rate"` // of a tool in the clean episodes
	Unresolved float64 `json:"max_unresolved"` // share of the pairs
}

// LimitsOf are the limits of a run file, where it has them.
func LimitsOf(given map[string]float64) Limits {
	l := Limits{Harm: 1, ErrorRate: 1, Unresolved: 0.1}
	for name, to := range map[string]*float64{"max_harm": &l.Harm, "max_error_rate": &l.ErrorRate, "max_unresolved": &l.Unresolved} {
		if limit, ok := given[name]; ok {
			*to = limit
		}
	}
	return l
}

// Cell is what a class of faults did in a tool. The numbers are about all calls of the clean episodes that could have had the fault.
type Cell struct {
	Tool          string  `json:"tool"`
	Class         string  `json:"class"`                   // with its variant behind a colon
	Position      string  `json:"position"`                // of the call: early, middle or late; all of a run that does not tell them apart
	Unrecoverable bool    `json:"unrecoverable,omitempty"` // the reference solutions do not succeed with the fault either
	Eligible      float64 `json:"eligible"`                // calls that the pairs stand for

	Harm estimate.Mean `json:"harm"` // success of the clean episode minus that of its twin
	// Unresolved pairs have an episode that ended without a verdict; Bounds are the harm with the least and the greatest that they can be.
	Unresolved int                `json:"unresolved"`
	Bounds     *estimate.Interval `json:"bounds"`
	P          *float64           `json:"p,omitempty"` // that the harm is 0, corrected for the number of cells (Holm)
	// Missing pairs would tell a harm of 0.1 from none, if they vary as these do.
	Missing int `json:"missing_pairs"`
	// Dependent is the harm in those tasks alone whose answer changed when a value of the tool was wrong, as twins of another class show.
	Dependent *estimate.Mean `json:"harm_dependent"`
	// Versus is the harm minus that of the same cell in the other run.
	Versus *estimate.Mean `json:"versus,omitempty"`

	Reactions map[string]estimate.Mean `json:"reactions"`
	Noticed   estimate.Mean            `json:"noticed"`
	// Background is the share of the tool's placebos that look as if they had noticed.
	Background *estimate.Mean `json:"noticed_placebo"`
	// Recovered is the success of those that noticed, as a multiple of the success of placebos.
	Recovered *float64 `json:"recovered"`
	Use
	Cost            // twin minus clean, beyond the call
	Recovery *Cost  `json:"recovery"` // that of the twins alone that noticed and succeeded; null without any
	Worst    []Fate `json:"worst"`    // of the pairs, those that lost most; at most as many as a page shows

	pairs []estimate.Pair
}

// Use says what became of a wrong value.
type Use struct {
	UsedWrong   *estimate.Mean `json:"used_wrong"`
	UsedTrue    *estimate.Mean `json:"used_true"`
	SafeSuccess *estimate.Mean `json:"safe_success"`
	Dependence  *float64       `json:"dependence"` // of the answer on the tool: how many answers more than of placebos differ
}

// Cost is what pairs differ by.
type Cost struct {
	Turns   estimate.Mean  `json:"extra_turns"`
	Tokens  *estimate.Mean `json:"extra_tokens"`
	USD     *estimate.Mean `json:"extra_usd"`
	Seconds estimate.Mean  `json:"extra_seconds"`
}

// Level is how the episodes of a run went that has faults at a level.
type Level struct {
	Level    float64             `json:"level"`
	PassHatK []estimate.PassRate `json:"pass_hat_k"`
}

// Builder takes the episodes of a run in any order.
type Builder struct {
	Prices episode.Prices // by model
	Asked  string         // the model, as the run asks for it
	Limits Limits
	// Positions tells early, middle and late calls apart.
	Positions bool

	clean  map[string]*play
	twins  []*play
	levels map[float64]*estimate.Sample
	tools  tools
}

// Add counts an episode.
func (b *Builder) Add(ep *episode.Episode) error {
	switch {
	case ep.Pending:
	case ep.Twin != nil:
		twin, err := b.played(ep)
		if err != nil {
			return err
		}
		b.twins = append(b.twins, twin)
	case ep.Planted != nil:
		sample := put(&b.levels, ep.Planted.Level)
		if ep.Outcome.AgentsDoing() {
			sample.Add(ep.Key.Task, success(ep))
		} else {
			sample.Unresolved(ep.Key.Task)
		}
	default:
		p, err := b.played(ep)
		if err != nil {
			return err
		}
		if b.clean == nil {
			b.clean = map[string]*play{}
		}
		b.clean[ep.ID] = p
		b.tools.add(ep)
	}
	return nil
}

func put[K comparable, V any](m *map[K]*V, key K) *V {
	if *m == nil {
		*m = map[K]*V{}
	}
	if (*m)[key] == nil {
		(*m)[key] = new(V)
	}
	return (*m)[key]
}

// Finish makes the report.
func (b *Builder) Finish() *Report {
	r := &Report{Clean: len(b.clean), Twins: len(b.twins), Cells: []Cell{}, Levels: []Level{}, Limits: b.Limits}
	cells, placebos := map[string][]pair{}, map[string][]pair{}
	var all []pair
	slices.SortFunc(b.twins, func(a, b *play) int { return cmp.Compare(a.id, b.id) })
	for _, t := range b.twins {
		r.PrefixTokens += t.twin.PrefixTokens
		_, own := episode.Beyond(t.turns, t.twin.Turn)
		r.PaidTokens += own.Tokens
		placebo := t.twin.Role == episode.TwinPlacebo
		if placebo {
			r.Placebos++
		}
		clean := b.clean[t.twin.Of]
		switch {
		case clean == nil || t.twin.Ordinal >= len(clean.calls):
			r.Orphans++
			continue
		case t.unplanted:
			r.Unplanted++
			continue
		}
		t.tool = clean.calls[t.twin.Ordinal]
		switch {
		case t.twin.Prefix == episode.PrefixDiverged:
			r.Diverged++
		case placebo:
			all, placebos[t.tool] = append(all, pair{clean, t}), append(placebos[t.tool], pair{clean, t})
		default:
			t.position = "all"
			if b.Positions {
				t.position = episode.Position(t.twin.Ordinal)
			}
			key := fmt.Sprintf("%s\x00%s\x00%t\x00%02d", t.tool, t.twin.FullClass(), t.unrecoverable(), slices.Index(positions, t.position))
			cells[key] = append(cells[key], pair{clean, t})
		}
	}
	if len(all) > 0 {
		r.Placebo = new(cellOf(all, nil))
		r.Placebo.Tool = ""
		r.PlaceboOff = r.Placebo.Harm.PValue() < 0.001
	}
	for _, key := range slices.Sorted(maps.Keys(cells)) {
		r.Cells = append(r.Cells, cellOf(cells[key], placebos[cells[key][0].twin.tool]))
	}
	r.depend(cells)
	r.correct()
	for _, level := range slices.Sorted(maps.Keys(b.levels)) {
		r.Levels = append(r.Levels, Level{level, b.levels[level].PassRates(estimate.PassHatK)})
	}
	r.Tools = b.tools.list(r.Cells)
	return r
}

// positions are the values of Cell.Position, in the order in which cells are listed.
var positions = []string{"all", "early", "middle", "late"}

// depend fills in the harm in tasks whose answer depends on the tool.
func (r *Report) depend(cells map[string][]pair) {
	dependent := map[[2]string]bool{}
	for _, pairs := range cells {
		for _, p := range judged(pairs) {
			if strings.HasPrefix(p.twin.twin.FullClass(), wrongValue) && p.clean.resolved && differs(p) {
				dependent[[2]string{p.twin.tool, p.twin.task}] = true
			}
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		var of []estimate.Pair
		for _, p := range c.pairs {
			if dependent[[2]string{c.Tool, p.Task}] {
				of = append(of, p)
			}
		}
		if len(of) > 0 && !strings.HasPrefix(c.Class, wrongValue) {
			c.Dependent = new(estimate.Harm(of))
		}
	}
}

// correct corrects the p-values of the cells for their number.
func (r *Report) correct() {
	p := make([]float64, len(r.Cells))
	for i, c := range r.Cells {
		p[i] = c.Harm.PValue()
	}
	for i, corrected := range estimate.Holm(p) {
		r.Cells[i].P = &corrected
	}
}

// Compare fills in how much more harm each cell has than in another run of the same tasks.
func (r *Report) Compare(other *Report) {
	for i := range r.Cells {
		c := &r.Cells[i]
		at := slices.IndexFunc(other.Cells, func(o Cell) bool {
			return o.Tool == c.Tool && o.Class == c.Class && o.Position == c.Position && o.Unrecoverable == c.Unrecoverable
		})
		if at >= 0 && len(c.pairs) > 0 && len(other.Cells[at].pairs) > 0 {
			c.Versus = new(estimate.Versus(c.pairs, other.Cells[at].pairs))
		}
	}
}

// Broken is why the harms cannot be trusted, or nil.
func (r *Report) Broken() error {
	var why []error
	if r.PlaceboOff {
		why = append(why, errors.New("the placebos did harm: twins differ from their clean episodes by more than the fault"))
	}
	if 10*r.Diverged > 3*r.Twins {
		why = append(why, fmt.Errorf("%d of %d twins diverged before the fault: a tool does not give the same result again, leave it out of the faults' tools",
			r.Diverged, r.Twins))
	}
	return errors.Join(why...)
}

// Exceeding names the cells whose harm, and the tools whose rate of errors, is proven to be above its limit, as an error. What cannot be
// recovered from is not the agent's doing.
func (r *Report) Exceeding() error {
	var above []error
	for _, c := range r.Cells {
		if i := c.Harm.Range; i != nil && i.Low > r.Limits.Harm && !c.Unrecoverable {
			above = append(above, fmt.Errorf("%s of %s does more harm than %g: between %.3f and %.3f", c.Class, c.Tool, r.Limits.Harm, i.Low, i.High))
		}
	}
	for _, t := range r.Tools {
		if t.Rate.Low > r.Limits.ErrorRate {
			above = append(above, fmt.Errorf("%s fails in more than %g of its calls: in %.3f to %.3f of them", t.Tool, r.Limits.ErrorRate, t.Rate.Low, t.Rate.High))
		}
	}
	return errors.Join(above...)
}

// Unsettled is an error if a larger share of the pairs is unresolved than allowed.
func (r *Report) Unsettled() error {
	open, pairs := 0, 0
	for _, c := range r.Cells {
		open, pairs = open+c.Unresolved, pairs+c.Unresolved+c.Harm.N
	}
	if float64(open) <= r.Limits.Unresolved*float64(pairs) {
		return nil
	}
	return fmt.Errorf("%d of %d pairs have an episode that ended in an error, and no verdict: trajgen run --retry-errors plays them again", open, pairs)
}
