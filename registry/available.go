package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

const (
	probeLife    = 30 * time.Second // how long an answer holds
	probeTimeout = 10 * time.Second
)

// probes caches the results of availability checks. Thousands of episodes ask; a check runs once in probeLife.
type probes struct {
	mu    sync.Mutex // guards known
	known map[unsafe.Pointer]*probe
}

// probe is the result of a check, which runs until done is closed.
type probe struct {
	done  chan struct{}
	until time.Time
	err   error
}

// identity identifies a check, so that tools which share a check share its result. Go cannot compare functions, but copies of a
// function value keep the address of the closure.
func identity(check func(context.Context) error) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&check))
}

// start returns the probe of a check, and starts the check if it has no result yet or an old one.
func (p *probes) start(ctx context.Context, check func(context.Context) error) *probe {
	id := identity(check)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[id]; known != nil {
		select {
		case <-known.done:
			if time.Now().Before(known.until) { // monotonic, and not observable in results
				return known
			}
		default:
			return known // already in flight
		}
	}
	if p.known == nil {
		p.known = map[unsafe.Pointer]*probe{}
	}
	asked := &probe{done: make(chan struct{})}
	p.known[id] = asked
	// All callers share the result, so the check does not end with the context of the first caller.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), probeTimeout,
		fmt.Errorf("the check did not answer within %s", probeTimeout))
	go func() {
		defer cancel()
		asked.ask(ctx, check)
	}()
	return asked
}

func (p *probe) ask(ctx context.Context, check func(context.Context) error) {
	answer := make(chan error, 1)
	go func() {
		err := errors.New("the check ended its goroutine")
		defer func() { answer <- err }()
		err = attempt(func() error { return check(ctx) })
		if crashed, ok := errors.AsType[*crash](err); ok {
			err = fmt.Errorf("the check panicked: %w", crashed)
		}
	}()
	select {
	case p.err = <-answer:
	case <-ctx.Done():
		p.err = context.Cause(ctx)
	}
	p.until = time.Now().Add(probeLife)
	close(p.done)
}

// notBuilt is the reason for a missing tool that only the table of toolsets names.
const notBuilt = "not built into this version"

// Unavailable says which tools cannot work here at the moment, and why.
func (r *Registry) Unavailable(ctx context.Context) map[string]string {
	reasons, err := r.unavailable(ctx, sortedKeys(r.tools))
	if err != nil {
		for name, tool := range r.tools {
			if tool.Available != nil && reasons[name] == "" {
				reasons[name] = "not checked: " + err.Error()
			}
		}
	}
	return reasons
}

// unavailable checks all names at the same time. It skips checks that could not change the result.
func (r *Registry) unavailable(ctx context.Context, names []string) (map[string]string, error) {
	asked := map[string]*probe{}
	reasons := map[string]string{}
	for _, name := range names {
		tool := r.tools[name]
		if reason := r.lacks(tool); reason != "" {
			reasons[name] = reason
		} else if tool.Available != nil {
			asked[name] = r.probes.start(ctx, tool.Available)
		}
	}
	for _, name := range sortedKeys(asked) {
		select {
		case <-asked[name].done:
		case <-ctx.Done():
			return reasons, context.Cause(ctx)
		}
		if err := asked[name].err; err != nil {
			reasons[name] = err.Error()
		}
	}
	return reasons, nil
}

// lacks says why a tool is unavailable, as far as that is known without a check.
func (r *Registry) lacks(t *Tool) string {
	if t == nil || t.planned {
		return notBuilt
	}
	unset := slices.DeleteFunc(slices.Clone(t.RequiresEnv), func(name string) bool {
		value, _ := r.env(name)
		return value != ""
	})
	switch len(unset) {
	case 0:
		return ""
	case 1:
		return "the environment variable " + unset[0] + " is not set"
	}
	return "the environment variables " + strings.Join(unset, ", ") + " are not set"
}
