package place

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"trajgen/tools/web/source"
)

// Connect connects to the browser. Each message ends with a zero byte, both ways, as over the pipes of a browser in a sandbox.
func (r *Remote) Connect(ctx context.Context) (io.ReadWriteCloser, error) {
	conn, err := remote.DialContext(ctx, r.Socket)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // which has the address, and keys that are in it
			err = wrapped.Err
		}
		c := r.place.client
		return nil, c.Errorf(source.Outage, source.Unavailable, "its browser cannot be reached: %s", c.Excerpt(err.Error()))
	}
	return &pipe{conn: conn}, nil
}

// message is a cdproto.Message that keeps an empty result when it is written: without one, it would not be an answer.
type message struct {
	ID        int64              `json:"id,omitzero"`
	SessionID target.SessionID   `json:"sessionId,omitzero"`
	Method    cdproto.MethodType `json:"method,omitzero"`
	Params    jsonv2.Value       `json:"params,omitzero"`
	Result    jsonv2.Value       `json:"result,omitzero"`
	Error     *cdproto.Error     `json:"error,omitzero"`
}

// pipe is a web socket as a pair of pipes. One goroutine reads, and any number write.
type pipe struct {
	conn *remote.Conn
	rest []byte // of the message that is being read

	mu      sync.Mutex // guards written
	written []byte     // the beginning of a message
}

func (p *pipe) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		var msg cdproto.Message
		if err := p.conn.Read(context.Background(), &msg); err != nil { // Close ends it
			return 0, err
		}
		text, err := jsonv2.Marshal(message(msg), chromedp.DefaultMarshalOptions)
		if err != nil {
			return 0, err
		}
		p.rest = append(text, 0)
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pipe) Write(part []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, part...)
	for {
		text, rest, whole := bytes.Cut(p.written, []byte{0})
		if !whole {
			return len(part), nil
		}
		var msg cdproto.Message
		if err := jsonv2.Unmarshal(text, &msg, chromedp.DefaultUnmarshalOptions); err != nil {
			return 0, err
		}
		if err := p.conn.Write(context.Background(), &msg); err != nil {
			return 0, err
		}
		p.written = append(p.written[:0], rest...)
	}
}

func (p *pipe) Close() error { return p.conn.Close() }
