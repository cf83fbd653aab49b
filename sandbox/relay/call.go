package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// call asks for something and takes the answer. When ctx ends first, the other end learns of it, and call returns the cause.
func (c *Client) call(ctx context.Context, method string, m *message) (*wire.Decoder, error) {
	body, err := c.ask(ctx, method, m, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	d, err := c.answer(ctx, method, body)
	toEnd(body)
	return d, err
}

// toEnd waits for the end of an answer: a request that is ended before is thought to be given up.
func toEnd(answer io.Reader) { _, _ = answer.Read(make([]byte, 1)) }

// ask sends a request, with what follows its message, if anything does. It returns what the other end answers.
func (c *Client) ask(ctx context.Context, method string, m *message, rest io.ReadCloser) (io.ReadCloser, error) {
	switch {
	case ctx.Err() != nil:
		return nil, c.failed(ctx, context.Cause(ctx))
	case c.closing.Load() && method != methodBye:
		return nil, fmt.Errorf("%w: %w", errClosed, sandbox.ErrGone)
	case m.length() > longestCall(method):
		return nil, fmt.Errorf("ask with %d bytes: %w", m.length(), syscall.E2BIG)
	}
	said := m.framed()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+method, &said)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(m.length() + headSize)
	if rest != nil {
		request.ContentLength = -1
		request.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&said, rest), rest}
	}
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, c.failed(ctx, fmt.Errorf("%w: status %d", wire.ErrMalformed, response.StatusCode))
	}
	return response.Body, nil
}

// answer takes a message of an answer.
func (c *Client) answer(ctx context.Context, method string, body io.Reader) (*wire.Decoder, error) {
	d, err := hear(body, longestAnswer(method))
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	err = decodeError(d)
	if d.Err() != nil {
		return nil, c.failed(ctx, d.Err())
	}
	return d, err
}

// failed says why a request failed, which is the end of the connection unless it was given up.
func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && c.link.lost() == nil {
		return context.Cause(ctx)
	}
	c.link.lose(fmt.Errorf("%w: %w", errBroken, err))
	return fmt.Errorf("%w: %w", sandbox.ErrGone, c.link.lost())
}

// held is a request that lasts as long as what it has made at the other end: to give it up is to end that.
type held struct {
	client *Client
	life   context.Context // of the request
	end    context.CancelFunc
	heard  io.ReadCloser // what the answer goes on with
}

// hold makes something that lives no longer than life. ctx covers the making. Rest, if any, is what follows the message.
func (c *Client) hold(ctx, life context.Context, method string, m *message, rest io.ReadCloser) (*held, *wire.Decoder, error) {
	h := &held{client: c}
	h.life, h.end = context.WithCancel(life)
	stop := context.AfterFunc(ctx, h.end)
	var d *wire.Decoder
	var err error
	if h.heard, err = c.ask(h.life, method, m, rest); err == nil {
		d, err = c.answer(h.life, method, h.heard)
	}
	if !stop() && c.link.lost() == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.end()
	}
	return h, d, err
}

// release has the other end end what was made, and takes what it says to that.
func (h *held) release(method string, id int64) (*wire.Decoder, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
	defer cancel()
	defer h.end()
	var m message
	m.Int(id)
	return h.client.call(ctx, method, &m)
}
