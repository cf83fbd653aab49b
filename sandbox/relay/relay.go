// Package relay carries a sandbox backend over a byte stream, such as the standard streams of a command in a container or on
// another machine.
//
// Serve offers a backend on one end of the stream; Dial returns a backend on the other. After a greeting, the stream carries
// HTTP/2, so commands, files and sockets share it without waiting for each other. A request that makes an object, such as a
// sandbox or a command, lasts as long as the object: cancelling the request ends it. The end of the stream ends everything on
// both sides.
//
// The client does not trust the agent, which runs beside, or even inside, what it confines: the client bounds all that it
// receives, and the worst that the agent can do is to end its own sandboxes.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
)

// Options configure a client. The zero value works.
type Options struct {
	// Name is the backend's name in Guarantees; "" is the name of the served backend.
	Name string
	// Override changes the guarantees that the server reports: a container isolates what runs in it, and the agent cannot know
	// that.
	Override func(*sandbox.Guarantees)
	// Patience is how long the server may be silent: a minute when zero. The client pings it meanwhile.
	Patience time.Duration
	// Logger receives the loss of the connection. Nil logs nothing.
	Logger *slog.Logger
}

// Client is a backend that is served on the other end of a stream.
type Client struct {
	link       *link
	http       *http.ClientConn
	opts       Options
	guarantees atomic.Pointer[sandbox.Guarantees]
	life       context.Context // ends with the connection
	end        context.CancelFunc
	closing    atomic.Bool

	once     sync.Once
	closeErr error
}

// Dial connects to the server on the other end of rw. The client owns rw from now on; Dial closes it when it fails. ctx covers
// the greeting.
func Dial(ctx context.Context, rw io.ReadWriteCloser, opts Options) (*Client, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Patience <= 0 {
		opts.Patience = time.Minute
	}
	c := &Client{link: newLink(rw), opts: opts}
	stop := context.AfterFunc(ctx, func() { _ = rw.Close() })
	said, err := c.link.greet(hello{Patience: opts.Patience})
	if err == nil {
		c.http, err = transport(c.link).NewClientConn(ctx, "http", address)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = rw.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("greet the sandbox agent: %w", err)
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.learn(said.Guarantees)
	go func() {
		c.link.watch(opts.Patience, c.ping)
		c.lost()
	}()
	return c, nil
}

// address is the host in requests, which need one.
const address = "agent:80"

// protocols is HTTP/2 without TLS, for both sides.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

// transport bounds what the server can make the client hold.
func transport(l *link) *http.Transport {
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return l, nil },
		Protocols:   protocols(), HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReadFrameSize: maxFrame},
		DisableCompression: true, MaxResponseHeaderBytes: 4 << 10,
	}
}

// ping makes the server send something.
func (c *Client) ping() {
	ctx, cancel := context.WithTimeout(c.life, c.opts.Patience)
	defer cancel()
	_, _ = c.call(ctx, methodPing, &message{})
}

// Guarantees returns what the server measured.
func (c *Client) Guarantees() sandbox.Guarantees { return *c.guarantees.Load() }

func (c *Client) learn(g sandbox.Guarantees) {
	if c.opts.Name != "" {
		g.Backend = c.opts.Name
	}
	if c.opts.Override != nil {
		c.opts.Override(&g)
	}
	c.guarantees.Store(&g)
}

// Done is closed when the connection has ended, and all its sandboxes with it.
func (c *Client) Done() <-chan struct{} { return c.link.gone }

// Lose ends the connection. Calls to its sandboxes return the reason.
func (c *Client) Lose(reason error) { c.link.lose(reason) }

// Open opens a sandbox on the server.
func (c *Client) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var m message
	if spec.From != nil {
		s, ok := spec.From.(*snapshot)
		if !ok || s.client != c {
			return nil, fmt.Errorf("open sandbox %s: the snapshot is of another backend", spec.ID)
		}
		m.Int(s.id)
		spec.From = nil
	} else {
		m.Int(0)
	}
	encodeJSON(&m.Encoder, &spec)
	h, d, err := c.hold(ctx, c.life, methodOpen, &m, nil)
	if errors.Is(err, sandbox.ErrGone) && c.link.lost() != nil {
		return nil, c.errGone("open sandbox " + spec.ID)
	}
	if err != nil {
		return nil, err
	}
	b := &remote{held: h, name: spec.ID, id: d.Int()}
	d.Take((*layout)(&b.layout))
	b.commands, b.endCommands = context.WithCancel(h.life)
	snapshots, traffic := d.Bool(), d.Bool()
	var found sandbox.Guarantees
	if err := decodeJSON(d, &found); err != nil {
		return nil, b.malformed(err)
	}
	c.learn(found)
	switch {
	case snapshots && traffic:
		return struct {
			*remote
			snapshotter
			meter
		}{b, snapshotter{b}, meter{b}}, nil
	case snapshots:
		return struct {
			*remote
			snapshotter
		}{b, snapshotter{b}}, nil
	case traffic:
		return struct {
			*remote
			meter
		}{b, meter{b}}, nil
	}
	return b, nil
}

// closeTime bounds how long the server may take to end what it holds.
const closeTime = 2 * time.Minute

// Close ends all sandboxes and the server.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.closing.Store(true)
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
		defer cancel()
		if _, err := c.call(ctx, methodBye, &message{}); err != nil && c.link.lost() == nil {
			c.closeErr = fmt.Errorf("close the sandbox agent: %w", err)
		}
		c.link.lose(errClosed)
	})
	return c.closeErr
}

var errClosed = errors.New("backend is closed")

// errGone is the error of all calls after the connection has ended.
func (c *Client) errGone(what string) error {
	return fmt.Errorf("%s: %w: %w", what, sandbox.ErrGone, c.link.lost())
}

// lost ends all calls that wait, when the connection has ended.
func (c *Client) lost() {
	_ = c.http.Close()
	c.end()
	if !c.closing.Load() {
		c.opts.Logger.Error("a sandbox agent is lost", "backend", c.Guarantees().Backend, "err", c.link.lost())
	}
}
