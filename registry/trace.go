package registry

import (
	"slices"
	"sync"

	"trajgen/pipeline/episode"
)

// trace has the calls of a session. It is safe for concurrent use.
type trace struct {
	mu        sync.Mutex  // guards the fields below, and parts of the calls
	calls     []*prepared // of the top level, in call order
	running   []*prepared
	forgotten int // the model no longer sees results of turns before this one
}

// reserve takes the call's place in the trace before it runs, so that the order does not depend on which call ends first. A nested
// call is added to the running call that its Parent names.
func (t *trace) reserve(p *prepared) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := &t.calls
	p.place = episode.Place{Turn: p.call.Turn, Index: p.call.Index}
	if p.call.Parent != "" {
		for _, each := range slices.Backward(t.running) {
			if each.call.ID == p.call.Parent {
				calls, p.place = &each.inner, each.place
				p.place.Nested = p.call.Index + 1
				break
			}
		}
	}
	*calls = append(*calls, p)
	t.running = append(t.running, p)
}

func (t *trace) finish(p *prepared) {
	p.args, p.refused, p.twin, p.fault = arguments{}, nil, nil, nil
	t.mu.Lock()
	defer t.mu.Unlock()
	p.done = true
	if i := slices.Index(t.running, p); i >= 0 {
		t.running = slices.Delete(t.running, i, i+1)
	}
}

// change changes a call that other goroutines may be reading.
func (t *trace) change(p *prepared, f func(call *episode.ToolCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&p.call)
}

// Trace lists the calls that have ended, in call order, nested ones after the call that made them.
func (t *trace) Trace() []episode.ToolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return flatten(nil, t.calls)
}

func flatten(all []episode.ToolCall, calls []*prepared) []episode.ToolCall {
	for _, p := range calls {
		if p.done {
			all = append(all, p.call)
		}
		all = flatten(all, p.inner)
	}
	return all
}

// CalledBetween reports whether the model itself called a tool other than those named, in the turns from from up to, but not
// including, to. These turns have ended, so the result does not depend on how the calls of a turn interleave.
func (t *trace) CalledBetween(from, to int, names ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.calls, func(p *prepared) bool {
		return p.done && p.call.Turn >= from && p.call.Turn < to && !slices.Contains(names, p.call.Name)
	})
}

// Forget records that the model no longer sees the results of calls before a turn, as its conversation was shortened.
func (t *trace) Forget(before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgotten = max(t.forgotten, before)
}

// Shows reports whether the model still sees the whole result of one of its own calls: the call has ended, its result was neither
// cut nor replaced by a planted fault, and it was not forgotten.
func (t *trace) Shows(turn int, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := func(p *prepared) bool { return p.done && p.call.Turn == turn && p.call.ID == id }
	partly := func(p *prepared) bool {
		return p.call.Truncated || p.call.Planted != nil && p.call.Planted.RealResult != p.call.Result
	}
	return turn >= t.forgotten && slices.ContainsFunc(t.calls, same) &&
		!slices.ContainsFunc(t.calls, func(p *prepared) bool { return same(p) && partly(p) })
}
