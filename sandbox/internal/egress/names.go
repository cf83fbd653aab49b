package egress

import (
	"context"
	"errors"
	"hash/fnv"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Addresses that stand for names in a sandbox: 198.18.0.0/15 without its beginning, which the sandbox itself uses. No machine
// on the internet has one of them.
const (
	firstStandIn = 198<<24 | 18<<16 | 256
	standIns     = 1<<17 - 256
)

const (
	mostNames = 8192             // of a sandbox
	lookups   = 32               // in parallel
	memory    = 30 * time.Second // how long a name's addresses are cached
	patience  = 10 * time.Second // with the name server
)

var (
	errNoName  = errors.New("there is no such name")
	errTooMany = errors.New("too many names were asked for")
)

// names maps the names of a sandbox to addresses that stand for them. The real address is looked up, and judged, when a
// connection is made.
type names struct {
	config Config
	asking chan struct{} // holds a token for each question in progress

	mu     sync.Mutex // guards what follows
	byName map[string]*name
	byAddr map[netip.Addr]string
}

type name struct {
	mu        sync.Mutex // held during the question to the name server
	addresses []netip.Addr
	asked     time.Time
}

func newNames(config Config) *names {
	return &names{config: config, asking: make(chan struct{}, lookups), byName: map[string]*name{}, byAddr: map[netip.Addr]string{}}
}

// of returns the name that an address stands for, or "".
func (n *names) of(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[addr]
}

// standIn returns the address that stands for an existing name. It is derived from the name, so that it does not depend on
// earlier questions.
func (n *names) standIn(ctx context.Context, text string) (netip.Addr, error) {
	if _, err := n.resolve(ctx, text); err != nil {
		return netip.Addr{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text))
	for at := hash.Sum32() % standIns; ; at = (at + 1) % standIns {
		v := uint32(firstStandIn) + at
		addr := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		switch n.byAddr[addr] {
		case "":
			n.byAddr[addr] = text
			return addr, nil
		case text:
			return addr, nil
		}
	}
}

// resolve returns the addresses of a name, from the cache if they are recent. Concurrent calls for one name share a question.
func (n *names) resolve(ctx context.Context, text string) ([]netip.Addr, error) {
	n.mu.Lock()
	found := n.byName[text]
	if found == nil {
		if len(n.byName) >= mostNames {
			n.mu.Unlock()
			return nil, errTooMany
		}
		found = &name{}
		n.byName[text] = found
	}
	n.mu.Unlock()
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.addresses != nil && n.config.Now().Sub(found.asked) < memory {
		return found.addresses, nil
	}
	addresses, err := n.ask(ctx, text)
	if err != nil {
		if found.addresses == nil {
			// Do not keep names that do not exist.
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.byName, text)
		}
		return nil, err
	}
	found.addresses, found.asked = addresses, n.config.Now()
	return addresses, nil
}

func (n *names) ask(ctx context.Context, text string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case n.asking <- struct{}{}:
		defer func() { <-n.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	addresses, err := n.config.Lookup(ctx, text)
	if problem, ok := errors.AsType[*net.DNSError](err); ok && problem.IsNotFound {
		return nil, errNoName
	}
	if err == nil && len(addresses) == 0 {
		return nil, errNoName
	}
	return addresses, err
}

// canonical returns a name as policies spell it.
func canonical(text string) string { return strings.ToLower(strings.TrimSuffix(text, ".")) }
