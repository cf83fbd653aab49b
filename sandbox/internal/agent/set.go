package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/relay"
)

// endTime bounds how long a machine may take to end.
const endTime = time.Minute

// Machine is the container or remote machine of one sandbox.
type Machine interface {
	// Start starts the agent in it and returns the agent's input and output.
	Start(ctx context.Context) (io.ReadWriteCloser, error)
	// Spec returns the spec for the agent, once the agent was started.
	Spec() sandbox.Spec
	// End ends it with all that runs in it, and returns when it has. It is called once.
	End(ctx context.Context) error
}

// Set is the open sandboxes of a backend, each in a machine of its own.
type Set struct {
	name   string
	state  *state.Instance
	logger *slog.Logger

	mu      sync.Mutex // guards what follows
	boxes   map[string]*box
	closed  bool
	opening sync.WaitGroup
}

var errClosed = fmt.Errorf("backend is closed: %w", sandbox.ErrGone)

// NewSet makes a set that is recorded in an instance, which the set owns from now on.
func NewSet(backend string, instance *state.Instance, logger *slog.Logger) *Set {
	return &Set{name: backend, state: instance, logger: logger, boxes: map[string]*box{}}
}

// Open opens a sandbox in the machine that create makes.
func (s *Set) Open(ctx context.Context, id string, create func(context.Context) (Machine, error)) (sandbox.Sandbox, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &box{set: s, id: id, cancel: cancel}
	if err := s.reserve(b); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", id, err)
	}
	defer s.opening.Done()
	err := b.open(ctx, create)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err == nil {
		err = s.state.Add(id, 0)
	}
	s.mu.Lock()
	if err == nil && s.closed {
		err = errClosed
	}
	b.opened = err == nil
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", id, errors.Join(err, b.Close()))
	}
	return b, nil
}

func (s *Set) reserve(b *box) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.boxes[b.id] != nil {
		return errors.New("a sandbox of that id is open")
	}
	s.boxes[b.id] = b
	s.opening.Add(1)
	return nil
}

// Close ends all sandboxes, has the backend clean up, and removes the instance. finish gets the errors so far, and returns those
// that count; with any, the rest is left to a sweep.
func (s *Set) Close(finish func(error) error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var boxes []*box
	for _, b := range s.boxes {
		if b.opened {
			boxes = append(boxes, b)
		} else {
			b.cancel(errClosed)
		}
	}
	s.mu.Unlock()
	errs := make([]error, len(boxes))
	var wait sync.WaitGroup
	for i, b := range boxes {
		wait.Go(func() { errs[i] = b.Close() })
	}
	wait.Wait()
	s.opening.Wait()
	if err := finish(errors.Join(errs...)); err != nil {
		return err
	}
	return s.state.Close()
}

// box is a sandbox in a machine.
type box struct {
	sandbox.Sandbox
	set     *Set
	id      string
	cancel  func(error) // ends the opening
	machine Machine
	client  *relay.Client
	opened  bool // guarded by Set.mu

	closing sync.Once
	err     error
}

func (b *box) open(ctx context.Context, create func(context.Context) (Machine, error)) (err error) {
	if b.machine, err = create(ctx); err != nil {
		return err
	}
	stream, err := b.machine.Start(ctx)
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	b.client, err = relay.Dial(ctx, stream, relay.Options{Name: b.set.name, Logger: b.set.logger})
	if err != nil {
		err = fmt.Errorf("speak to the agent: %w", err)
		if process, ok := stream.(*Process); ok {
			// The agent writes its reason before it ends.
			select {
			case <-process.Ended():
			case <-time.After(time.Second):
			}
			err = fmt.Errorf("%w; it said %q", err, process.Text())
		}
		return err
	}
	b.Sandbox, err = b.client.Open(ctx, b.machine.Spec())
	return err
}

// Close ends the machine.
func (b *box) Close() error {
	b.closing.Do(func() {
		var wait sync.WaitGroup
		if b.client != nil {
			// Before the machine ends, so that the client does not count it as lost; and with the machine at the latest.
			wait.Go(func() { _ = b.client.Close() })
		}
		if b.machine != nil {
			ctx, cancel := context.WithTimeout(context.Background(), endTime)
			defer cancel()
			if b.client != nil {
				select {
				case <-b.client.Done():
				case <-time.After(politeTime):
				}
			}
			if err := b.machine.End(ctx); err != nil {
				b.err = fmt.Errorf("end sandbox %s: %w", b.id, err)
			}
		}
		wait.Wait()
		b.set.mu.Lock()
		delete(b.set.boxes, b.id)
		b.set.mu.Unlock()
		if b.err == nil {
			b.err = b.set.state.Remove(b.id)
		}
	})
	return b.err
}

// politeTime is how long the agent may take to end its sandbox before the backend ends its machine.
const politeTime = 2 * time.Second
