// Package reliability says what agents did and lost when tools failed: it pairs twins with their clean episodes.
package reliability

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// PlaceboOff says that the 99.9 % interval of the placebos' harm leaves out 0: the harm of the other cells cannot be trusted.
	PlaceboOff bool    `json:"placebo_off"`
	Placebo    *Cell   `json:"placebo"` // of all tools; null without placebos
	Cells      []Cell  `json:"cells"`
	Levels     []Level `json:"levels"`
	Tools      []Tool  `json:"tools"` // as they failed by themselves in the clean episodes
}

// Cell is what a class of faults did in a tool. The numbers are about all calls of the clean episodes that could have had the fault.
type Cell struct {
	Tool          string  `json:"tool"`
	Class         string  `json:"class"`                   // with its variant behind a colon
	Unrecoverable bool    `json:"unrecoverable,omitempty"` // the reference solutions do not succeed with the fault either
	Eligible      float64 `json:"eligible"`                // calls that the pairs stand for

	Harm estimate.Mean `json:"harm"` // success of the clean episode minus that of its twin
	// Unresolved pairs have an episode that ended without a verdict; Bounds are the harm with the least and the greatest that they can be.
	Unresolved int                `json:"unresolved"`
	Bounds     *estimate.Interval `json:"bounds"`
	P          *float64           `json:"p,omitempty"` // that the harm is 0, corrected for the number of cells (Holm)
	// Versus is the harm minus that of the same cell in the other run.
	Versus *estimate.Mean `json:"versus,omitempty"`

	Reactions   map[string]estimate.Mean `json:"reactions"`
	Noticed     estimate.Mean            `json:"noticed"`
	Background  *estimate.Mean           `json:"noticed_placebo"` // the share of the tool's placebos that look as if they had noticed
	Recovered   *float64                 `json:"recovered"`       // success of those that noticed, as a multiple of the success of placebos
	UsedWrong   *estimate.Mean           `json:"used_wrong"`
	UsedTrue    *estimate.Mean           `json:"used_true"`
	SafeSuccess *estimate.Mean           `json:"safe_success"`
	Dependence  *float64                 `json:"dependence"` // of the answer on the tool: how many answers more than of placebos differ

	Turns   estimate.Mean  `json:"extra_turns"` // this and the next three beyond the call, twin minus clean
	Tokens  *estimate.Mean `json:"extra_tokens"`
	USD     *estimate.Mean `json:"extra_usd"`
	Seconds estimate.Mean  `json:"extra_seconds"`

	pairs []estimate.Pair
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
	r := &Report{Clean: len(b.clean), Twins: len(b.twins), Cells: []Cell{}, Levels: []Level{}}
	cells, placebos := map[string][]pair{}, map[string][]pair{}
	var all []pair
	slices.SortFunc(b.twins, func(a, b *play) int { return cmp.Compare(a.id, b.id) })
	for _, t := range b.twins {
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
			key := fmt.Sprintf("%s\x00%s\x00%t", t.tool, t.class(), t.unrecoverable())
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
	r.correct()
	for _, level := range slices.Sorted(maps.Keys(b.levels)) {
		r.Levels = append(r.Levels, Level{level, b.levels[level].PassRates(estimate.PassHatK)})
	}
	r.Tools = b.tools.list(r.Cells)
	return r
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
			return o.Tool == c.Tool && o.Class == c.Class && o.Unrecoverable == c.Unrecoverable
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

// Exceeding names the cells whose harm is proven to be above a limit, as an error; those that cannot be recovered from are not the
// agent's doing.
func (r *Report) Exceeding(harm float64) error {
	var above []error
	for _, c := range r.Cells {
		if i := c.Harm.Range; i != nil && i.Low > harm && !c.Unrecoverable {
			above = append(above, fmt.Errorf("%s of %s does more harm than %g: between %.3f and %.3f", c.Class, c.Tool, harm, i.Low, i.High))
		}
	}
	return errors.Join(above...)
}
