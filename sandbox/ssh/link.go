package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
)

// closeTime bounds how long we wait for the agent to end, which ends its open sandboxes.
const closeTime = 30 * time.Second

// link is a connection to a host with an agent.
type link struct {
	relay *relay.Client
	agent *agentSession
}

// connect logs in, uploads the agent unless it is there, and starts it.
func connect(ctx context.Context, h *host) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no connection in %v", connectTime))
	defer cancel()
	route, err := dial(ctx, h.config, h.target)
	if err != nil {
		return nil, err
	}
	// Closing the connection ends all requests that the host leaves unanswered.
	stop := context.AfterFunc(ctx, func() { route.Close() })
	defer stop()
	a, err := startAgent(route, h)
	if err != nil {
		return nil, errors.Join(because(ctx, err), route.Close())
	}
	client, err := relay.Dial(ctx, a, relay.Options{Name: "ssh", Logger: h.logger})
	if err != nil {
		err = because(ctx, fmt.Errorf("greet the agent: %w", err))
		err = errors.Join(err, a.Close(), a.wait())
		return nil, fmt.Errorf("%w; it said %q", err, a.said())
	}
	return &link{relay: client, agent: a}, nil
}

// because returns the reason why a connection was cut, if any, instead of its effect.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (l *link) lost() bool {
	select {
	case <-l.agent.ended:
		return true
	case <-l.relay.Done():
		return true
	default:
		return false
	}
}

// close ends the sandboxes and waits for the agent.
func (l *link) close() error {
	return errors.Join(l.relay.Close(), l.agent.Close(), l.agent.wait())
}

// abandon closes a lost connection.
func (l *link) abandon() {
	_ = l.agent.Close()
	_ = l.relay.Close()
}

// route is the connection to a host, and those to the jump hosts before it.
type route []*ssh.Client

func (r route) last() *ssh.Client { return r[len(r)-1] }

// Close closes the nearest connection first: the others go through it, and closing them would wait for an answer from a host
// that may hang.
func (r route) Close() error {
	var errs []error
	for _, client := range r {
		if err := client.Close(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func dial(ctx context.Context, c *config, t target) (route, error) {
	var r route
	for _, hop := range slices.Concat(c.jumps, []target{t}) {
		client, err := login(ctx, c, hop, r)
		if err != nil {
			return nil, errors.Join(because(ctx, err), r.Close())
		}
		r = append(r, client)
	}
	return r, nil
}

func login(ctx context.Context, c *config, t target, through route) (*ssh.Client, error) {
	config, done, err := c.clientConfig(t)
	if err != nil {
		return nil, err
	}
	defer done()
	var conn net.Conn
	if len(through) > 0 {
		conn, err = through.last().DialContext(ctx, "tcp", t.address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", t.address)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", t.address, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	inner, channels, requests, err := ssh.NewClientConn(conn, t.address, config)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("log in as %s: %w", t, err)
	}
	return ssh.NewClient(inner, channels, requests), nil
}

// weakest returns the guarantees that hold on all hosts.
func weakest(hosts []*host) sandbox.Guarantees {
	g := hosts[0].link.relay.Guarantees()
	if len(hosts) > 1 {
		g.Missing = at(hosts[0], g.Missing)
	}
	for _, h := range hosts[1:] {
		other := h.link.relay.Guarantees()
		if !other.Level.AtLeast(g.Level) {
			g.Level = other.Level
		}
		g.Isolation = weaker(g.Isolation, other.Isolation, []string{"own", "shifted", "filtered", "single", "shared", "host", "none"})
		g.Limits = weaker(g.Limits, other.Limits, []string{"hard", "soft", "none"})
		g.Network = slices.DeleteFunc(slices.Clone(g.Network), func(n sandbox.Network) bool { return !slices.Contains(other.Network, n) })
		g.Images = g.Images && other.Images
		g.Snapshots = g.Snapshots && other.Snapshots
		g.FixedSystem = g.FixedSystem && other.FixedSystem
		g.WritableSystem = g.WritableSystem && other.WritableSystem
		g.FixedFolder = g.FixedFolder && other.FixedFolder
		g.Missing = append(g.Missing, at(h, other.Missing)...)
	}
	return g
}

func at(h *host, missing []string) []string {
	all := make([]string, 0, len(missing))
	for _, text := range missing {
		all = append(all, fmt.Sprintf("%s: %s", h.target, text))
	}
	return all
}

// weaker takes for each key the later of two values in an order; a missing value is the last one.
func weaker(a, b map[string]string, order []string) map[string]string {
	all := map[string]string{}
	for key, value := range a {
		other, ok := b[key]
		if !ok || slices.Index(order, other) > slices.Index(order, value) {
			value = other
		}
		all[key] = value
	}
	for key, value := range all {
		if value == "" {
			all[key] = order[len(order)-1]
		}
	}
	return all
}
