package reliability_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"trajgen/outputs/reliability"
	"trajgen/pipeline/episode"
)

const tasks = 40

func played(id string, task int, outcome episode.Outcome, turns int) *episode.Episode {
	ep := &episode.Episode{ID: id, Key: episode.Key{Task: fmt.Sprint("task ", task)}, Outcome: outcome, Answer: "4"}
	for i := range turns {
		ep.Turns = append(ep.Turns, episode.Turn{
			Index: i, Model: "m", Usage: episode.Usage{Prompt: 100, Completion: 10, Reported: true}, Elapsed: time.Second,
		})
		if i < turns-1 {
			ep.Calls = append(ep.Calls, episode.ToolCall{Turn: i, Name: "read_file", Toolset: "files", Status: episode.CallOK})
		}
	}
	return ep
}

func twinOf(clean *episode.Episode, class string, outcome episode.Outcome, turns int, reactions ...string) *episode.Episode {
	var task int
	fmt.Sscanf(clean.Key.Task, "task %d", &task)
	ep := played(clean.ID+class, task, outcome, turns)
	ep.Twin = &episode.Twin{Role: episode.TwinFault, Of: clean.ID, Class: class, P: 0.5, Prefix: episode.PrefixReplayed, Reactions: reactions}
	if class == "none" {
		ep.Twin.Role = episode.TwinPlacebo
	} else if len(ep.Calls) > 0 {
		ep.Calls[0].Planted = &episode.Planted{Class: class}
	}
	return ep
}

// fleet are clean episodes of three turns, each with a placebo that does the same and with a twin that retries once; of four, one fails.
func fleet() (all []*episode.Episode) {
	for i := range tasks {
		clean := played(fmt.Sprint("clean", i), i, episode.Success, 3)
		if i%10 == 0 {
			clean.Calls[1].Status = episode.CallError
		}
		outcome := episode.Success
		if i%4 == 0 {
			outcome = episode.Failure
		}
		fault := twinOf(clean, "error_transient", outcome, 4, "retry")
		all = append(all, fault, clean, twinOf(clean, "none", episode.Success, 3, "ignores"))
	}
	return all
}

func report(t *testing.T, episodes []*episode.Episode) *reliability.Report {
	t.Helper()
	b := reliability.Builder{Prices: episode.Prices{"m": {Input: 1000, Output: 1000}}}
	for _, ep := range episodes {
		if err := b.Add(ep); err != nil {
			t.Fatal(err)
		}
	}
	return b.Finish()
}

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := report(t, fleet())
	if r.Clean != tasks || r.Twins != 2*tasks || r.Placebos != tasks || r.Diverged != 0 || len(r.Cells) != 1 {
		t.Fatalf("%d clean, %d twins, %d placebos, %d diverged, %d cells", r.Clean, r.Twins, r.Placebos, r.Diverged, len(r.Cells))
	}
	c := r.Cells[0]
	near(t, "harm", c.Harm.Value, 0.25)
	near(t, "eligible calls", c.Eligible, 2*tasks)
	near(t, "noticed", c.Noticed.Value, 1)
	near(t, "noticed by placebos", c.Background.Value, 0)
	near(t, "recovered", *c.Recovered, 0.75)
	near(t, "extra turns", c.Turns.Value, 1)
	near(t, "extra tokens", c.Tokens.Value, 110)
	near(t, "extra USD", c.USD.Value, 0.11)
	near(t, "extra seconds", c.Seconds.Value, 1)
	near(t, "placebo's harm", r.Placebo.Harm.Value, 0)
	near(t, "calls per episode", r.Tools[0].Calls, 2)
	near(t, "at stake", r.Tools[0].Stake.Value, 2*4.0/80*0.25)
	if why := r.Broken(); why != nil {
		t.Errorf("Broken() = %v", why)
	}
	for _, tt := range []struct {
		limits map[string]float64
		want   string
	}{
		{nil, ""}, {map[string]float64{"max_harm": 0.25}, ""}, {map[string]float64{"max_error_rate": 0.04}, ""},
		{map[string]float64{"max_harm": 0.05}, "error_transient of read_file does more harm than 0.05"},
		{map[string]float64{"max_error_rate": 0.01}, "read_file fails in more than 0.01 of its calls"},
	} {
		r.Limits = reliability.LimitsOf(tt.limits)
		if err := r.Exceeding(); err == nil && tt.want != "" || err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.limits, err, tt.want)
		}
	}
	var page bytes.Buffer
	if err := r.WriteText(&page); err != nil || !strings.Contains(page.String(), "read_file  error_transient  40     38       80        1.00 (0.00)        0.75       0.25") {
		t.Errorf("WriteText: %v\n%s", err, page.String())
	}
}

// TestPages has a tool's words in the page, of which the browser must run none.
func TestPages(t *testing.T) {
	t.Parallel()
	episodes := fleet()
	byID := map[string]*episode.Episode{}
	for _, ep := range episodes {
		byID[ep.ID] = ep
		if ep.Twin != nil && ep.Outcome == episode.Failure {
			for i := range ep.Calls {
				ep.Calls[i].RawArguments = `{"path":"<script>alert(1)</script>|"}`
			}
		}
	}
	r := report(t, episodes)
	err := r.Tell(func(id string) (*episode.Episode, error) { return byID[id], nil })
	if err != nil {
		t.Fatal(err)
	}
	worst := r.Cells[0].Worst
	if len(worst) != 20 || worst[0].Harm != 1 || worst[0].Turn != 1 || !strings.HasPrefix(worst[0].TwinDoes, `read_file {"path":"<script>`) || worst[0].CleanDoes != "read_file" {
		t.Errorf("%d worst pairs, the first %+v", len(worst), worst[0])
	}
	var page, text bytes.Buffer
	if err := errors.Join(r.WriteHTML(&page), r.WriteMarkdown(&text)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "Harm per call", "0.250 [0.", "the 20 of 40 pairs that lost most", "&lt;script&gt;"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "<script>") {
		t.Error("the page has a script")
	}
	for line := range strings.Lines(text.String()) {
		if cells := strings.Count(line, "|"); strings.HasPrefix(line, "|") && cells != 9 && cells != 12 {
			t.Errorf("%d bars in %q", cells, line)
		}
	}
}

// TestPositions tells early calls from middle ones, and a task whose answer depends on the tool from others.
func TestPositions(t *testing.T) {
	t.Parallel()
	b := reliability.Builder{Positions: true}
	for i := range tasks {
		clean := played(fmt.Sprint("clean", i), i, episode.Success, 5)
		late := twinOf(clean, "error_permanent", episode.Failure, 5)
		late.Twin.Ordinal, late.Twin.Turn = 3, 3
		late.Calls[3].Planted = &episode.Planted{Class: "error_permanent"}
		wrong := twinOf(clean, "wrong_value", episode.Success, 5)
		if i < 10 {
			wrong.Answer = "5"
		}
		for _, ep := range []*episode.Episode{clean, twinOf(clean, "error_permanent", episode.Success, 5), late, wrong, twinOf(clean, "none", episode.Success, 5)} {
			if err := b.Add(ep); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := b.Finish()
	if len(r.Cells) != 3 || r.Cells[0].Position != "early" || r.Cells[1].Position != "middle" || r.Cells[0].Class != r.Cells[1].Class {
		t.Fatalf("cells %+v", r.Cells)
	}
	near(t, "harm of early calls", r.Cells[0].Harm.Value, 0)
	near(t, "harm of middle calls", r.Cells[1].Harm.Value, 1)
	near(t, "harm where the answer depends on the tool", r.Cells[1].Dependent.Value, 1)
	if n := r.Cells[1].Dependent.N; n != 10 || r.Cells[2].Dependent != nil {
		t.Errorf("%d dependent tasks, want 10; of wrong values themselves %v", n, r.Cells[2].Dependent)
	}
	near(t, "dependence", *r.Cells[2].Dependence, 0.25)
}

func said(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// TestTroubleIsSaid breaks a run in the ways that its numbers cannot be trusted.
func TestTroubleIsSaid(t *testing.T) {
	t.Parallel()
	placebos, diverged := fleet(), fleet()
	for i, ep := range placebos {
		if ep.Twin != nil && ep.Twin.Role == episode.TwinPlacebo && i%2 == 0 {
			ep.Outcome = episode.Failure
		}
	}
	for i, ep := range diverged {
		if ep.Twin != nil && i%2 == 0 {
			ep.Twin.Prefix, ep.Calls, ep.Outcome = episode.PrefixDiverged, nil, episode.ToolError
		}
	}
	if why := report(t, placebos).Broken(); !said(why, "placebos did harm") {
		t.Errorf("Broken() = %v, want that placebos did harm", why)
	}
	if why := report(t, diverged).Broken(); !said(why, "40 of 80 twins diverged") {
		t.Errorf("Broken() = %v, want that twins diverged", why)
	}
}

func TestUnresolvedPairsAreBounded(t *testing.T) {
	t.Parallel()
	episodes := fleet()
	for _, ep := range episodes {
		if ep.ID == "clean1error_transient" || ep.ID == "clean2error_transient" {
			ep.Outcome = episode.ModelError
		}
	}
	c := report(t, episodes).Cells[0]
	if c.Unresolved != 2 || c.Harm.N != tasks-2 {
		t.Errorf("%d unresolved and %d pairs, want 2 and %d", c.Unresolved, c.Harm.N, tasks-2)
	}
	r := reliability.Report{Cells: []reliability.Cell{c}, Limits: reliability.LimitsOf(map[string]float64{"max_unresolved": 0.04})}
	if err := r.Unsettled(); !said(err, "2 of 40 pairs") {
		t.Errorf("Unsettled() = %v, want 2 of 40 pairs", err)
	}
	if r.Limits.Unresolved = 0.1; r.Unsettled() != nil {
		t.Errorf("Unsettled() = %v with a limit of a tenth", r.Unsettled())
	}
	near(t, "least harm", c.Bounds.Low, 10.0/tasks)
	near(t, "greatest harm", c.Bounds.High, 12.0/tasks)
}

// TestTwinsThatAreLeftOut has a twin that died before its call, which is a pair without a verdict, and one whose call gave nothing that the
// fault changes.
func TestTwinsThatAreLeftOut(t *testing.T) {
	clean := played("clean", 1, episode.Success, 3)
	dead := twinOf(clean, "timeout", episode.SandboxError, 3)
	dead.Calls = nil
	without := twinOf(clean, "empty", episode.Success, 3)
	without.Calls[0].Planted = nil
	r := report(t, []*episode.Episode{clean, dead, without})
	if len(r.Cells) != 1 || r.Cells[0].Tool != "read_file" || r.Cells[0].Class != "timeout" || r.Cells[0].Unresolved != 1 || r.Unplanted != 1 {
		t.Errorf("cells %+v, %d without a fault", r.Cells, r.Unplanted)
	}
}

func TestOtherRun(t *testing.T) {
	t.Parallel()
	better := fleet()
	for _, ep := range better {
		ep.Outcome = episode.Success
	}
	r := report(t, fleet())
	r.Compare(report(t, better))
	near(t, "difference", r.Cells[0].Versus.Value, 0.25)
}

func TestLevels(t *testing.T) {
	t.Parallel()
	var episodes []*episode.Episode
	for task := range tasks {
		for sample := range 4 {
			outcome := episode.Success
			if sample == 0 {
				outcome = episode.Failure
			}
			ep := played(fmt.Sprint(task, sample), task, outcome, 2)
			ep.Planted = &episode.PlantedLevel{Level: 0.1}
			episodes = append(episodes, ep)
		}
	}
	r := report(t, episodes)
	if len(r.Levels) != 1 || len(r.Levels[0].PassHatK) != 3 {
		t.Fatalf("levels %+v, want one with pass^1, pass^2 and pass^4", r.Levels)
	}
	near(t, "pass^1", r.Levels[0].PassHatK[0].Value, 0.75)
	near(t, "pass^2", r.Levels[0].PassHatK[1].Value, 0.5)
	near(t, "pass^4", r.Levels[0].PassHatK[2].Value, 0)
}

func TestDamagedTwin(t *testing.T) {
	t.Parallel()
	ep := fleet()[0]
	ep.Twin.Ordinal = 7
	if err := new(reliability.Builder).Add(ep); err == nil || !strings.Contains(err.Error(), "trajgen verify") {
		t.Errorf("Add of a twin without its call: %v, want an error that names trajgen verify", err)
	}
}
