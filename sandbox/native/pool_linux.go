package native

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/wire"
)

// pool keeps sandboxes of recently used kinds, made ahead of demand. Each is handed out once.
type pool struct {
	backend *backend
	size    int // of each kind

	mu      sync.Mutex  // guards the fields below
	kinds   []*poolKind // used last comes last
	stopped bool
}

// poolKinds is how many kinds are kept: a run usually has one, or a few images in turn.
const poolKinds = 4

// poolKind is a set of sandboxes that differ only in what the runner adds to each command.
type poolKind struct {
	key     string
	plan    *plan
	ready   []*confined
	filling bool
	dropped bool
}

func newPool(n *backend, size int) *pool { return &pool{backend: n, size: size} }

// key names all that a guest gets at its start.
func (p *plan) key() string {
	folder := p.layout.ReadOnly
	if folder != "" {
		folder += " " + p.spec.ReadOnly.Digest
	}
	allow := strings.Join(p.spec.Allow, " ")
	return fmt.Sprintf("%q %t %q %q %q %+v %q", p.image, p.spec.Writable, p.layout.Workdir, p.spec.Network, allow, p.spec.Limits, folder)
}

// take returns a ready sandbox, or nil, and starts to refill the pool.
func (p *pool) take(plan *plan) *confined {
	if p.size <= 0 || plan.from != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	kind := p.use(plan)
	var b *confined
	for len(kind.ready) > 0 && b == nil {
		b, kind.ready = kind.ready[0], kind.ready[1:]
		if b.IsLost() {
			b = nil
		}
	}
	if !kind.filling {
		kind.filling = true
		go p.fill(kind)
	}
	if b == nil {
		return nil
	}
	b.plan = plan
	b.Become(plan.spec, plan.layout)
	// Do not wait for the broker to list it under its new name.
	_, _ = b.client.ask(broker.KindLabel, func(e *wire.Encoder) {
		e.String(b.name)
		e.String(plan.spec.ID)
	})
	return b
}

// use finds the kind of a plan, or makes it in place of the least recently used one.
func (p *pool) use(plan *plan) *poolKind {
	key := plan.key()
	if i := slices.IndexFunc(p.kinds, func(k *poolKind) bool { return k.key == key }); i >= 0 {
		kind := p.kinds[i]
		p.kinds = append(slices.Delete(p.kinds, i, i+1), kind)
		return kind
	}
	if len(p.kinds) == poolKinds {
		p.drop(p.kinds[0])
		p.kinds = slices.Delete(p.kinds, 0, 1)
	}
	kind := &poolKind{key: key, plan: plan}
	p.kinds = append(p.kinds, kind)
	return kind
}

func (p *pool) drop(kind *poolKind) {
	kind.dropped = true
	for _, b := range kind.ready {
		go func() { _ = b.Close() }()
	}
	kind.ready = nil
}

// openTime bounds the making of a pooled sandbox.
const openTime = time.Minute

// fill makes sandboxes of a kind, one after the other, until there are enough. It stops at the first error: the next Open makes
// a sandbox itself and returns the error.
func (p *pool) fill(kind *poolKind) {
	for {
		p.mu.Lock()
		if p.stopped || kind.dropped || len(kind.ready) >= p.size {
			kind.filling = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		ahead := *kind.plan
		ahead.spec.ID = fmt.Sprintf("ahead-%d", p.backend.names.Add(1))
		ctx, cancel := context.WithTimeout(context.Background(), openTime)
		b, err := p.backend.open(ctx, &ahead, ahead.spec.ID)
		cancel()
		p.mu.Lock()
		switch {
		case err != nil:
			kind.filling = false
			p.mu.Unlock()
			p.backend.logger.Warn("make a sandbox ahead of demand", "err", err)
			return
		case p.stopped || kind.dropped:
			p.mu.Unlock()
			_ = b.Close()
		default:
			kind.ready = append(kind.ready, b)
			p.mu.Unlock()
		}
	}
}

// stop keeps the pool from handing out or making more. The backend closes the ready ones.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}
