// Package toolbench measures tools alone, without a model: each call in a fresh sandbox, through the whole dispatch.
package toolbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Options say what is measured.
type Options struct {
	From, Script string // a run directory, or a file of tests; neither to generate calls
	Toolsets     []string
	Calls        int // of each tool of a run
	Repeat       int // plays of each call
	Workers      []int
	Backends     []string
	Ledger       string // folder; "" for none
	Night        string // as in the ledger
}

// Case is a call in a state.
type Case struct {
	ID     string
	Tool   string
	Task   *episode.Task      // whose sandbox it is; nil for none
	Files  map[string]string  // put into the working directory
	Before []registry.Request // that are made first
	Call   registry.Request
	Want   Want
}

// Play is one call as it came out.
type Play struct {
	Case    int
	Backend string
	Workers int
	Call    episode.ToolCall
	Wrong   []string // what was not as expected
}

// Bench plays cases with the tools of a source.
type Bench struct {
	Options
	Source *desk.Source // whose backend is taken where the options name none
}

// Run plays every case as often as asked, with every backend and number of workers.
func (b *Bench) Run(ctx context.Context) (*Report, error) {
	if b.Repeat < 1 || b.Calls < 1 || len(b.Workers) == 0 || slices.Min(b.Workers) < 1 {
		return nil, run.AsMistake(errors.New("--repeat, --calls and --workers want numbers from 1"))
	}
	report := &Report{Night: b.Night, Calls: cmp.Or(b.Script, b.From, "generated"), Failed: []Failed{}, Backends: []Unlike{}, Alarms: []Alarm{}}
	backends := b.Backends
	if len(backends) == 0 {
		backends = []string{""}
	}
	for _, backend := range backends {
		if err := b.backend(ctx, backend, report); err != nil {
			return nil, err
		}
	}
	report.tally(b.Repeat)
	if b.Ledger == "" {
		return report, nil
	}
	return report, report.remember(ctx, b.Ledger)
}

// backend plays with one backend, "" for that of the source.
func (b *Bench) backend(ctx context.Context, name string, report *Report) (err error) {
	source := *b.Source
	if name != "" {
		source.Sandbox.Name, source.Sandbox.Settings = name, b.settings(name)
		source.Given = func(flag string) bool { return flag == "sandbox" || b.Source.Given(flag) }
	}
	box, err := source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if _, err := box.Backend(); err != nil { // at the first call, which must be alone
		return run.AsMistake(err)
	}
	toolset, err := desk.Options{Toolsets: b.Toolsets}.Selected(box)
	if err != nil {
		return err
	}
	if report.cases == nil {
		report.describe(toolset)
		if report.cases, err = b.cases(ctx, toolset); err != nil {
			return run.AsMistake(err)
		}
	}
	for _, workers := range b.Workers {
		plays, err := b.load(ctx, box, report.cases, workers)
		if err != nil {
			return fmt.Errorf("tools with %s: %w", box.Choice.Name, err)
		}
		report.plays = append(report.plays, plays...)
	}
	return nil
}

// settings are those that a backend has, of what is given for all of them. What none of them has is left for its error.
func (b *Bench) settings(of string) map[string]string {
	has := func(backend, setting string) bool {
		return slices.ContainsFunc(sandbox.Kinds()[backend].Settings, func(s sandbox.Setting) bool { return s.Name == setting })
	}
	own := maps.Clone(b.Source.Sandbox.Settings)
	maps.DeleteFunc(own, func(setting, _ string) bool {
		return !has(of, setting) && slices.ContainsFunc(b.Backends, func(other string) bool { return has(other, setting) })
	})
	return own
}

func (b *Bench) cases(ctx context.Context, toolset *registry.Toolset) (cases []Case, err error) {
	switch {
	case b.Script != "":
		cases, err = fromScript(b.Script)
	case b.From != "":
		cases, err = fromRun(ctx, b.From, toolset, b.Calls)
	default:
		cases, err = generated(toolset)
	}
	if err == nil && len(cases) == 0 {
		err = errors.New("nothing to call: want a run with calls of these tools, a script with tests, or other --toolsets")
	}
	return cases, err
}

// load plays the cases with so many workers, and returns the plays in the order of cases.
func (b *Bench) load(ctx context.Context, box *desk.Toolbox, cases []Case, workers int) ([]Play, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	plays := make([]Play, len(cases)*b.Repeat)
	next := make(chan int)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for n := range next {
				play, err := b.play(ctx, box, &cases[n/b.Repeat], fmt.Sprintf("bench-%d-%d-%d", os.Getpid(), workers, n))
				if err != nil {
					cancel(fmt.Errorf("%s: %w", cases[n/b.Repeat].ID, err))
				}
				play.Case, play.Backend, play.Workers = n/b.Repeat, box.Choice.Name, workers
				plays[n] = play
			}
		})
	}
	for n := range plays {
		select {
		case next <- n:
		case <-ctx.Done():
		}
	}
	close(next)
	working.Wait()
	return plays, context.Cause(ctx)
}

// play makes one call in a sandbox of its own.
func (b *Bench) play(ctx context.Context, box *desk.Toolbox, c *Case, id string) (play Play, err error) {
	options := desk.Options{Toolsets: b.Toolsets, Task: c.Task, Warn: func(line string) { b.Source.Logger.Warn(line) }}
	options.Skills = strings.HasPrefix(c.Tool, "skill")
	d, err := options.Open(ctx, box, id, run.CallerPolicy(box.File.Commands.Policy, box.Choice.Name))
	if err != nil {
		return play, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var files []sandbox.FileWrite
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		files = append(files, sandbox.FileWrite{Path: path, Data: []byte(c.Files[path])})
	}
	if err := d.Sandbox.Files().Write(ctx, files...); err != nil {
		return play, fmt.Errorf("write the files of the test: %w", err)
	}
	for _, request := range c.Before {
		d.Session.Call(ctx, request)
	}
	play.Call = d.Session.Call(ctx, c.Call)
	play.Wrong = c.Want.check(ctx, &play.Call, d.Sandbox.Files())
	if fault := d.Session.Fault(); fault != nil {
		play.Wrong = append(play.Wrong, fmt.Sprintf("fault %s: %s", fault.Class, fault.Message))
	}
	return play, ctx.Err()
}
