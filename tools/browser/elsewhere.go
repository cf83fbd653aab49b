package browser

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"trajgen/sandbox"
	"trajgen/tools/browser/place"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// engine is where a browser runs.
type engine interface {
	// pipes are what the browser says and what it is told, and what ends both.
	pipes() (from io.Reader, to io.Writer, end func() error)
	// over is closed when the browser has ended, for which why is the reason.
	over() <-chan struct{}
	why() error
	// kill ends the browser and waits until it is gone.
	kill() error
}

// start starts a browser: in the episode's sandbox, or elsewhere, where the sandbox is nil.
func (b *Browser) start(ctx context.Context, in Opener) (engine, sandbox.Sandbox, error) {
	if b.elsewhere() {
		e, err := rent(ctx, b.cfg.Place)
		return e, nil, err
	}
	box, err := in(ctx)
	if err != nil {
		return nil, nil, err
	}
	more := slices.Clone(b.cfg.flags)
	if mode := b.cfg.View.Mode(); mode == web.Replay || mode == web.Corpus {
		more = append(more, offline)
	}
	p, err := launch(ctx, box, b.cfg.Settings.Program, more...)
	return p, box, err
}

// elsewhere says that the browser does not run in the sandbox, whose loopback, network and files are none of its.
func (b *Browser) elsewhere() bool { return b.cfg.Place != nil }

// rented is a browser at a place.
type rented struct {
	remote *place.Remote
	conn   io.ReadWriteCloser // nil for one that does not speak CDP
	ended  chan struct{}
	once   sync.Once
}

func rent(ctx context.Context, p *place.Place) (*rented, error) {
	remote, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	e := &rented{remote: remote, ended: make(chan struct{})}
	if remote.Tab == nil {
		if e.conn, err = remote.Connect(ctx); err != nil {
			return nil, errors.Join(err, remote.Close())
		}
	}
	return e, nil
}

func (e *rented) pipes() (io.Reader, io.Writer, func() error) { return e, e.conn, e.conn.Close }

// Read reads from the browser. The end of the connection is its end.
func (e *rented) Read(p []byte) (int, error) {
	n, err := e.conn.Read(p)
	if err != nil {
		e.end()
	}
	return n, err
}

func (e *rented) end() { e.once.Do(func() { close(e.ended) }) }

func (e *rented) over() <-chan struct{} { return e.ended }

func (e *rented) why() error {
	return source.Errorf(source.Outage, source.Unavailable, "the browser at %s has ended, or the connection to it", e.remote.Provider)
}

func (e *rented) kill() error {
	var err error
	if e.conn != nil {
		err = e.conn.Close()
	}
	e.end()
	return errors.Join(err, e.remote.Close())
}

// apart gives the episode a context of its own in a browser that is not its own, which ends with the connection.
func (r *running) apart(ctx context.Context) error {
	if e, ok := r.proc.(*rented); !ok || !e.remote.Shared {
		return nil
	}
	made, err := cdp.Call(ctx, r.session, target.CreateBrowserContext, target.CreateBrowserContextParams{DisposeOnDetach: new(true)})
	r.context = made.BrowserContextID
	return err
}

// leave lets a page go on that is not the episode's.
func (r *running) leave(id target.SessionID) {
	ctx, cancel := context.WithTimeout(r.life, tabTime)
	defer cancel()
	_, _ = cdp.Call(ctx, r.session, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: id})
}
