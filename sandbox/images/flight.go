package images

import (
	"context"
	"errors"
	"sync"
)

// errClosed is why what is being fetched ends when its store is closed.
var errClosed = errors.New("image store is closed")

// flight does a thing once for all who ask for it at the same time. It goes on until the last of them has given up.
type flight[T any] struct {
	mu     sync.Mutex // guards what follows
	calls  map[string]*call[T]
	closed bool
	ended  sync.WaitGroup
}

type call[T any] struct {
	cancel  context.CancelCauseFunc
	waiting int // guarded by flight.mu
	done    chan struct{}
	value   T // value and err may be read when done is closed
	err     error
}

func (f *flight[T]) do(ctx context.Context, key string, work func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	c, err := f.join(ctx, key, work)
	if err != nil {
		return none, err
	}
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		f.leave(key, c, context.Cause(ctx))
		return none, context.Cause(ctx)
	}
}

func (f *flight[T]) join(ctx context.Context, key string, work func(context.Context) (T, error)) (*call[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if c, ok := f.calls[key]; ok {
		c.waiting++
		return c, nil
	}
	workCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call[T]{cancel: cancel, waiting: 1, done: make(chan struct{})}
	if f.calls == nil {
		f.calls = map[string]*call[T]{}
	}
	f.calls[key] = c
	f.ended.Go(func() {
		c.value, c.err = work(workCtx)
		cancel(nil)
		f.mu.Lock()
		if f.calls[key] == c {
			delete(f.calls, key)
		}
		f.mu.Unlock()
		close(c.done)
	})
	return c, nil
}

// leave gives up on a call; the last one to do so ends it, and whoever comes then begins anew.
func (f *flight[T]) leave(key string, c *call[T], why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.waiting--; c.waiting > 0 {
		return
	}
	c.cancel(why)
	if f.calls[key] == c {
		delete(f.calls, key)
	}
}

// close ends all calls and waits for them.
func (f *flight[T]) close() {
	f.mu.Lock()
	f.closed = true
	for _, c := range f.calls {
		c.cancel(errClosed)
	}
	f.mu.Unlock()
	f.ended.Wait()
}
