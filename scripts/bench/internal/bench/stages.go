package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	NoCgroups bool   `json:"-"`
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
	{Name: "native", About: "trajgen, native without cgroups", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native", NoCgroups: true},
	{Name: "limits", About: "trajgen, native with limits", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native"},
	{Name: "journal", About: "the same, and the journal", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native", Journal: true},
	{Name: "full", About: "the same, Parquet and report", Against: "limit-fork", Script: scriptEpisode, Sandbox: "native", Journal: true, Full: true},
}

// kept is for what is about many episodes: each is short, and in the journal.
var kept = Stage{Name: "kept", About: "trajgen, one request and the journal", Script: scriptAnswer, Journal: true}

// FindStage finds a stage by its name.
func FindStage(name string) (Stage, error) {
	var names []string
	for _, s := range append(Stages, kept) {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Stage{}, fmt.Errorf("no stage %q (have %v)", name, names)
}

// Toolsets are those that the model is shown.
func (s Stage) Toolsets() []string { return toolsets(s.Script) }

// Setup is how a stage is played.
type Setup struct {
	Episodes    int
	InFlight    int
	Dir         string   // scratch; the run directory is in it
	Addrs       []string // of the server
	Delay       time.Duration
	DelayedTurn int // allTurns, or the only turn that is answered late
	PromptBytes int
}

// Validate says everything that is wrong.
func (s Setup) Validate() error {
	var problems []error
	for name, value := range map[string]int{"episodes": s.Episodes, "in-flight": s.InFlight} {
		if value < 1 {
			problems = append(problems, fmt.Errorf("%s is %d; at least 1", name, value))
		}
	}
	if s.Delay < 0 || s.PromptBytes < 0 || s.DelayedTurn < allTurns {
		problems = append(problems, fmt.Errorf("delay is %s, prompt-bytes %d and delayed-turn %d; not below 0, or -1 for all turns", s.Delay, s.PromptBytes, s.DelayedTurn))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
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

// RunFile is where Prepare puts the run file.
func (s Setup) RunFile() string { return filepath.Join(s.Dir, "run.yaml") }

// Prepare writes the dataset, and a run file that plays the stage on it.
func (s Stage) Prepare(setup Setup) error {
	dataset := filepath.Join(setup.Dir, "tasks.jsonl")
	if err := writeDataset(dataset, setup.Episodes, setup.PromptBytes, s.Sandbox != ""); err != nil {
		return err
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
	text, err := json.Marshal(file) // JSON is YAML
	if err != nil {
		return err
	}
	return os.WriteFile(setup.RunFile(), text, 0o644)
}
