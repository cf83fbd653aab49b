package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// offers says what of a task's wishes the sandbox cannot fulfil. Where there is none, that is said elsewhere.
func (e *Experiment) offers(network, image string, allow ...string) error {
	if e.opening.wait() != nil {
		return nil
	}
	return e.offeredBy(e.Backend, network, image, allow...)
}

// offeredBy is offers of the wishes of a task, or the run's own.
func (e *Experiment) offeredBy(backend *OpenBackend, network, image string, allow ...string) error {
	if network == string(sandbox.NetworkAllowlist) && len(e.File.Sandbox.Allow)+len(allow) == 0 {
		return errors.New("network allowlist allows nothing: give --allow, such as --allow example.org")
	}
	return backend.Offers(sandbox.Network(network), image)
}

// skipped reports broken rows, each once: the dataset is read again when it is played.
func (e *Experiment) skipped() func(*datasets.RowError) {
	return func(bad *datasets.RowError) {
		if !e.surveyed {
			e.skip(bad)
		}
	}
}

// skip reports a row that is not played.
func (e *Experiment) skip(err error) {
	const most = 20
	// Lines are held in memory until the run directory is there, so there must not be millions.
	if e.badRows++; e.badRows <= 1000 {
		e.Logger.Warn("row skipped", "error", err.Error())
	}
	switch {
	case e.badRows <= most:
		fmt.Fprintf(e.warnings, "skipped: %s\n", err)
	case e.badRows == most+1:
		fmt.Fprintln(e.warnings, "further broken rows are in log.jsonl, up to a thousand")
	}
}

// repeat counts tasks whose ids are there before, each once.
func (e *Experiment) repeat(id string) {
	if !e.surveyed {
		e.repeated++
		e.repeats = cmp.Or(e.repeats, id)
	}
}

// survey reads the dataset once before anything is paid for: it counts the tasks, checks what they ask for, and
// teaches the scripted server their solutions. The digest is taken meanwhile.
func (e *Experiment) survey(ctx context.Context) error {
	digesting, cancel := context.WithCancel(ctx)
	var sum string
	var digested errgroup.Group
	digested.Go(func() (err error) {
		sum, err = e.Source.Digest(digesting)
		return err
	})
	problems, err := e.look(ctx)
	if err != nil {
		cancel()
	}
	failed := digested.Wait()
	cancel()
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	e.parts.Dataset = sum
	e.surveyed = true
	e.tellChosen()
	if e.Tasks == 0 && len(problems) == 0 {
		return fmt.Errorf("dataset %s has no task that can be played here", e.File.Dataset.Path)
	}
	for _, file := range e.Source.About().Files {
		if file.Guessed {
			fmt.Fprintf(e.warnings, "%s is read as %s: that shows in its content, not in its name\n", file.Path, file.Format)
			break
		}
	}
	if e.repeated > 0 {
		fmt.Fprintf(e.warnings, "%d tasks have the id of an earlier one, such as %s: they are played under ids of their own (%s#2)\n", e.repeated, e.repeats, e.repeats)
	}
	if e.unjudged > 0 {
		fmt.Fprintf(e.warnings, "%d of %d tasks have no verifier: their episodes get no reward\n", e.unjudged, e.Tasks)
	}
	if e.widened > 0 {
		fmt.Fprintf(e.warnings, "%d of %d tasks open the network further than the run's %s: --where 'network != \"full\"' leaves out those that open all of it\n", e.widened, e.Tasks, e.File.Sandbox.Network)
	}
	for _, name := range slices.Sorted(maps.Keys(e.draws)) {
		if name != e.File.Tools.Distribution {
			e.parts.Tasks = strings.TrimSpace(e.parts.Tasks + " " + drawDigest(e.draws[name].Distribution))
		}
	}
	return errors.Join(append(problems, e.bare())...)
}

// look reads the tasks for the survey, and returns what is wrong with the first that cannot be played.
func (e *Experiment) look(ctx context.Context) (problems []error, err error) {
	const most = 20
	for task, err := range e.Source.InOrder(ctx) {
		if err := cmp.Or(e.opening.failed(), err); err != nil {
			return nil, err
		}
		if err := e.suits(ctx, task); err != nil {
			err = fmt.Errorf("task %s (row %d): %w", task.ID, task.Row+1, err)
			if e.File.Dataset.SkipBadRows {
				e.left[task.ID] = true
				e.skip(err)
			} else if len(problems) < most {
				problems = append(problems, err)
			}
			continue
		}
		e.Tasks++
		e.countBare(task)
		if len(task.Verify) == 0 {
			e.unjudged++
		}
		if e.widens(task.Network) {
			e.widened++
		}
		e.image = cmp.Or(e.image, task.Image, e.File.Sandbox.Image)
		if e.server != nil {
			e.server.Learn(task)
		}
	}
	return problems, nil
}

// widens says whether a task's network reaches beyond the sandbox, and further than the run's own.
func (e *Experiment) widens(network string) bool {
	return reach[network] > reach[e.File.Sandbox.Network]
}

// reach orders the networks that go beyond the sandbox.
var reach = map[string]int{string(sandbox.NetworkAllowlist): 1, string(sandbox.NetworkFull): 2}

// tryImage opens a sandbox of the first image that is wanted: where that fails, most of the run would. The others are
// fetched when they are played.
func (e *Experiment) tryImage(ctx context.Context) error {
	if e.image == "" {
		return nil
	}
	const patience = 2 * time.Second
	slow := time.AfterFunc(patience, func() { fmt.Fprintf(e.warnings, "preparing image %s\n", e.image) })
	defer slow.Stop()
	sb, err := e.Backend.Open(ctx, sandbox.Spec{ID: "try-image", Image: e.image, Limits: e.File.Sandbox.Limits()})
	switch {
	case err == nil:
		return sb.Close()
	case e.File.Dataset.SkipBadRows && ctx.Err() == nil:
		fmt.Fprintf(e.warnings, "the first image that is wanted: %s\n", err)
		return nil
	}
	return err
}

// suits says why a task cannot be played here.
func (e *Experiment) suits(ctx context.Context, task *episode.Task) error {
	var problems []error
	if len(task.Toolsets) > 0 {
		problems = append(problems, e.hasTools(ctx, task.Toolsets))
	}
	if task.Distribution != "" {
		_, err := e.distribution(ctx, task.Distribution)
		problems = append(problems, err)
	}
	for _, check := range task.Verify {
		if _, err := reward.Kind(check); err != nil {
			problems = append(problems, err)
		}
		if check.Reward == "file" {
			problems = append(problems, e.hasRoot())
		}
	}
	if task.User != nil && task.User.Model && e.user == nil && !e.File.NoUser {
		problems = append(problems, errors.New("user: it wants a model for its user, and the run file names none (user_model)"))
	}
	if task.Cwd != "" {
		problems = append(problems, e.hasWorkdir(task))
	}
	if len(task.Env) > 0 {
		problems = append(problems, checkEnv(task.Env))
	}
	if task.Network != "" || task.Image != "" || len(task.Allow) > 0 {
		problems = append(problems, sandbox.CheckAllow(task.Allow), e.offers(task.Network, task.Image, task.Allow...))
	}
	return errors.Join(problems...)
}

// hasWorkdir says why a task cannot work where it wants to.
func (e *Experiment) hasWorkdir(task *episode.Task) error {
	if !path.IsAbs(task.Cwd) {
		return fmt.Errorf("cwd %q is not an absolute path", task.Cwd)
	}
	if e.opening.wait() != nil {
		return nil // which is said elsewhere
	}
	if placer, ok := e.Backend.Backend.(sandbox.Placer); ok {
		if err := placer.CheckWorkdir(task.Cwd, cmp.Or(task.Image, e.File.Sandbox.Image) != ""); err != nil {
			return fmt.Errorf("cwd: %w", err)
		}
	}
	return nil
}

func checkEnv(env map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envName.MatchString(name) {
			problems = append(problems, fmt.Errorf("env: %q is no name of a variable", name))
		}
	}
	return errors.Join(problems...)
}

// hasRoot says why a check that reads files at the root of the file system cannot be run: that root is the machine's own.
func (e *Experiment) hasRoot() error {
	if e.opening.wait() != nil {
		return nil // which is said elsewhere
	}
	g := e.Backend.Guarantees()
	if g.Isolation["files"] == "own" {
		return nil
	}
	return lacking(fmt.Errorf("verify: its reward lies in %s, and the %s sandbox at level %s has no root of its own for that: choose one that has, such as native or docker, with --sandbox", reward.Verdicts, g.Backend, g.Level), g)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
