package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"
)

const (
	probeLife    = 30 * time.Second // how long an answer holds
	probeTimeout = 10 * time.Second
)

// probes caches the answers of availability checks. Thousands of episodes ask; a check is made once in probeLife.
type probes struct {
	mu    sync.Mutex // guards known
	known map[unsafe.Pointer]*probe
}

// probe is an answer, or a question that is under way until done is closed.
type probe struct {
	done  chan struct{}
	until time.Time
	err   error
}

// identity tells checks apart, so that the tools of a family that share a check share its answer. Functions cannot be
// compared in Go; the address of the closure is what a copy of the value keeps.
func identity(check func(context.Context) error) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&check))
}

// start returns the answer to a check, asking when there is none or it is old.
func (p *probes) start(ctx context.Context, check func(context.Context) error) *probe {
	id := identity(check)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[id]; known != nil {
		select {
		case <-known.done:
			if time.Now().Before(known.until) { // monotonic, and nothing that anybody observes
				return known
			}
		default:
			return known // one probe in flight
		}
	}
	if p.known == nil {
		p.known = map[unsafe.Pointer]*probe{}
	}
	asked := &probe{done: make(chan struct{})}
	p.known[id] = asked
	// The answer is everybody's, so it does not end with the context of who happened to ask first.
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
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("the check panicked: %v", value)
			}
			answer <- err
		}()
		err = check(ctx)
	}()
	select {
	case p.err = <-answer:
	case <-ctx.Done():
		p.err = context.Cause(ctx)
	}
	p.until = time.Now().Add(probeLife)
	close(p.done)
}

// notBuilt is why a tool is missing that the table of toolsets names.
const notBuilt = "not built into this version"

// Unavailable says which tools cannot work here at the moment, and why.
func (r *Registry) Unavailable(ctx context.Context) map[string]string {
	reasons, err := r.unavailable(ctx, r.names)
	if err != nil {
		for _, name := range r.names {
			if r.tools[name].Available != nil && reasons[name] == "" {
				reasons[name] = "not checked: " + err.Error()
			}
		}
	}
	return reasons
}

// unavailable asks about all names at the same time. A check that could not help is not asked.
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

// lacks says what can be known of a tool without a check.
func (r *Registry) lacks(t *Tool) string {
	if t == nil || t.planned {
		return notBuilt
	}
	var unset []string
	for _, name := range t.RequiresEnv {
		value, ok := "", false
		if r.env != nil {
			value, ok = r.env(name)
		}
		if !ok || value == "" {
			unset = append(unset, name)
		}
	}
	switch len(unset) {
	case 0:
		return ""
	case 1:
		return "the environment variable " + unset[0] + " is not set"
	}
	return "the environment variables " + strings.Join(unset, ", ") + " are not set"
}
