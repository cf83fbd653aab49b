package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

const (
	maxTries      = 3 // of a connection
	maxReconnects = 5 // of an episode, or of a run with a shared server
)

// live is a server in an episode, or in the whole run if it is shared.
type live struct {
	server *server
	logger *slog.Logger
	// turn is held by a call of a server whose calls do not run side by side, and dialling by the goroutine that connects.
	turn, dialling *semaphore.Weighted

	mu         sync.Mutex // guards the rest
	closed     bool
	current    *conn
	connects   int
	connecting time.Duration // in all
	asked      int           // requests of the server to a model
	ending     sync.WaitGroup

	jitter *rand.Rand // held with dialling: episodes that lost the same server do not come back to it all at once
}

// newLive is a server before its first connection. Its pauses are drawn from key, the same whenever the episode is played.
func newLive(s *server, logger *slog.Logger, key episode.Key) *live {
	return &live{
		server: s, logger: logger.With("mcp", s.name), turn: semaphore.NewWeighted(1), dialling: semaphore.NewWeighted(1),
		jitter: key.Rand("mcp " + s.name),
	}
}

// of returns the server's state for a session.
func (s *server) of(session *registry.Session, logger *slog.Logger, attempt *Attempt) *live {
	if s.cfg.Shared {
		return s.shared
	}
	return registry.State(session, "mcp."+s.name, func() *live {
		var key episode.Key // the same for all calls outside of a run
		if attempt != nil {
			key = attempt.Key
		}
		l := newLive(s, logger, key)
		session.OnClose(func() {
			attempt.change(s.name, l.trace)
			l.close()
		})
		return l
	})
}

// connection returns the connection, and makes it when there is none that works. began is how many there had been.
func (l *live) connection(ctx context.Context, box opener) (*conn, error) {
	if c := l.working(); c != nil {
		return c, nil
	}
	if err := l.dialling.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.dialling.Release(1)
	if c := l.working(); c != nil {
		return c, nil
	}
	l.mu.Lock()
	closed, many := l.closed, l.connects > maxReconnects
	l.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case many:
		return nil, l.down(fmt.Errorf("it was lost %d times", maxReconnects+1), true)
	case !l.server.breaker.allows():
		return nil, l.down(errors.New("it failed in other episodes, too, and is left alone for a while"), true)
	}
	c, err := l.dial(ctx, box)
	l.server.breaker.result(err == nil || ctx.Err() != nil)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	if closed = l.closed; !closed {
		l.current = c
		l.connects++
	}
	l.mu.Unlock()
	if closed {
		c.close(ctx)
		return nil, errClosed
	}
	return c, nil
}

// dial connects, with some patience.
func (l *live) dial(ctx context.Context, box opener) (*conn, error) {
	began := l.server.set.opts.Now()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.connecting += l.server.set.opts.Now().Sub(began)
	}()
	l.mu.Lock()
	again := l.connects > 0 && l.server.cfg.URL != "" // a process in the sandbox is the episode's own
	l.mu.Unlock()
	var last error
	for try := range maxTries {
		select {
		case <-time.After(l.pause(try, again)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		limited, cancel := l.server.cfg.connecting(ctx)
		c, err := l.server.dial(limited, box)
		if err == nil && l.server.cfg.URL != "" && l.server.described.headed() {
			// The library takes the headers from what this connection has listed.
			if _, err = c.tools(limited); err != nil {
				c.close(ctx)
			}
		}
		late := context.Cause(limited)
		cancel()
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, sandbox.ErrGone):
			return nil, l.gone(err)
		case isDenied(err):
			return nil, l.server.denied(err)
		}
		if _, failed := errors.AsType[*registry.Failure](err); failed { // no sandbox
			return nil, err
		}
		if late != nil {
			err = late
		}
		last = err
		l.logger.Warn("mcp server does not connect", "try", try+1, "error", last.Error())
	}
	return nil, l.down(last, true)
}

// pause is the wait before a try to connect: nothing before the first, unless there was a connection before. It is drawn anew for
// each, from half to one and a half of what it is on average.
func (l *live) pause(try int, again bool) time.Duration {
	usual := pause << max(0, try-1)
	switch {
	case try == 0 && !again:
		return 0
	case try == 0:
		usual /= 2
	}
	return usual/2 + time.Duration(l.jitter.Int64N(int64(usual)))
}

var (
	pause    = time.Second     // between the first two tries to connect; it doubles
	pingTime = 5 * time.Second // for a sign of life
)

func (l *live) working() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.broken() == nil {
		return l.current
	}
	if l.current != nil {
		l.drop()
	}
	return nil
}

// drop gives up the current connection. The caller holds mu.
func (l *live) drop() {
	c := l.current
	l.current = nil
	l.ending.Go(func() { c.close(context.Background()) }) // its process may take a moment to die
}

// lost gives up a connection on which nothing more will come.
func (l *live) lost(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == c {
		l.drop()
	}
}

var errClosed = registry.Failf("closed", "the episode has ended")

// down is the failure of a server that is not there. With broken the episode ends: it is not the agent's doing.
func (l *live) down(err error, broken bool) *registry.Failure {
	return &registry.Failure{
		Class: "mcp_down", Status: episode.CallUnavailable, Broken: broken,
		Message: fmt.Sprintf("mcp server %s is not there: %s", l.server.name, err),
	}
}

// close ends the connection.
func (l *live) close() {
	l.mu.Lock()
	c := l.current
	l.closed = true
	l.mu.Unlock()
	if c != nil {
		if text := c.log(); text != "" {
			l.logger.Debug("mcp server's log", "stderr", text)
		}
		c.close(context.Background())
	}
	l.ending.Wait()
}

// request is what is asked of a server within a call.
type request struct {
	method     string // for messages
	idempotent bool   // it may be repeated after a broken connection
	arguments  json.RawMessage
}

// exchange asks the server. An error is a *registry.Failure, the context's, or of a lost sandbox.
func exchange[R any](ctx context.Context, call *inCall, ask func(ctx context.Context, c *conn) (*R, error)) (*R, error) {
	l := call.live
	if !l.server.cfg.Parallel {
		if err := l.turn.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer l.turn.Release(1)
	}
	for try := 0; ; try++ {
		c, err := l.connection(ctx, call.box)
		if err != nil {
			return nil, err
		}
		answer, err := once(ctx, c, call, ask)
		if err == nil {
			return answer, nil
		}
		failure, again := l.explain(ctx, c, call.request, err)
		if again && try == 0 {
			l.logger.Warn("mcp server was lost in a call that can be repeated", "call", call.request.method, "error", err.Error())
			continue
		}
		return nil, failure
	}
}

// once makes the request with its deadline.
func once[R any](ctx context.Context, c *conn, call *inCall, ask func(ctx context.Context, c *conn) (*R, error)) (*R, error) {
	limited, cancel := context.WithTimeout(ctx, call.server.cfg.timeout())
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	call.ctx = limited
	c.enter(call)
	defer c.leave(call)
	answer, err := ask(limited, c)
	call.about.Noise, call.about.Changed = int(c.noise.Load()), int(c.changes.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	call.about.Progress, call.about.Elicited, call.about.Asked = call.steps, call.elicited, call.inquiries
	return answer, err
}

// explain says what an error means, and whether the request may be made again, on another connection.
func (l *live) explain(ctx context.Context, c *conn, r request, err error) (failure error, again bool) {
	if ctx.Err() != nil {
		return ctx.Err(), false
	}
	if errors.Is(err, sandbox.ErrGone) {
		return l.gone(err), false
	}
	if isDenied(err) {
		return l.server.denied(err), false
	}
	err = l.server.redacted(err)
	if rpc, ok := rpcError(err); ok {
		return l.server.refused(r, rpc), false
	}
	if failed, ok := errors.AsType[*registry.Failure](err); ok {
		return failed, false
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return l.late(ctx, c, r), false
	}
	fault := c.broken()
	l.lost(c)
	if large, ok := errors.AsType[*tooLarge](errors.Join(fault, err)); ok {
		return registry.Failf("result_too_large", "mcp server %s: %s; ask for less", l.server.name, large), false
	}
	if fault == nil {
		fault = err
	}
	l.logger.Warn("mcp server was lost", "call", r.method, "error", fault.Error(), "stderr", c.log())
	if errors.Is(fault, sandbox.ErrGone) {
		return l.gone(fault), false
	}
	l.server.breaker.result(false)
	return l.down(fmt.Errorf("%w during %s; it is started anew for the next call", fault, r.method), false), r.idempotent
}

// gone is what the loss of a sandbox means: that of the shared servers is another one from the next call on.
func (l *live) gone(err error) error {
	if !l.server.cfg.Shared {
		return err
	}
	l.server.set.forget()
	return l.down(errors.New("its sandbox was lost"), false) // the cause would say that the episode's was
}

// late is the failure of a call whose time is up: the agent's, if the server still answers others.
func (l *live) late(ctx context.Context, c *conn, r request) error {
	limited, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if err := c.ping(limited); err != nil {
		l.lost(c)
		l.server.breaker.result(false)
		return l.down(fmt.Errorf("it answered neither %s nor a ping", r.method), false)
	}
	return &registry.Failure{
		Class: "timeout", Status: episode.CallTimeout,
		Message: fmt.Sprintf("%s did not finish within %s", r.method, l.server.cfg.timeout()),
	}
}

// ping asks for a sign of life. The newest protocol has no ping, so there it is a list.
func (c *conn) ping(ctx context.Context) error {
	if c.session.InitializeResult().ProtocolVersion >= "2026" {
		_, err := c.session.ListTools(ctx, &sdk.ListToolsParams{})
		return err
	}
	return c.session.Ping(ctx, nil)
}

// trace is what the row says of the connections.
func (l *live) trace(to *episode.MCPServer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.Connect, to.Reconnects = l.connecting, max(0, l.connects-1)
}

// raw is a text of the meta of what a server sent, which mend has put there.
func raw(meta sdk.Meta, key string) json.RawMessage {
	text, _ := meta[key].(string)
	return json.RawMessage(text)
}
