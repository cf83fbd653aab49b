package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Session is a Toolset with the state of one episode. Its methods may be called from many goroutines.
type Session struct {
	trace
	tools   *Toolset
	cfg     SessionConfig
	twin    Twin          // nil without
	planter Planter       // nil without
	waited  time.Duration // of the goroutine that calls CallAll

	mu     sync.Mutex // guards the fields below
	box    sandbox.Sandbox
	state  map[string]func() any
	ends   []*func() // pointers, as functions cannot be compared
	fault  *episode.Fault
	closed bool
}

// Session starts an episode with these tools.
func (t *Toolset) Session(cfg SessionConfig) *Session {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Clock == nil {
		cfg.Clock = func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{tools: t, cfg: cfg, state: map[string]func() any{}}
	s.twin, _ = Service[Twin](s)
	s.planter, _ = Service[Planter](s)
	return s
}

// Toolset is the toolset of the session.
func (s *Session) Toolset() *Toolset { return s.tools }

// Host is the session whose sandbox this one works in: itself, unless it is a subagent's.
func (s *Session) Host() *Session {
	for s.cfg.Host != nil {
		s = s.cfg.Host
	}
	return s
}

// State returns the state that a family of tools keeps for the episode under a key; init makes it at the first call. Two types
// under one key are a bug in our source.
func State[T any](s *Session, key string, init func() *T) *T {
	s.mu.Lock()
	get := s.state[key]
	if get == nil {
		get = sync.OnceValue(func() any { return init() })
		s.state[key] = get
	}
	s.mu.Unlock()
	value, ok := get().(*T)
	if !ok {
		panic(fmt.Sprintf("state %q is a %T", key, get()))
	}
	return value
}

// wait waits for what calls need and other episodes may have, such as a place among the browsers of a run.
func (s *Session) wait(ctx context.Context, calls []*prepared) {
	for _, p := range calls {
		if p.refused == nil && p.tool.Wait != nil {
			began := s.cfg.Now()
			p.tool.Wait(ctx, s)
			s.waited += s.cfg.Now().Sub(began)
		}
	}
}

// Waited is how long calls of turns have waited for what other episodes had. It must not be called during CallAll.
func (s *Session) Waited() time.Duration { return s.waited }

// OnClose runs f when the session is closed, in reverse order; at once if it is closed already. The returned function removes f, so
// that the session no longer holds it.
func (s *Session) OnClose(f func()) (forget func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.ends = append(s.ends, &f)
	}
	s.mu.Unlock()
	if closed {
		f()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.ends, &f); i >= 0 {
			s.ends = slices.Delete(s.ends, i, i+1)
		}
	}
}

// Close ends the session: it runs the functions that tools registered with OnClose, and later calls are refused. The caller closes
// the sandbox. Close is idempotent.
func (s *Session) Close() {
	s.mu.Lock()
	ends := s.ends
	s.ends, s.closed = nil, true
	s.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		err := attempt(func() error { (*end)(); return nil })
		if crashed, ok := errors.AsType[*crash](err); ok {
			s.cfg.Logger.Error("tool panicked when the session was closed", "panic", crashed.value, "stack", crashed.stack)
		}
	}
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Fault is the first fault of a call that is not the agent's doing and ends the episode: a lost sandbox or one that cannot be opened
// (sandbox_error), or a bug in a tool (tool_error). It is nil without one.
func (s *Session) Fault() *episode.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *Session) setFault(outcome episode.Outcome, class, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		message, _ = s.cfg.Secrets.mask(message)
		s.fault = &episode.Fault{Outcome: outcome, Class: class, Message: shorten(message, maxErrorText)}
	}
}

// sandbox gets the episode's sandbox.
func (s *Session) sandbox(ctx context.Context) (sandbox.Sandbox, error) {
	if s.cfg.Sandbox == nil {
		return nil, Failf("no_sandbox", "this episode has no sandbox")
	}
	if box := s.opened(); box != nil {
		return box, nil
	}
	box, err := s.cfg.Sandbox(ctx)
	if err != nil {
		// Recorded here and not at the end of the call, as a tool may hide the error. A cancelled episode is not a fault.
		if cause := context.Cause(ctx); cause == nil || cause == errDeadline {
			s.setFault(episode.SandboxError, "open", err.Error())
		}
		return nil, &unopened{err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.box = box
	return box, nil
}

// opened is the sandbox if it is open, or nil.
func (s *Session) opened() sandbox.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box
}

// unopened is the error of a sandbox that could not be opened.
type unopened struct{ cause error }

func (u *unopened) Error() string { return "open sandbox: " + u.cause.Error() }
func (u *unopened) Unwrap() error { return u.cause }
