// Package pipeline plays a dataset: it plans episodes, runs the worker pool, fills the journal and resumes.
//
// It knows neither sandboxes nor models nor file formats: it needs a Player and a Journal.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/alitto/pond/v2"

	"trajgen/distributions"
	"trajgen/pipeline/episode"
)

// Player plays one episode to its end.
type Player interface {
	// Play fills ep, which has its identity and toolsets, and gives it an outcome. It is called from many goroutines, each with
	// its own episode. An error means that the episode did not end, and is not journaled: either ctx was cancelled, or no
	// episode can be played any more. If the error has a method Halt() bool that returns true, no new episodes are started, but
	// those in play go on.
	Play(ctx context.Context, task *episode.Task, ep *episode.Episode) error
}

// Journal remembers attempts that ended. It is safe for concurrent use.
type Journal interface {
	// Last returns how an episode ended when it was last played.
	Last(id string) (Record, bool)
	// Append returns when the episode is on disk. An error stops the run.
	Append(ctx context.Context, ep *episode.Episode) error
}

// Record is what a journal knows of the last attempt of an episode.
type Record struct {
	Outcome episode.Outcome
	Attempt int
	Pending bool // another attempt was to follow at once, and is missing
	// Earlier are all attempts, this one included, if another one follows: with Pending, or with RetryErrors and an outcome that
	// is not the agent's doing.
	Earlier episode.Attempts
}

// Missing reports whether the episode is still to be played.
func (r Record) Missing(retryErrors bool) bool {
	return r.Pending || retryErrors && !r.Outcome.AgentsDoing()
}

// ErrStop wraps errors that stop the whole run.
var ErrStop = errors.New("the run cannot go on")

// Config is an experiment and how it is run.
type Config struct {
	// Tasks yields the dataset in its order. An error stops the run.
	Tasks iter.Seq2[*episode.Task, error]
	// Draw returns what an episode's toolsets are drawn from: fixed toolsets, or a distribution.
	Draw func(task *episode.Task) (Toolsets, error)

	Seed    uint64
	Samples int // plays of each task
	// Plan lists what is played of a task each time that Tasks yields it; nil plays the samples. The planner calls it, from one goroutine.
	Plan func(task string) []Planned
	Run  string // fingerprint, written into each episode

	Workers int
	// Retries is how often an episode that ended in a model, tool or sandbox error is played again at once. MaxRetries bounds the
	// retries of all episodes together; 0 sets no bound. Beyond it an error stays, and RetryErrors can play it later. Retried is
	// how many of MaxRetries earlier parts of the run used.
	Retries, MaxRetries, Retried int
	// RetryErrors plays again the episodes that the journal has with an error outcome.
	RetryErrors bool
	// MaxErrorsInRow stops the run when episodes of this many different tasks in a row ended in the same error outcome, so that a
	// single broken task does not stop it. It has no effect when all episodes have been started. Episodes in play are finished.
	// 0 never stops.
	MaxErrorsInRow int

	Player  Player
	Journal Journal
	// Room returns a channel that is closed when another episode may begin. It is called once for each episode that is missing. Optional.
	Room func() <-chan struct{}
	// Drain, when closed, ends the planning: episodes in play are finished.
	Drain <-chan struct{}
	// Observe receives each event, from many goroutines at once. Optional.
	Observe func(Event)
	Logger  *slog.Logger // nil is silent
}

// Toolsets says which toolsets an episode may use: Fixed if Distribution is nil, otherwise a draw.
type Toolsets struct {
	Fixed        []string
	Distribution *distributions.Distribution
	ByTask       bool // all samples of a task have the draw of its first
}

// Sample draws the toolsets of an episode.
func (t Toolsets) Sample(key episode.Key) distributions.Draw {
	if t.ByTask {
		key.Sample = 0
	}
	return t.Distribution.Sample(key.Rand("toolsets"))
}

// Planned is a sample to be played, or a twin of one.
type Planned struct {
	Sample int
	Twin   *episode.Twin // nil unless it is one
}

// Event is something that happened in a run.
type Event struct {
	Kind    EventKind
	Episode *episode.Episode // EpisodeFinished, EpisodeRetried: whole and journaled
	Twins   int              // TwinsPlanned: how many
}

// EventKind says what happened.
type EventKind int

// The kinds of events.
const (
	EpisodeStarted EventKind = iota
	EpisodeFinished
	EpisodeRetried
	EpisodeSkipped // the journal has it
	TwinsPlanned   // what follows is about twins
)

// Summary says what a run did.
type Summary struct {
	Planned  int // episodes of the dataset that the planning reached
	Skipped  int // planned episodes that were already in the journal
	Finished int
	Drained  bool // the planning was ended before the end of the dataset
}

// And adds what was done later.
func (s Summary) And(later Summary) Summary {
	return Summary{s.Planned + later.Planned, s.Skipped + later.Skipped, s.Finished + later.Finished, later.Drained}
}

// Run plays the missing episodes. It returns when no episode is in play any more. A cancelled ctx cancels the episodes in play,
// which are then not journaled.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Room == nil {
		room := make(chan struct{})
		close(room)
		cfg.Room = func() <-chan struct{} { return room }
	}
	if cfg.Workers < 1 || cfg.Samples < 1 {
		return Summary{}, fmt.Errorf("need at least one worker and one sample, have %d and %d", cfg.Workers, cfg.Samples)
	}
	r := &run{Config: cfg, cancel: cancel, slots: make(chan struct{}, cfg.Workers), retried: cfg.Retried}
	r.planning, r.halt = context.WithCancelCause(ctx)
	defer r.halt(nil)
	// The pool does not take the run's context: with it, Wait returns while episodes are still closing their
	// sandboxes. The slots keep its queue empty, so a submit never blocks.
	r.pool = pond.NewPool(cfg.Workers, pond.WithQueueSize(cfg.Workers))
	err := r.plan(ctx)
	r.pool.StopAndWait()
	return r.summary, cmp.Or(context.Cause(ctx), r.reason, err)
}

// run is the state of one Run.
type run struct {
	Config
	cancel   context.CancelCauseFunc
	planning context.Context // ends when no new episode is to be started
	halt     context.CancelCauseFunc
	pool     pond.Pool
	slots    chan struct{} // one for each episode in play
	summary  Summary       // the planner's, but for Finished

	mu       sync.Mutex      // guards the fields below, and summary.Finished
	retried  int             // of MaxRetries
	reason   error           // of a Player, for starting no new episodes
	boundary episode.Outcome // of the last episode
	failing  map[string]bool // tasks whose episodes have failed in a row with that outcome
}

// plan submits every episode that the journal does not hold, in dataset order.
func (r *run) plan(ctx context.Context) error {
	for task, err := range r.Tasks {
		if err != nil {
			return err
		}
		for _, key := range r.keys(task.ID) {
			record, missing := r.missing(key)
			if !missing {
				continue
			}
			ep, err := r.birth(key, task, record.Attempt+1, record.Earlier)
			if err != nil {
				return err
			}
			if going, err := r.admit(); !going {
				return err
			}
			r.pool.Submit(func() {
				defer func() { <-r.slots }()
				defer func() {
					// The pool would swallow the panic, and the episode would be missing without an error.
					if bug := recover(); bug != nil {
						r.cancel(fmt.Errorf("%w: episode %s: panic: %v", ErrStop, ep.ID, bug))
						r.Logger.Error("run panicked; please report this", "id", ep.ID, "panic", bug, "stack", string(debug.Stack()))
					}
				}()
				r.play(ctx, task, key, ep)
			})
		}
	}
	return nil
}

// born is which episode is to be played.
type born struct {
	episode.Key
	twin *episode.Twin // nil unless it is one
}

// keys are the episodes of a task.
func (r *run) keys(task string) (all []born) {
	if r.Plan == nil {
		for sample := range r.Samples {
			all = append(all, born{Key: episode.Key{Seed: r.Seed, Task: task, Sample: sample}})
		}
		return all
	}
	for _, planned := range r.Plan(task) {
		key := episode.Key{Seed: r.Seed, Task: task, Sample: planned.Sample}
		if planned.Twin != nil {
			key.Twin = planned.Twin.Name()
		}
		all = append(all, born{key, planned.Twin})
	}
	return all
}

// admit waits for a slot, and then for room. It returns false when no new episode is to be started.
func (r *run) admit() (going bool, err error) {
	select {
	case r.slots <- struct{}{}:
		select {
		case <-r.Room():
		case <-r.planning.Done():
		case <-r.Drain:
		}
		// select picks at random if a slot and an end are ready together.
		if r.planning.Err() == nil && !r.drained() {
			return true, nil
		}
		<-r.slots
	case <-r.planning.Done():
	case <-r.Drain:
	}
	r.summary.Drained = r.planning.Err() == nil
	return false, context.Cause(r.planning)
}

// drained reports whether Drain is closed.
func (r *run) drained() bool {
	select {
	case <-r.Drain:
		return true
	default:
		return false
	}
}

// missing reports whether an episode is to be played, and returns its record in the journal.
func (r *run) missing(key born) (record Record, missing bool) {
	record, played := r.Journal.Last(key.ID())
	missing = !played || record.Missing(r.RetryErrors)
	r.summary.Planned++
	if !missing {
		r.summary.Skipped++
		r.Observe(Event{Kind: EpisodeSkipped})
	}
	return record, missing
}

// birth makes an attempt at an episode: its identity and toolsets.
func (r *run) birth(key born, task *episode.Task, attempt int, earlier episode.Attempts) (*episode.Episode, error) {
	ep := &episode.Episode{Schema: episode.SchemaVersion, ID: key.ID(), Key: key.Key, Row: task.Row, Run: r.Run, Attempt: attempt, Earlier: earlier}
	if key.twin != nil {
		twin := *key.twin
		ep.Twin = &twin
	}
	toolsets, err := r.Draw(task)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", task.ID, err)
	}
	if toolsets.Distribution == nil {
		ep.Toolsets = toolsets.Fixed
		return ep, nil
	}
	draw := toolsets.Sample(key.Key)
	ep.Distribution = toolsets.Distribution.Name
	ep.Toolsets, ep.LogP = draw.Toolsets, draw.LogP
	return ep, nil
}

// play plays an episode, retries it after an error that may pass, and journals each attempt.
func (r *run) play(ctx context.Context, task *episode.Task, key born, first *episode.Episode) {
	r.Observe(Event{Kind: EpisodeStarted, Episode: first})
	for ep := first; ; {
		if err := r.attempt(ctx, task, ep); err != nil {
			var halting interface{ Halt() bool }
			switch {
			case ctx.Err() != nil: // cancelled: not journaled, played on resume
			case errors.As(err, &halting) && halting.Halt():
				r.mu.Lock()
				r.reason = cmp.Or(r.reason, err)
				r.mu.Unlock()
				r.halt(err)
			default:
				r.cancel(fmt.Errorf("%w: %w", ErrStop, err))
			}
			return
		}
		ep.Pending = r.again(ep, ep == first)
		// The attempt is paid for: it is written even while the run is being cancelled.
		if err := r.Journal.Append(context.WithoutCancel(ctx), ep); err != nil {
			r.cancel(fmt.Errorf("journal episode %s: %w", ep.ID, err))
			return
		}
		if !ep.Pending {
			r.Observe(Event{Kind: EpisodeFinished, Episode: ep})
			r.finished(ep)
			return
		}
		r.Observe(Event{Kind: EpisodeRetried, Episode: ep})
		next, err := r.birth(key, task, ep.Attempt+1, append(slices.Clone(ep.Earlier), ep.Ended()))
		if err != nil {
			r.cancel(err)
			return
		}
		ep = next
	}
}

// again reports whether an episode is played again at once, and takes a retry for that. An attempt that could not continue from
// its record takes none; only the first attempt can have a record.
func (r *run) again(ep *episode.Episode, first bool) bool {
	if ep.Outcome == episode.Cancelled {
		return first
	}
	if !mayPass(ep) || ep.Earlier.Tries() >= r.Retries {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.MaxRetries > 0 && r.retried >= r.MaxRetries {
		return false
	}
	r.retried++
	return true
}

// attempt plays once. It turns a panic, which is a bug of trajgen, into a fault of the episode, and the run goes on.
func (r *run) attempt(ctx context.Context, task *episode.Task, ep *episode.Episode) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			r.Logger.Error("episode panicked; please report this", "id", ep.ID, "panic", bug, "stack", string(debug.Stack()))
			ep.Outcome, ep.Stop, ep.Reward, ep.Rewards = episode.ToolError, episode.StopFault, nil, nil
			ep.Fault = &episode.Fault{Outcome: episode.ToolError, Class: "panic", Message: fmt.Sprint(bug)}
		}
	}()
	return r.Player.Play(ctx, task, ep)
}

// lasting are the classes of faults that a retry would meet again; those of a user's model have a prefix.
var lasting = []string{
	"bad_request", "content_policy", "context_overflow", "files", "no_tools", "no_user_model", "reply_too_large",
	"build", "request_too_large", "setup", "toolset", "user",
}

// mayPass reports whether a retry could end otherwise. A verifier that breaks would break again.
func mayPass(ep *episode.Episode) bool {
	if ep.Outcome.AgentsDoing() || ep.Outcome == episode.VerifierError {
		return false
	}
	return ep.Fault == nil || !slices.Contains(lasting, strings.TrimPrefix(ep.Fault.Class, "user_"))
}

// finished counts the episode, and ends the planning when MaxErrorsInRow is reached.
func (r *run) finished(ep *episode.Episode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summary.Finished++
	if ep.Twin != nil && ep.Outcome == episode.Cancelled { // it could not follow its clean episode: that says nothing about the machine
		return
	}
	if r.failing == nil || ep.Outcome != r.boundary {
		r.boundary, r.failing = ep.Outcome, map[string]bool{}
	}
	if ep.Outcome.AgentsDoing() {
		return
	}
	r.failing[ep.Key.Task] = true
	if r.MaxErrorsInRow > 0 && len(r.failing) >= r.MaxErrorsInRow { // no error of a run that has started all episodes
		r.halt(fmt.Errorf("%w: episodes of %d tasks in a row ended in %s, the last with %s", ErrStop, len(r.failing), ep.Outcome, describe(ep.Fault)))
	}
}

func describe(fault *episode.Fault) string {
	if fault == nil {
		return "no fault recorded"
	}
	return fault.Class + ": " + fault.Message
}
