package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"trajgen/registry"
	"trajgen/sandbox"
)

// live is a plugin in one session.
type live struct {
	plugin *plugin
	logger *slog.Logger
	// turn is held by a call of a plugin that is not concurrent, and starting by the goroutine that starts the process.
	turn, starting *semaphore.Weighted
	last           atomic.Int64 // id of the last request

	mu      sync.Mutex // guards the rest
	closed  bool
	current *process
	box     sandbox.Sandbox // of a plugin on the runner
	watched sync.WaitGroup
	end     context.CancelFunc // ends the watching of processes
	ending  context.Context
}

func newLive(p *plugin, logger *slog.Logger) *live {
	l := &live{plugin: p, logger: logger.With("plugin", p.cfg.Name), turn: semaphore.NewWeighted(1), starting: semaphore.NewWeighted(1)}
	// Not a call's context: the process outlives the call.
	l.ending, l.end = context.WithCancel(context.Background())
	return l
}

// of returns the plugin's state in a session.
func (p *plugin) of(s *registry.Session, logger *slog.Logger) *live {
	return registry.State(s, "plugin."+p.cfg.Name, func() *live {
		l := newLive(p, logger)
		s.OnClose(l.close)
		return l
	})
}

// call makes one call, and never repeats it.
func (p *plugin) call(ctx context.Context, env *registry.Env, tool string, arguments json.RawMessage) (any, error) {
	l := p.of(env.Session, env.Logger)
	if p.runner == nil {
		defer env.InSandbox()()
	}
	answer, err := l.ask(ctx, l.opener(env.Sandbox), request{Method: "call", Tool: tool, Arguments: arguments, CallID: env.CallID})
	if err != nil {
		return nil, err
	}
	result, err := answer.result()
	if err == nil {
		return result, nil
	}
	if failure, ok := errors.AsType[*registry.Failure](err); ok {
		return nil, failure
	}
	return nil, registry.Failf("plugin_protocol", "plugin %s: %s", p.cfg.Name, err)
}

type opener func(ctx context.Context) (sandbox.Sandbox, error)

// opener opens where the plugin runs: in a sandbox, or on the runner.
func (l *live) opener(inSandbox opener) opener {
	if l.plugin.runner != nil {
		return l.openBox
	}
	return inSandbox
}

// ask sends a request to the process, which it starts if there is none. An error is a *registry.Failure, the context's cause,
// or means that the sandbox is lost.
func (l *live) ask(ctx context.Context, open opener, req request) (reply, error) {
	if !l.plugin.concurrent {
		if err := l.turn.Acquire(ctx, 1); err != nil {
			return reply{}, err
		}
		defer l.turn.Release(1)
	}
	for range maxStarts {
		run, err := l.process(ctx, open)
		if err != nil {
			return reply{}, err
		}
		req.ID = l.last.Add(1)
		got, err := run.exchange(ctx, req)
		switch {
		case err == nil:
			return got, nil
		case errors.Is(err, errRetired):
			continue
		case ctx.Err() != nil:
			l.logger.Warn("plugin was given up", "tool", req.Tool, "cause", context.Cause(ctx))
			return reply{}, ctx.Err()
		}
		l.logger.Warn("plugin failed", "tool", req.Tool, "error", err.Error(), "stderr", l.plugin.log(run))
		if l.plugin.runner == nil && errors.Is(err, sandbox.ErrGone) {
			return reply{}, err
		}
		class := "plugin_failed"
		if wrong, ok := errors.AsType[*trouble](err); ok {
			class = wrong.class
		}
		return reply{}, registry.Failf(class, "plugin %s: %s; it is started anew for the next call", l.plugin.cfg.Name, err)
	}
	l.logger.Warn("plugin ends as soon as it starts", "tool", req.Tool, "starts", maxStarts)
	return reply{}, registry.Failf("plugin_crashed", "plugin %s: it ended %d times before it could be asked; it is started anew for "+
		"the next call", l.plugin.cfg.Name, maxStarts)
}

// maxStarts is how many processes may end before a call was sent to one, until the call gives up.
const maxStarts = 3

// process returns the process that takes requests, and starts it when there is none.
func (l *live) process(ctx context.Context, open opener) (*process, error) {
	if run := l.running(); run != nil {
		return run, nil
	}
	if err := l.starting.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.starting.Release(1)
	if run := l.running(); run != nil {
		return run, nil
	}
	box, err := open(ctx)
	if err != nil {
		return nil, err
	}
	run, err := l.plugin.start(ctx, box)
	if err != nil {
		return nil, l.notStarted(ctx, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		run.Kill(ctx)
		return nil, errClosed
	}
	l.current = run
	l.watched.Go(func() { run.Watch(l.ending) })
	l.watched.Go(func() { run.guard(l.ending) })
	return run, nil
}

// notStarted makes the failure for a process that could not be started.
func (l *live) notStarted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.plugin.runner == nil && errors.Is(err, sandbox.ErrGone):
		return err
	}
	l.logger.Warn("plugin did not start", "error", err.Error())
	failure := registry.Failf("plugin_start", "plugin %s cannot start: %s", l.plugin.cfg.Name, err)
	if errors.Is(err, sandbox.ErrNotFound) {
		failure.Message = fmt.Sprintf("plugin %s cannot start: %s is not there, or the interpreter that its first line names",
			l.plugin.cfg.Name, l.plugin.cfg.Command[0])
	}
	// In its sandbox, the agent may be the cause: it filled the disk, or removed the program.
	failure.Broken = l.plugin.runner != nil
	return failure
}

func (l *live) running() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.takes(0, nil) {
		return l.current
	}
	return nil
}

var errClosed = registry.Failf("closed", "the episode has ended")

// openBox opens the plugin's directory on the runner.
func (l *live) openBox(ctx context.Context) (sandbox.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.box == nil {
		p := l.plugin
		box, err := p.runner.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("plugin-%s-%d", p.cfg.Name, p.boxes.Add(1))})
		if err != nil {
			return nil, l.notStarted(ctx, err)
		}
		l.box = box
	}
	return l.box, nil
}

// close closes the plugin's input. In a sandbox, the plugin ends with the sandbox at the latest; on the runner, close kills it.
func (l *live) close() {
	l.mu.Lock()
	run, box := l.current, l.box
	l.closed = true
	l.mu.Unlock()
	if run != nil {
		run.Input.Close()
		if text := l.plugin.log(run); text != "" {
			l.logger.Debug("plugin's log", "stderr", text)
		}
	}
	if box != nil {
		if err := box.Close(); err != nil {
			l.logger.Warn("plugin did not end", "error", err)
		}
	}
	l.end()
	l.watched.Wait()
}

// log returns the end of a process's standard error, without the plugin's secrets.
func (p *plugin) log(run *process) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(run.Stderr.Bytes())), "\uFFFD")
	for _, name := range sortedKeys(p.secrets) {
		if value := p.secrets[name]; value != "" {
			text = strings.ReplaceAll(text, value, "["+name+"]")
		}
	}
	return text
}
