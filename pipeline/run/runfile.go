package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
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

	Dataset  Dataset        `yaml:"dataset,omitempty" section:"The dataset, and which of its tasks are played"`
	Tools    Tools          `yaml:"tools,omitempty" section:"Toolsets and tools"`
	Commands Commands       `yaml:"commands,omitempty" section:"Commands that could do harm"`
	Model    model.Settings `yaml:"model,omitempty" section:"The model, and how it is asked"`
	Sweep    Sweep          `yaml:"sweep,omitempty" experiment:"given"` // settings that differ between samples
	Requests model.Patience `yaml:"requests,omitempty" section:"When the model does not answer"`
	User     User           `yaml:"user,omitempty" section:"A model that plays the user"`
	Scripted Scripted       `yaml:"scripted,omitempty" section:"Without a model"`
	Tape     Tape           `yaml:"tape,omitempty" section:"Tapes"`
	Prompts  Prompts        `yaml:"prompts,omitempty" section:"Prompts of the run"`
	Limits   Limits         `yaml:"limits,omitempty" section:"An episode's limits"`
	Play     Play           `yaml:"play,omitempty" section:"Workers, retries and the end"`
	Sandbox  Sandbox        `yaml:"sandbox,omitempty" section:"Sandboxes"`
	Budget   Budget         `yaml:"budget,omitempty" section:"Prices and budgets"`
	Context  Context        `yaml:"context,omitempty" section:"Long conversations"`

	resumed bool   // an earlier run goes on
	Scratch string // directory for tasks that are played in another order
	NoUser  bool   // check the tasks without any model, not even one that plays a user
}

// Default is the run file with every setting at its default.
func Default() File {
	return File{
		Samples:  1,
		Scripted: Scripted{Skill: 0.7},
		Requests: model.Patience{Timeout: 10 * time.Minute, Retries: 5, EpisodeRetries: 50, RetryShare: 0.2, OutageLimit: 30 * time.Minute},
		Limits:   Limits{Turns: rollout.DefaultTurns, Time: rollout.DefaultTime},
		Play:     Play{Workers: 8, EpisodeRetries: 1, MaxErrorsInRow: 20},
		Sandbox:  Sandbox{Backend: "native", Ready: 2, Network: "loopback", Memory: 1 << 30, Processes: 256, Disk: 512 << 20},
	}
}

// Validate returns all errors at once that can be found without opening anything.
func (f *File) Validate() error {
	problems := []error{
		f.checkSigns(), f.Choice().Validate(f.Dataset.MaxTasks), f.Tools.Validate(), f.Quirks().Validate(), f.checkCommandPolicy(), f.checkModel(),
		f.CheckSweep(), f.Requests.Validate(), f.checkFallbacks(), f.checkUser(), f.Scripted.Validate(), f.checkTape(), f.Limits.Validate(),
		f.Play.Validate(), f.Sandbox.Validate(), f.checkBudget(), f.checkContext(),
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
	return inOrder(problems)
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
