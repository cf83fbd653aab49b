package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"trajgen/datasets"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/rollout"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/delegate"
)

// File is a run file: one experiment and how it is run, in sections. Beside the key in YAML, the tags of a field are: help, which
// makes it a flag of `trajgen run`; flag, the flag's name if it differs from the key; and experiment, which says whether the
// field belongs to the experiment, that is, decides which episodes there are and how they go:
//
//	no        no, so it may change when a run is resumed
//	always    yes
//	given     yes if it is given, so that runs of older versions, which lack it, can be resumed
//	in NAME   yes, as a part of NAME
type File struct {
	Name    string `yaml:"name" experiment:"no" help:"name of the run; the default is made of dataset and time"`
	Out     string `yaml:"out" experiment:"no" help:"run directory (default runs/NAME)"`
	Seed    uint64 `yaml:"seed" experiment:"always" help:"seed of everything that is drawn"`
	Samples int    `yaml:"samples" experiment:"no" help:"plays of each task"`

	Dataset    datasets.Settings     `yaml:"dataset,omitempty" section:"The dataset, and which of its tasks are played"`
	Tools      Tools                 `yaml:"tools,omitempty" section:"Toolsets and tools"`
	Commands   tools.CommandSettings `yaml:"commands,omitempty" section:"Commands that could do harm"`
	Families   `yaml:",inline"`
	Model      model.Settings          `yaml:"model,omitempty" section:"The model, and how it is asked"`
	Sweep      Sweep                   `yaml:"sweep,omitempty" experiment:"given"` // settings that differ between samples
	Requests   model.Patience          `yaml:"requests,omitempty" section:"When the model does not answer"`
	User       User                    `yaml:"user,omitempty" section:"A model that plays the user"`
	Scripted   scripted.Settings       `yaml:"scripted,omitempty" section:"Without a model"`
	Tape       record.Settings         `yaml:"tape,omitempty" section:"Tapes"`
	Prompts    Prompts                 `yaml:"prompts,omitempty" section:"Prompts of the run"`
	Limits     rollout.Limits          `yaml:"limits,omitempty" section:"An episode's limits"`
	Delegation delegate.Settings       `yaml:"delegation,omitempty" section:"Subagents"`
	Play       Play                    `yaml:"play,omitempty" section:"Workers, retries and the end"`
	Sandbox    sandbox.Settings        `yaml:"sandbox,omitempty" section:"Sandboxes"`
	Budget     budget.Settings         `yaml:"budget,omitempty" section:"Prices and budgets"`
	Context    rollout.ContextSettings `yaml:"context,omitempty" section:"Long conversations"`

	resumed bool   // an earlier run goes on
	Scratch string // directory for tasks that are played in another order
	Stepped bool   // which samples are played, and how many, comes out while they are
	NoUser  bool   // check the tasks without any model, not even one that plays a user
}

// Default is the run file with every setting at its default.
func Default() File {
	return File{
		Samples:  1,
		Scripted: scripted.Settings{Skill: 0.7},
		Requests: model.Patience{Timeout: 10 * time.Minute, Retries: 5, EpisodeRetries: 50, RetryShare: 0.2, OutageLimit: 30 * time.Minute},
		Limits:   rollout.Limits{Turns: rollout.DefaultTurns, Time: rollout.DefaultTime},
		Play:     Play{Workers: 8, EpisodeRetries: 1, MaxErrorsInRow: 20},
		Sandbox:  sandbox.Settings{Backend: "native", Ready: 2, Network: "loopback", Memory: 1 << 30, Processes: 256, Disk: 512 << 20},
	}
}

// Validate returns all errors at once that can be found without opening anything.
func (f *File) Validate() error {
	problems := []error{
		checkSigns(f.Settings()), f.Quirks().Validate(), f.CheckSweep(), f.Browser.ValidateIn(f.Web.Mode), f.Tape.Validate(f.Scripted.Policy == scripted.Replay), f.checkModels(),
	}
	for section := range sections[interface{ Validate() error }](f) {
		problems = append(problems, section.Validate())
	}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(f.Dataset.Path) == 0 {
		bad("no dataset: give --dataset PATH, or --dataset bundled for the tasks that come along")
	}
	if f.Samples < 1 {
		bad("samples is %d; at least 1", f.Samples)
	}
	if strings.ContainsAny(f.Name, `/\\`) || f.Name == ".." {
		bad("name %q is a single name, without slashes; --out takes a path", f.Name)
	}
	once := func(acts bool, section, toolset string) {
		if !acts || f.NoUser || replayed(f.Twin, toolset) {
			return
		}
		if !f.Play.DurableTurns {
			bad("%s: what leaves this machine must not happen twice: say play: {durable_turns: true}, so that an episode that is resumed knows what it did", section)
		}
		if f.Tape.Replay != "" {
			bad("%s: a replay would do again what was done: leave the section out, or replay a recording of the tools (twin)", section)
		}
	}
	once(f.Home.Live(), "home", "homeassistant")
	once(f.Messages.Live(), "messages", "messaging")
	if f.Limits.Tokens > 0 && f.Model.MaxTokens >= f.Limits.Tokens {
		bad("limits.tokens is %d and model.max_tokens %d: one reply could take it all; raise the one or lower the other", f.Limits.Tokens, f.Model.MaxTokens)
	}
	if _, err := chosenTasks(f.Faults.Where); err != nil {
		bad("%w", err)
	}
	if v := VerifierOf(f.Sandbox.Verifier); v != nil {
		if err := v.Validate(); err != nil {
			bad("sandbox.verifier: %w", err)
		}
	}
	return inOrder(problems)
}

// checkModels says which models do not go together.
func (f *File) checkModels() error {
	var problems []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	m, scripted := f.Model, f.Scripted.Policy != ""
	refuse(len(m.Endpoints) > 0 && (m.BaseURL != "" || scripted), "endpoints are given together with base_url or policy, which say where the model is, too; leave one out")
	refuse(scripted && m.BaseURL != "", "both policy and base_url are given: a policy plays against the embedded server; leave one out")
	refuse(!scripted && m.Name == "" && len(f.Sweep.Model) == 0, "no model: give --model NAME (and --base-url URL), or --policy oracle to play without one")
	refuse(scripted && len(m.Fallbacks) > 0, "fallbacks are given together with policy, which always answers; leave one out")
	for i, next := range m.Fallbacks {
		refuse(next.Model == "", "fallback %d names no model", i+1)
		refuse(next.Model == m.Name && (next.BaseURL == "" || next.BaseURL == baseURL(f.Model)),
			"fallback %d is the run's own model %s", i+1, m.Name)
	}
	refuse(scripted && f.User.Model != "" && f.User.BaseURL == "", "user: the model needs base_url when a policy plays: the embedded server knows the agent's part alone")
	refuse(scripted && f.Context.SummaryModel != "" && f.Context.SummaryBaseURL == "", "summary_model needs summary_base_url when a policy plays: the embedded server knows the agent's part alone")
	refuse(scripted && f.Web.Summary.Model != "" && f.Web.Summary.BaseURL == "", "web.summary: the model needs base_url when a policy plays: the embedded server knows the agent's part alone")
	refuse(scripted && f.Media.VisionModel != "" && f.Media.VisionBaseURL == "", "media: the vision model needs vision_base_url when a policy plays: the embedded server knows the agent's part alone")
	for _, m := range f.MOA.All() {
		refuse(scripted && m.BaseURL == "" && !f.NoUser, "moa: model %s needs base_url when a policy plays: the embedded server knows the agent's part alone", m.Model)
	}
	for _, name := range f.MCP.Enabled() {
		s := f.MCP.Servers[name].Sampling
		refuse(scripted && s != nil && (s.Model == "" || s.BaseURL == ""), "mcp server %s: sampling needs model and base_url when a "+
			"policy plays: the embedded server knows the agent's part alone", name)
	}
	return errors.Join(problems...)
}

// inOrder joins errors, with their lines sorted.
func inOrder(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		lines := strings.Split(err.Error(), "\n")
		slices.Sort(lines)
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}
