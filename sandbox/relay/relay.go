// Package relay carries a sandbox backend over a byte stream: what the standard streams of a command in a container, or on
// another machine, can be connected to.
//
// Serve offers a backend at one end, Dial makes a backend of the other. Commands, files and sockets share the stream
// without waiting for each other: what is long goes in pieces, and each channel may only send what its reader has room
// for. The end of the stream is the end of everything on both sides.
//
// The client takes nothing on trust. The agent runs beside, or even inside, what it confines: whatever it sends is bounded,
// and the worst that it can do is to end its own sandboxes.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
)

// Options are what a client is made with. The zero value works.
type Options struct {
	// Name is what Guarantees calls the backend; "" is the name of the one that is served.
	Name string
	// Override changes what the other end says of itself: a container isolates what runs in it, whatever that knows.
	Override func(*sandbox.Guarantees)
	// Patience is how long the other end may be silent: a minute when zero. It is asked for a sign of life meanwhile.
	Patience time.Duration
	// Logger is told when the other end is lost. Nil is silent.
	Logger *slog.Logger
}

// Client is a backend at the other end of a stream.
type Client struct {
	conn       *conn
	opts       Options
	guarantees atomic.Pointer[sandbox.Guarantees]
	watch      watch

	mu        sync.Mutex // guards what follows
	next      uint64
	pending   map[uint64]*pending
	processes map[uint64]*process // that have not ended
	closing   bool

	once     sync.Once
	closeErr error
}

// Dial speaks to what is served at the other end of rw, which belongs to the client from now on, and is closed when Dial
// fails. ctx covers the greeting.
func Dial(ctx context.Context, rw io.ReadWriteCloser, opts Options) (*Client, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Patience <= 0 {
		opts.Patience = time.Minute
	}
	c := &Client{conn: newConn(rw), opts: opts, pending: map[uint64]*pending{}, processes: map[uint64]*process{}}
	c.conn.handle, c.conn.ended = c.handle, c.lost
	stop := context.AfterFunc(ctx, func() { _ = rw.Close() })
	said, err := c.conn.greet(hello{Patience: opts.Patience})
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
	c.learn(said.Guarantees)
	go c.conn.write()
	go c.conn.read()
	c.watch.start(c.conn, opts.Patience, true)
	return c, nil
}

// Guarantees is what the other end has found.
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
func (c *Client) Done() <-chan struct{} { return c.conn.gone }

// Err is why the connection ended; nil while it has not.
func (c *Client) Err() error { return c.conn.lost() }

// Abandon ends the connection, and says why to whoever uses its sandboxes.
func (c *Client) Abandon(reason error) { c.conn.lose(reason) }

// Open opens a sandbox at the other end.
func (c *Client) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var from uint64
	if spec.From != nil {
		s, ok := spec.From.(*snapshot)
		if !ok || s.client != c {
			return nil, fmt.Errorf("open sandbox %s: the snapshot is of another backend", spec.ID)
		}
		from = s.id
	}
	var m message
	encodeSpec(&m.Encoder, &spec, from)
	id := c.newID()
	d, err := c.callAs(ctx, id, methodOpen, &m, func() { c.tell(methodShut, id) })
	if errors.Is(err, sandbox.ErrGone) && c.conn.lost() != nil {
		return nil, c.errGone("open sandbox " + spec.ID)
	}
	if err != nil {
		return nil, err
	}
	b := &box{client: c, id: id, name: spec.ID, layout: decodeLayout(d)}
	snapshots, traffic := d.Bool(), d.Bool()
	news, err := decodeGuarantees(d)
	if err != nil {
		c.conn.lose(err)
		return nil, c.errGone("open sandbox " + spec.ID)
	}
	if news != nil {
		c.learn(*news)
	}
	switch {
	case snapshots && traffic:
		return struct {
			*box
			snapshotter
			meter
		}{b, snapshotter{b}, meter{b}}, nil
	case snapshots:
		return struct {
			*box
			snapshotter
		}{b, snapshotter{b}}, nil
	case traffic:
		return struct {
			*box
			meter
		}{b, meter{b}}, nil
	}
	return b, nil
}

// closeTime bounds how long the other end may take to end what it holds.
const closeTime = 2 * time.Minute

// Close ends all sandboxes and the other end.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		c.closing = true
		c.mu.Unlock()
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
		defer cancel()
		if _, err := c.call(ctx, methodBye, &message{}); err != nil && c.conn.lost() == nil {
			c.closeErr = fmt.Errorf("close the sandbox agent: %w", err)
		}
		c.conn.lose(errClosed)
		c.watch.stop()
	})
	return c.closeErr
}

var errClosed = errors.New("backend is closed")

// errGone is what all fails with once the connection has ended.
func (c *Client) errGone(what string) error {
	return fmt.Errorf("%s: %w: %w", what, sandbox.ErrGone, c.conn.lost())
}

// lost ends all commands, when the connection has ended.
func (c *Client) lost() {
	c.watch.stop()
	c.mu.Lock()
	processes, closing := c.processes, c.closing
	c.processes = map[uint64]*process{}
	c.mu.Unlock()
	for _, p := range processes {
		p.lost(c.errGone("sandbox " + p.box.name))
	}
	if !closing {
		c.opts.Logger.Error("a sandbox agent is lost", "backend", c.Guarantees().Backend, "err", c.conn.lost())
	}
}
