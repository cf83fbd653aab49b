// Package ssh runs sandboxes on other machines, over one connection each.
//
// The agent, a small program, is uploaded once and opens the sandboxes there, with native isolation where that machine allows
// it. Any number of sandboxes share the connection. They end with it: the agent's input ends, and the agent ends all that it
// has started.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/state"
)

func init() {
	sandbox.Register("ssh", sandbox.Kind{
		About:    "other Linux machines over ssh; native there where they can, and nothing to install",
		Open:     Open,
		Settings: settings,
		// Where native is not possible, sandboxes are plain processes on the host.
		SharesMachine: true,
	})
}

// backend spreads sandboxes over hosts.
type backend struct {
	hosts      []*host
	state      *state.Instance
	guarantees sandbox.Guarantees

	mu     sync.Mutex
	boxes  map[string]bool // open, or being opened
	closed bool
}

// Open connects to all hosts. A host that cannot be reached now is an error, because its name may be misspelt; a host that is
// lost later is connected again when a sandbox is opened.
func Open(opts sandbox.Options) (sandbox.Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := parse(opts.Settings, opts.Logger)
	if err != nil {
		return nil, err
	}
	b := &backend{boxes: map[string]bool{}}
	for _, t := range c.targets {
		b.hosts = append(b.hosts, newHost(t, c, opts.Logger.With("host", t.String())))
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	errs := make([]error, len(b.hosts))
	var wait sync.WaitGroup
	for i, h := range b.hosts {
		wait.Go(func() { _, errs[i] = h.connected(ctx) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, b.closeHosts())
	}
	b.guarantees = weakest(b.hosts)
	for _, h := range b.hosts {
		h.promise(b.guarantees.Level)
	}
	if b.state, err = state.Create(opts.StateDir, state.Owner{Backend: "ssh", PID: os.Getpid()}); err != nil {
		return nil, errors.Join(err, b.closeHosts())
	}
	return b, nil
}

// Guarantees returns those of the weakest host.
func (b *backend) Guarantees() sandbox.Guarantees { return b.guarantees }

// Open opens a sandbox on the host with the fewest, or on the snapshot's.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.reserve(spec.ID); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	sb, err := b.open(ctx, spec)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.boxes, spec.ID)
		return nil, err
	}
	return sb.withInterfaces(), nil
}

func (b *backend) reserve(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	}
	if b.boxes[id] {
		return errors.New("a sandbox of that id is open")
	}
	b.boxes[id] = true
	return nil
}

func (b *backend) open(ctx context.Context, spec sandbox.Spec) (*box, error) {
	var last error
	for tried := map[*host]bool{}; len(tried) < len(b.hosts); {
		h, err := b.choose(&spec, tried)
		if err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
		}
		tried[h] = true
		sb, err := h.open(ctx, spec)
		if err == nil {
			return b.keep(h, spec.ID, sb)
		}
		h.leave()
		last = fmt.Errorf("on %s: %w", h.target, err)
		// An error of the request is the same on all hosts, and a snapshot is on one host only.
		lost := errors.Is(err, errUnreachable) || errors.Is(err, sandbox.ErrGone)
		if ctx.Err() != nil || spec.From != nil || !lost {
			break
		}
	}
	return nil, last
}

// choose returns the snapshot's host, or the untried one with the fewest sandboxes, and counts a sandbox on it.
func (b *backend) choose(spec *sandbox.Spec, tried map[*host]bool) (*host, error) {
	if spec.From != nil {
		s, ok := spec.From.(*snapshot)
		if !ok || !slices.Contains(b.hosts, s.host) {
			return nil, errors.New("the snapshot is of another backend")
		}
		spec.From = s.Snapshot
		s.host.join()
		return s.host, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var best *host
	for _, h := range b.hosts {
		if !tried[h] && (best == nil || h.load() < best.load()) {
			best = h
		}
	}
	best.join()
	return best, nil
}

func (b *backend) keep(h *host, id string, sb sandbox.Sandbox) (*box, error) {
	kept := &box{Sandbox: sb, backend: b, host: h, id: id}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	err := error(nil)
	if closed {
		err = fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	} else {
		err = b.state.Add(id, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox %s: %w", id, err), sb.Close())
	}
	return kept, nil
}

// Close ends all sandboxes and connections.
func (b *backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	return errors.Join(b.closeHosts(), b.state.Close())
}

func (b *backend) closeHosts() error {
	errs := make([]error, len(b.hosts))
	var wait sync.WaitGroup
	for i, h := range b.hosts {
		wait.Go(func() { errs[i] = h.close() })
	}
	wait.Wait()
	return errors.Join(errs...)
}
