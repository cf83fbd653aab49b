package reliability_test

import (
	"bytes"
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
	if low, high := r.Exceeding(0.05), r.Exceeding(0.25); low == nil || high != nil {
		t.Errorf("Exceeding(0.05) = %v, Exceeding(0.25) = %v", low, high)
	}
	var page bytes.Buffer
	if err := r.WriteText(&page); err != nil || !strings.Contains(page.String(), "read_file  error_transient  40     80        1.00 (0.00)") {
		t.Errorf("WriteText: %v\n%s", err, page.String())
	}
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
