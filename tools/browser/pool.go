package browser

import "context"

// Pool bounds how many browsers live at once in a run. Nil bounds nothing.
type Pool struct{ places chan struct{} }

// NewPool makes a pool for size browsers; 0 for any number.
func NewPool(size int) *Pool {
	if size == 0 {
		return nil
	}
	return &Pool{make(chan struct{}, size)}
}

// enter waits for a place.
func (p *Pool) enter(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case p.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) leave() {
	if p != nil {
		<-p.places
	}
}
