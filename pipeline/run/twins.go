package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/datasets"
	"trajgen/outputs/journal"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reaction"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/where"
	"trajgen/tools/faults"
)

// planFile says in a run directory how many twins each cell has.
const planFile = "plan.json"

// TwinPlan is which twins a run plays: a pure function of its clean episodes, its seed and the section faults.
type TwinPlan struct {
	Cells []TwinCell `json:"cells"`
	// Skipped counts clean episodes that have no twins, or none from some call on, by the reason.
	Skipped map[string]int `json:"skipped,omitempty"`

	recoverable func(task, tool, class string) *bool

	of    map[string][]pipeline.Planned // by task
	cells map[[3]string]*TwinCell       // by tool, class and position
}

// TwinCell is a kind of twins.
type TwinCell struct {
	Tool     string  `json:"tool"`
	Class    string  `json:"class"`    // with its variant
	Position string  `json:"position"` // all; or of the call among those of its episode: early (0 and 1), middle (2 to 5), late
	Eligible int     `json:"eligible"` // calls of clean episodes that can have it
	P        float64 `json:"p"`        // the chance of each
	Twins    int     `json:"twins"`    // that are played
	// What the clean episodes of these twins cost beyond the call: about what the twins will. USD is null where a price is not known.
	Tokens  int      `json:"tokens"`
	USD     *float64 `json:"usd"`
	Seconds float64  `json:"seconds"`
}

// eligible is a call that can have a fault of a class.
type eligible struct {
	task   string
	sample int
	twin   episode.Twin
	cell   [3]string // tool, class, position
	coin   float64
	clean  *episode.Episode
}

// PlanTwins plans the twins of clean episodes that a journal has.
func (e *Experiment) PlanTwins(ctx context.Context, reader *journal.Reader) (*TwinPlan, error) {
	// The chance of a call depends on how many there are. They are read twice and not held, as there may be many millions.
	plan := &TwinPlan{Skipped: map[string]int{}, of: map[string][]pipeline.Planned{}, cells: map[[3]string]*TwinCell{}}
	plan.recoverable = func(string, string, string) *bool { return nil }
	if file := e.File.Faults.Recoverable; file != "" {
		var err error
		if plan.recoverable, err = faults.Recoverable(file); err != nil {
			return nil, AsMistake(err)
		}
	}
	if err := e.eachEligible(ctx, reader, plan.skip, plan.count); err != nil {
		return nil, err
	}
	plan.weigh(e.File.Faults)
	draw := func(each eligible) { plan.draw(each, e.File.Budget.Prices, e.File.Model.Name) }
	if err := e.eachEligible(ctx, reader, func(string) {}, draw); err != nil {
		return nil, err
	}
	order := func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(plan.cells), order) {
		plan.Cells = append(plan.Cells, *plan.cells[key])
	}
	return plan, nil
}

// eachEligible tells of each call of a clean episode and each class that it can have, and why episodes have none.
func (e *Experiment) eachEligible(ctx context.Context, reader *journal.Reader, skip func(why string), each func(eligible)) error {
	f := e.File
	holds, err := chosenTasks(f.Faults.Where)
	if err != nil {
		return err
	}
	for task, err := range e.Playable(e.Source.InOrder(ctx)) {
		if err != nil {
			return err
		}
		if chosen, err := holds(task); err != nil {
			return err
		} else if !chosen {
			continue
		}
		for sample := range f.Samples {
			clean, err := reader.Last(episode.Key{Seed: f.Seed, Task: task.ID, Sample: sample}.ID())
			if errors.Is(err, journal.ErrNoEpisode) {
				skip("it was not played")
				continue
			}
			if err != nil {
				return err
			}
			if !clean.Outcome.AgentsDoing() {
				skip("it ended in " + string(clean.Outcome))
				continue
			}
			e.eligible(task, clean, skip, each)
		}
	}
	return nil
}

// chosenTasks says of which tasks the clean episodes have twins. It knows what was known before they were played: what an episode
// made must not decide, see reliability.Report.
func chosenTasks(condition string) (func(*episode.Task) (bool, error), error) {
	if condition == "" {
		return func(*episode.Task) (bool, error) { return true, nil }, nil
	}
	parsed, err := where.Parse(condition, datasets.RowNames(), false)
	if err != nil {
		return nil, fmt.Errorf("faults.where: %w; it chooses by what was known of a task before it was played", err)
	}
	return func(task *episode.Task) (bool, error) { return parsed.Match(datasets.RowValues(task)) }, nil
}

// eligible tells of the calls of a clean episode with the classes that they can have.
func (e *Experiment) eligible(task *episode.Task, clean *episode.Episode, skip func(why string), each func(eligible)) {
	settings := e.File.Faults
	known := knownTexts(task)
	places := clean.Places()
	for i := range clean.Calls {
		call := &clean.Calls[i]
		tool, have := e.Registry.Tool(call.Name)
		if !have {
			continue
		}
		if err := rollout.Replayable(clean, call.Turn); err != nil {
			skip(err.Error())
			return
		}
		position := faults.PositionAll
		if settings.Position == faults.PositionOrdinal {
			position = episode.Position(i)
		}
		for _, class := range twinClasses(settings) {
			if !faults.Eligible(settings, &tool, clean, i, class, known...) {
				continue
			}
			name, variant, _ := strings.Cut(class, ":")
			at := places[i]
			twin := episode.Twin{
				Role: episode.TwinFault, Of: clean.ID, Class: name, Variant: variant, Turn: at.Turn, Index: at.Index, Nested: at.Nested, Ordinal: i,
			}
			if name == faults.None {
				twin.Role = episode.TwinPlacebo
			}
			each(eligible{
				task: task.ID, sample: clean.Key.Sample, twin: twin, cell: [3]string{call.Name, class, position},
				coin:  faults.U(cmp.Or(settings.Seed, clean.Key.Seed), clean.Key, at, call.Name, call.Digest(), "class/"+class+"/0"),
				clean: clean,
			})
		}
	}
}

// skip counts a clean episode that has no twins, or none from some call on.
func (p *TwinPlan) skip(why string) { p.Skipped[why]++ }

// count counts a call in its cell.
func (p *TwinPlan) count(e eligible) {
	if p.cells[e.cell] == nil {
		p.cells[e.cell] = &TwinCell{Tool: e.cell[0], Class: e.cell[1], Position: e.cell[2]}
	}
	p.cells[e.cell].Eligible++
}

// weigh sets the chance of each call of a cell.
func (p *TwinPlan) weigh(settings faults.Settings) {
	for _, cell := range p.cells {
		cell.P = settings.Probability
		if cell.P == 0 {
			cell.P = min(1, float64(cmp.Or(settings.Pairs, defaultPairs))/float64(cell.Eligible))
		}
	}
}

// draw decides about a call by its own coin.
func (p *TwinPlan) draw(e eligible, prices episode.Prices, asked string) {
	cell := p.cells[e.cell]
	if e.coin >= cell.P {
		return
	}
	_, cost := episode.Beyond(episode.TurnCosts(e.clean, prices, asked), e.twin.Turn)
	if cell.Twins == 0 {
		cell.USD = new(0.0)
	}
	cell.Twins, cell.Tokens, cell.Seconds = cell.Twins+1, cell.Tokens+cost.Tokens, cell.Seconds+cost.Elapsed.Seconds()
	if cost.USD == nil || cell.USD == nil {
		cell.USD = nil
	} else {
		cell.USD = new(*cell.USD + *cost.USD)
	}
	e.twin.P, e.twin.Recoverable = cell.P, p.recoverable(e.task, e.cell[0], e.twin.FullClass())
	p.of[e.task] = append(p.of[e.task], pipeline.Planned{Sample: e.sample, Twin: new(e.twin)})
}

// twins is how many are played.
func (p *TwinPlan) twins() (n int) {
	for _, c := range p.Cells {
		n += c.Twins
	}
	return n
}

// defaultPairs is how many twins a cell has where the run file says nothing.
const defaultPairs = 100

// twinClasses are the classes that twins have: those of the run file, or all in their usual form, and the placebo.
func twinClasses(s faults.Settings) []string {
	classes := slices.Clone(s.Classes)
	if len(classes) == 0 {
		for _, c := range faults.Classes() {
			if !strings.Contains(c, ":") {
				classes = append(classes, c)
			}
		}
	}
	if !slices.Contains(classes, faults.None) {
		classes = append(classes, faults.None)
	}
	return classes
}

// write writes the plan into the run directory.
func (p *TwinPlan) write(dir string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, planFile), append(text, '\n'))
}

// playTwins plays the twins of the clean episodes, which all have ended.
func (s *Run) playTwins(ctx context.Context, cfg pipeline.Config, player *rollout.Player) (pipeline.Summary, error) {
	clean, err := journal.OpenReader(JournalDir(cmp.Or(s.Exp.File.Faults.Clean, s.dir)))
	if err != nil {
		return pipeline.Summary{}, err
	}
	defer clean.Close()
	plan, err := s.Exp.PlanTwins(ctx, clean)
	if err != nil {
		return pipeline.Summary{}, fmt.Errorf("plan the twins: %w", err)
	}
	if err := plan.write(s.dir); err != nil {
		return pipeline.Summary{}, err
	}
	if server := s.Exp.Scripted; server != nil && s.Exp.File.Scripted.Remembers() {
		of, err := CleanFrom(ctx, clean)
		if err != nil {
			return pipeline.Summary{}, err
		}
		server.Remember(of)
	}
	player.Clean = func(twin *episode.Twin) (*episode.Episode, error) { return clean.Last(twin.Of) }
	cfg.Tasks = s.Exp.Playable(s.Exp.Source.Tasks(ctx))
	cfg.Plan = func(task string) []pipeline.Planned { return plan.of[task] }
	if cfg.Observe != nil {
		cfg.Observe(pipeline.Event{Kind: pipeline.TwinsPlanned, Twins: plan.twins()})
	}
	return pipeline.Run(ctx, cfg)
}

// reacted reads what the agent of a twin did about its fault.
func (s *Run) reacted(ep *episode.Episode) error {
	if ep.Twin == nil || !ep.Outcome.AgentsDoing() {
		return nil
	}
	return reaction.Reader{Tool: s.Exp.Registry.Tool, Alternatives: s.Exp.File.Faults.Alternatives}.Read(ep)
}
