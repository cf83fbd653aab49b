package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Stage is a way to play the standard episode.
type Stage struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Against is the stage that does the least that this one needs; "" for such a stage itself.
	Against string `json:"against,omitempty"`

	Loop      bool   `json:"-"` // the limit, and not trajgen
	Script    string `json:"-"`
	Fork      bool   `json:"-"` // of the loop
	NoopTools bool   `json:"-"`
	Sandbox   string `json:"-"` // "" opens none
	Journal   bool   `json:"-"` // on disk; without, one that forgets all but the outcome
	Full      bool   `json:"-"` // as trajgen run does it, with Parquet files and report
}

// Stages are those of the parts, each beside the one it is held against.
var Stages = []Stage{
	{Name: "limit-answer", About: "limit loop, one request", Loop: true, Script: scriptAnswer},
	{Name: "answer", About: "trajgen, one request", Against: "limit-answer", Script: scriptAnswer},
	{Name: "limit-noop", About: "limit loop, no-op tools", Loop: true, Script: scriptEpisode},
	{Name: "noop", About: "trajgen, no-op tools", Against: "limit-noop", Script: scriptEpisode, NoopTools: true},
	{Name: "limit-fork", About: "limit loop, a shell for each call", Loop: true, Script: scriptEpisode, Fork: true},
	{Name: "local", About: "trajgen, local", Against: "limit-fork", Script: scriptEpisode, Sandbox: "local"},
	{Name: "native", About: "trajgen, native with limits", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native"},
	{Name: "journal", About: "the same, and the journal", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native", Journal: true},
	{Name: "full", About: "the same, Parquet and report", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native", Journal: true, Full: true},
}

// kept is for what is about many episodes: each is short, and in the journal.
var kept = Stage{Name: "kept", About: "trajgen, one request and the journal", Script: scriptAnswer, Journal: true}

// stage finds a stage by its name.
func stage(name string) Stage {
	for _, s := range append(Stages, kept) {
		if s.Name == name {
			return s
		}
	}
	panic("no stage " + name)
}

// unfit says why a stage cannot be played here; "" when it can.
func (s Stage) unfit() string {
	if s.Sandbox == "native" && runtime.GOOS != "linux" {
		return "native sandboxes are of Linux alone"
	}
	return ""
}

// Toolsets are those that the model is shown.
func (s Stage) Toolsets() []string { return toolsets(s.Script) }

// Setup is how a stage is played: bench play reads it from its directory.
type Setup struct {
	Stage       string
	Episodes    int
	InFlight    int
	Dir         string   // scratch; the run directory is in it
	Addrs       []string // of the server
	Delay       time.Duration
	DelayedTurn int // allTurns, or the only turn that is answered late
	PromptBytes int
	Rate        float64 // episodes begun in a second; 0 is as fast as it goes
	Profiles    string  // directory for profiles of CPU and heap; "" makes none
}

// setupName is the file in Setup.Dir that holds it.
const setupName = "setup.json"

// ReadSetup reads how a stage is to be played.
func ReadSetup(dir string) (s Setup, stageOf Stage, err error) {
	text, err := os.ReadFile(filepath.Join(dir, setupName))
	if err != nil {
		return s, stageOf, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, stageOf, fmt.Errorf("read %s of %s: %w", setupName, dir, err)
	}
	return s, stage(s.Stage), nil
}

// URLs are the base URLs that the stage's script is answered at.
func (s Setup) URLs(script string) []string {
	var urls []string
	for _, at := range s.Addrs {
		urls = append(urls, baseURL(at, script, s.Delay, s.DelayedTurn))
	}
	return urls
}

// Out is the run directory.
func (s Setup) Out() string { return filepath.Join(s.Dir, "run") }

// RunFile is where prepare puts the run file.
func (s Setup) RunFile() string { return filepath.Join(s.Dir, "run.yaml") }

// prepare makes a directory with the setup, the dataset, and a run file that plays the stage on it. It is not counted.
func (p *player) prepare(s Stage, setup Setup) (_ Setup, err error) {
	if setup.Dir, err = os.MkdirTemp(p.dir, "play-"); err != nil {
		return setup, err
	}
	setup.Stage, setup.Addrs = s.Name, p.server.Addrs[:min(len(p.server.Addrs), setup.InFlight/3000+1)]
	dataset := filepath.Join(setup.Dir, "tasks.jsonl")
	if err := writeDataset(dataset, setup.Episodes, setup.PromptBytes, s.Sandbox != ""); err != nil {
		return setup, err
	}
	type section = map[string]any
	file := section{
		"out": setup.Out(), "dataset": section{"path": dataset}, "model": section{"name": modelName, "endpoints": setup.URLs(s.Script)},
		"play": section{"workers": setup.InFlight}, "tools": section{"toolsets": s.Toolsets()}, "sandbox": section{"backend": "local", "isolation": "none"},
	}
	if s.Sandbox == "native" {
		file["sandbox"] = section{"backend": s.Sandbox, "isolation": "landlock"}
	}
	if setup.Delay > 0 {
		// How fast a runner finds out what a server takes is another matter.
		file["requests"] = section{"min_in_flight": setup.InFlight}
	}
	for name, content := range map[string]any{setup.RunFile(): file, filepath.Join(setup.Dir, setupName): setup} {
		text, err := json.Marshal(content) // JSON is YAML
		if err != nil {
			return setup, err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return setup, err
		}
	}
	return setup, nil
}

// play measures a stage, and what the server saw of it.
func (p *player) play(ctx context.Context, s Stage, setup Setup) (m Measurement, played Played, err error) {
	if setup, err = p.prepare(s, setup); err != nil {
		return m, played, err
	}
	defer os.RemoveAll(setup.Dir)
	p.server.Reset()
	if s.Full && setup.Profiles == "" {
		if m, err = p.measure(ctx, nil, p.Trajgen, "run", "-f", setup.RunFile(), "--quiet"); err == nil {
			err = allSucceeded(setup)
		}
		return m, played, err
	}
	m, err = p.measure(ctx, &played, p.Itself, "play", setup.Dir)
	return m, played, err
}

// difference plays a stage with many episodes and with a tenth of them. each is what one of the others cost.
func (p *player) difference(ctx context.Context, s Stage, setup Setup) (each Round, err error) {
	small := setup
	small.Episodes /= 10
	less, _, err := p.play(ctx, s, small)
	if err != nil {
		return each, err
	}
	more, _, err := p.play(ctx, s, setup)
	n := float64(setup.Episodes - small.Episodes)
	return Round{EpisodesPerS: ratio(n, more.WallS-less.WallS), CPUMSPerEpisode: (more.CPUMS - less.CPUMS) / n, PeakMB: more.PeakMB}, err
}

// allSucceeded makes sure that what was measured is what was meant.
func allSucceeded(setup Setup) error {
	text, err := os.ReadFile(filepath.Join(setup.Out(), "report.json"))
	if err != nil {
		return err
	}
	var report struct {
		Outcomes []struct {
			Outcome string `json:"outcome"`
			Count   int    `json:"count"`
		} `json:"outcomes"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	for _, o := range report.Outcomes {
		if o.Outcome == "success" && o.Count == setup.Episodes {
			return nil
		}
	}
	return fmt.Errorf("not all of %d episodes succeeded: %+v", setup.Episodes, report.Outcomes)
}
