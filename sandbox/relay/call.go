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

// call sends a request and reads its answer. When ctx ends first, the client cancels the request on the server, and call
// returns the cause.
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

// toEnd reads to the end of an answer: closing it earlier would cancel the request on the server.
func toEnd(answer io.Reader) { _, _ = answer.Read(make([]byte, 1)) }

// ask sends a request: its message and then rest, if any. It returns the body of the answer.
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

// answer reads one message of an answer.
func (c *Client) answer(ctx context.Context, method string, body io.Reader) (*wire.Decoder, error) {
	d, err := readMessage(body, longestAnswer(method))
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	err = decodeError(d)
	if d.Err() != nil {
		return nil, c.failed(ctx, d.Err())
	}
	return d, err
}

// failed returns the error of a request. An error that does not come from ctx ends the connection.
func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && c.link.lost() == nil {
		return context.Cause(ctx)
	}
	c.link.lose(fmt.Errorf("%w: %w", errBroken, err))
	return fmt.Errorf("%w: %w", sandbox.ErrGone, c.link.lost())
}

// held is a request that lasts as long as the object that it made on the server: cancelling the request ends the object.
type held struct {
	client *Client
	life   context.Context // of the request
	end    context.CancelFunc
	rest   io.ReadCloser // what follows the message of the answer
}

// hold makes an object that lives no longer than life. ctx covers the making. Rest, if any, follows the message of the request.
func (c *Client) hold(ctx, life context.Context, method string, m *message, rest io.ReadCloser) (*held, *wire.Decoder, error) {
	h := &held{client: c}
	h.life, h.end = context.WithCancel(life)
	stop := context.AfterFunc(ctx, h.end)
	var d *wire.Decoder
	var err error
	if h.rest, err = c.ask(h.life, method, m, rest); err == nil {
		d, err = c.answer(h.life, method, h.rest)
	}
	if !stop() && c.link.lost() == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.end()
	}
	return h, d, err
}

// release has the server end the object, and returns the answer.
func (h *held) release(method string, id int64) (*wire.Decoder, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
	defer cancel()
	defer h.end()
	var m message
	m.Int(id)
	return h.client.call(ctx, method, &m)
}
