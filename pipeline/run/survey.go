package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/pipeline/rollout"
	"trajgen/sandbox"
)

// tasks are the tasks of the dataset that are played, and the survey's findings.
type tasks struct {
	*opened
	learn    func(*episode.Task) // teaches the scripted server a task; nil without a policy
	Tasks    int
	Provable int // tasks with a reference solution and a verifier
	draws    *draws
	image    string // the first image that a task wants
	rows     int    // that the tasks lie in
	badRows  int
	unjudged int    // tasks without a verifier
	repeated int    // tasks with the id of an earlier one
	repeats  string // the first such id
	widened  int    // tasks that open a network wider than the run's
	built    bool   // some task has a Dockerfile
	surveyed bool
	scorers  map[string]bool // the digests of the scorers of checks
	steps    []datasets.Step // how many tasks each step of the choice left
	left     map[string]bool // tasks that are not played, with skip_bad_rows
}

func (t *tasks) openDataset(context.Context) error {
	source, mapping, err := t.File.Dataset.Open(datasets.Options{
		SkipBadRows: t.File.Dataset.SkipBadRows, OnSkip: t.skipped, OnRepeat: t.repeat, OnChosen: t.chosen, Choice: t.File.Dataset.Choice(t.File.Seed, t.File.Scratch),
	})
	t.Source, t.parts.Mapping = source, mapping
	return err
}

// skipped reports broken rows, each once, as the dataset is read again when it is played.
func (t *tasks) skipped(bad *datasets.RowError) {
	if !t.surveyed {
		t.skip(bad)
	}
}

// skip reports a row that is not played.
func (t *tasks) skip(err error) {
	const most = 20
	// Lines are held in memory until the run directory exists, so their number is bounded.
	if t.badRows++; t.badRows <= 1000 {
		t.Logger.Warn("row skipped", "error", err.Error())
	}
	switch {
	case t.badRows <= most:
		fmt.Fprintf(t.warnings, "skipped: %s\n", err)
	case t.badRows == most+1:
		fmt.Fprintln(t.warnings, "further broken rows are in log.jsonl, up to a thousand")
	}
}

// repeat counts tasks with the id of an earlier task, each once.
func (t *tasks) repeat(id string) {
	if !t.surveyed {
		t.repeated++
		t.repeats = cmp.Or(t.repeats, id)
	}
}

// Playable yields the tasks that passed the survey.
func (t *tasks) Playable(tasks iter.Seq2[*episode.Task, error]) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		for task, err := range tasks {
			if err == nil && t.left[task.ID] {
				continue
			}
			if !yield(task, err) {
				return
			}
		}
	}
}

// survey reads the dataset once before the first model call: it counts the tasks, checks their requirements, and teaches the
// scripted server their solutions. The digest is computed at the same time.
func (t *tasks) survey(ctx context.Context) error {
	digesting, cancel := context.WithCancel(ctx)
	var sum string
	var digested errgroup.Group
	digested.Go(func() (err error) {
		sum, err = t.Source.Digest(digesting)
		return err
	})
	problems, err := t.look(ctx)
	if err != nil {
		cancel()
	}
	failed := digested.Wait()
	cancel()
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	t.parts.Dataset = sum
	t.surveyed = true
	t.tellChosen()
	if t.Tasks == 0 && len(problems) == 0 {
		return fmt.Errorf("dataset %s has no task that can be played here", t.File.Dataset.Path)
	}
	for _, file := range t.Source.About().Files {
		if file.Guessed {
			fmt.Fprintf(t.warnings, "%s is read as %s: that shows in its content, not in its name\n", file.Path, file.Format)
			break
		}
	}
	if t.repeated > 0 {
		fmt.Fprintf(t.warnings, "%d tasks have the id of an earlier one, such as %s: they are played under ids of their own (%s#2)\n", t.repeated, t.repeats, t.repeats)
	}
	if t.unjudged > 0 {
		fmt.Fprintf(t.warnings, "%d of %d tasks have no verifier: their episodes get no reward\n", t.unjudged, t.Tasks)
	}
	if t.widened > 0 {
		fmt.Fprintf(t.warnings, "%d of %d tasks open the network further than the run's %s: --where 'network != \"full\"' leaves out those that open all of it\n", t.widened, t.Tasks, t.File.Sandbox.Network)
	}
	t.parts.Tasks, t.parts.Scorers = t.draws.ofTasks(), strings.Join(slices.Sorted(maps.Keys(t.scorers)), ", ")
	return errors.Join(append(problems, t.draws.bare())...)
}

// look reads the tasks for the survey, and returns the error of the first that cannot be played.
func (t *tasks) look(ctx context.Context) (problems []error, err error) {
	const most = 20
	for task, err := range t.Source.InOrder(ctx) {
		if err != nil {
			return nil, err
		}
		if err := t.suits(task); err != nil {
			err = fmt.Errorf("task %s (row %d): %w", task.ID, task.Row+1, err)
			if t.File.Dataset.SkipBadRows {
				t.left[task.ID] = true
				t.skip(err)
			} else if len(problems) < most {
				problems = append(problems, err)
			}
			continue
		}
		t.Tasks++
		t.rows = max(t.rows, task.Row+1)
		t.draws.countBare(task)
		if len(task.Verify) == 0 {
			t.unjudged++
		} else if len(task.Gold) > 0 {
			t.Provable++
		}
		for _, check := range task.Verify {
			if check.Python != "" {
				t.scorers[digest(check.Python, check.Tests[check.Python])] = true
			}
		}
		if reach[task.Network] > reach[t.File.Sandbox.Network] {
			t.widened++
		}
		if t.built = t.built || len(task.Builds()) > 0; task.Build == nil {
			t.image = cmp.Or(t.image, task.Image, t.File.Sandbox.Image)
		}
		if t.learn != nil {
			t.learn(task)
		}
	}
	return problems, nil
}

// reach orders the networks that go beyond the sandbox.
var reach = map[string]int{string(sandbox.NetworkAllowlist): 1, string(sandbox.NetworkFull): 2}

// tryImage opens a sandbox with the first image that a task wants: if that fails, most of the run would fail. Other images are
// fetched when their tasks are played.
func (t *tasks) tryImage(ctx context.Context) error {
	if t.image == "" {
		return nil
	}
	const patience = 2 * time.Second
	slow := time.AfterFunc(patience, func() { fmt.Fprintf(t.warnings, "preparing image %s\n", t.image) })
	defer slow.Stop()
	sb, err := t.Backend.Open(ctx, sandbox.Spec{ID: "try-image", Image: t.image, Limits: t.File.Sandbox.Limits()})
	switch {
	case err == nil:
		return sb.Close()
	case t.File.Dataset.SkipBadRows && ctx.Err() == nil:
		fmt.Fprintf(t.warnings, "the first image that is wanted: %s\n", err)
		return nil
	}
	return err
}

// suits says why a task cannot be played here.
func (t *tasks) suits(task *episode.Task) error {
	var problems []error
	if len(task.Toolsets) > 0 {
		problems = append(problems, t.draws.hasTools(task.Toolsets))
	}
	if task.Distribution != "" {
		_, err := t.draws.distribution(task.Distribution)
		problems = append(problems, err)
	}
	for _, check := range task.Verify {
		if _, err := reward.Kind(check); err != nil {
			problems = append(problems, err)
		}
		if check.Reward == "file" {
			problems = append(problems, t.hasRoot())
		}
		problems = append(problems, t.hasVerifier(task, check.Verifier))
	}
	problems = append(problems, t.hasVerifier(task, cmp.Or(task.Verifier, VerifierOf(t.File.Sandbox.Verifier))))
	if !t.File.Model.Vision && slices.ContainsFunc(task.Prompt, func(m episode.Message) bool { return len(m.Images()) > 0 }) {
		problems = append(problems, errors.New("prompt: it has images, and the model is not said to take any (model: {vision: true}, or --vision)"))
	}
	if task.User != nil && task.User.Model && t.File.User.Model == "" && !t.File.NoUser {
		problems = append(problems, errors.New("user: it wants a model for its user, and the run file names none (user: {model: NAME})"))
	}
	for _, name := range task.MCP {
		if have := t.File.MCP.Enabled(); !slices.Contains(have, name) {
			problems = append(problems, fmt.Errorf("mcp: the run file declares no server %q (have %v)", name, have))
		}
	}
	if len(task.Servers) > 0 {
		_, err := t.File.MCP.OfTask(task.Servers)
		problems = append(problems, err)
	}
	if _, err := t.File.Cron.View(task); err != nil {
		problems = append(problems, err)
	}
	if len(task.Builds()) > 0 {
		problems = append(problems, t.canBuild())
	}
	if task.Cwd != "" {
		problems = append(problems, t.hasWorkdir(task))
	}
	if len(task.Env) > 0 {
		problems = append(problems, checkEnv(task.Env))
	}
	spec := rollout.SpecOf(task, t.File.Sandbox.Spec())
	problems = append(problems, sandbox.CheckAllow(task.Allow), sandbox.CheckServices(spec.Services, spec.Hosts))
	if asks := task.Network != "" || task.Image != "" || task.Root != "" || len(task.Services) > 0; asks && t.opening() == nil { // else another check reports that
		problems = append(problems, t.offers(spec))
	}
	return errors.Join(problems...)
}

// hasVerifier says why a verifier cannot have the sandbox that it wants.
func (t *tasks) hasVerifier(task *episode.Task, v *episode.Verifier) error {
	if v == nil || t.opening() != nil { // what another check reports
		return nil
	}
	problems := []error{sandbox.CheckAllow(v.Allow), t.offers(sandbox.Spec{Network: sandbox.Network(v.Network), Image: v.Image, Allow: v.Allow})}
	if g := t.Backend.Guarantees(); v.Own() && !v.Elsewhere() && !g.Snapshots {
		problems = append(problems, lacking(fmt.Errorf("the %s sandbox cannot fork: say nothing but sandbox: same, or choose one that can, such as native or docker, with --sandbox", g.Backend), g))
	}
	if len(task.Services) > 0 && v.Network != "" && !v.Elsewhere() {
		problems = append(problems, fmt.Errorf("network %q: a task with services has one network for all: leave it out, or name an image for a verifier that reaches no service", v.Network))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("verifier: %w", err)
	}
	return nil
}

// hasWorkdir says why a task cannot have its working directory.
func (t *tasks) hasWorkdir(task *episode.Task) error {
	if !path.IsAbs(task.Cwd) {
		return fmt.Errorf("cwd %q is not an absolute path", task.Cwd)
	}
	if t.opening() != nil {
		return nil // another check reports that
	}
	if placer, ok := t.Backend.Backend.(sandbox.Placer); ok {
		spec := rollout.SpecOf(task, t.File.Sandbox.Spec())
		if err := placer.CheckWorkdir(task.Cwd, task.Build != nil || spec.Image != "" || spec.Writable); err != nil {
			return fmt.Errorf("cwd: %w", err)
		}
	}
	return nil
}

func checkEnv(env map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !sandbox.IsVariable(name) {
			problems = append(problems, fmt.Errorf("env: %q is not a name of a variable", name))
		}
	}
	return errors.Join(problems...)
}

// hasRoot says why a check that reads files at the root of the file system cannot run: the root is the machine's own.
func (t *tasks) hasRoot() error {
	if t.opening() != nil {
		return nil // another check reports that
	}
	g := t.Backend.Guarantees()
	if g.Isolation["files"] == "own" {
		return nil
	}
	return lacking(fmt.Errorf("verify: its reward lies in %s, and the %s sandbox at level %s has no root of its own for that: choose one that has, such as native or docker, with --sandbox", reward.Verdicts, g.Backend, g.Level), g)
}
