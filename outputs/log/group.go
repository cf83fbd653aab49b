package log

import "sync"

// Group lets callers share what takes long: while it is done for some, others gather for the next time.
type Group[T any] struct {
	do   func(batch []T) error
	turn chan struct{} // holds one while do runs

	mu   sync.Mutex // guards next
	next *round[T]
}

// round is those who go together. The first one leads, so that no caller works for others more than once.
type round[T any] struct {
	batch []T
	done  chan struct{}
	err   error
}

// NewGroup makes a group. It calls do from one goroutine at a time, with what came since do was called last.
func NewGroup[T any](do func(batch []T) error) *Group[T] {
	return &Group[T]{do: do, turn: make(chan struct{}, 1)}
}

// Do returns when everything that it was given is done, with all else that came meanwhile.
func (g *Group[T]) Do(some ...T) error {
	g.mu.Lock()
	r := g.next
	lead := r == nil
	if lead {
		r = &round[T]{done: make(chan struct{})}
		g.next = r
	}
	r.batch = append(r.batch, some...)
	g.mu.Unlock()
	if !lead {
		<-r.done
		return r.err
	}
	g.turn <- struct{}{}
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	r.err = g.do(r.batch)
	<-g.turn
	close(r.done)
	return r.err
}
