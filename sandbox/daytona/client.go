package daytona

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// requestTime bounds one request.
	requestTime = 2 * time.Minute
	// patience bounds how long a request is retried, after a throttle or when the server was not reached.
	patience = 2 * time.Minute
	// maxReply bounds a reply, in bytes.
	maxReply = 16 << 20
)

// client sends REST requests.
type client struct {
	http   *http.Client
	config config
	logger *slog.Logger
}

func newClient(c config, logger *slog.Logger) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &client{http: &http.Client{Transport: transport, Timeout: requestTime}, config: c, logger: logger}
}

// failure is an error reply.
type failure struct {
	status  int
	message string
	after   time.Duration // time until a retry, if the reply has it
}

func (f *failure) Error() string {
	why := map[int]string{
		http.StatusBadRequest:          "Daytona refuses the request",
		http.StatusUnauthorized:        "Daytona refuses the key in DAYTONA_API_KEY",
		http.StatusPaymentRequired:     "Daytona wants to be paid, or the organization's quota is used up",
		http.StatusForbidden:           "Daytona does not let this key do this, or the organization's quota is used up",
		http.StatusNotFound:            "Daytona does not know this",
		http.StatusConflict:            "Daytona is busy with it",
		http.StatusUnprocessableEntity: "Daytona refuses the request",
		http.StatusTooManyRequests:     "Daytona limits the rate of requests",
	}[f.status]
	if why == "" {
		why = "Daytona failed"
	}
	return fmt.Sprintf("%s (status %d): %s", why, f.status, f.message)
}

func isStatus(err error, status int) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.status == status
}

// refusal reports whether a failed request certainly had no effect: it never arrived, or it was refused.
func refusal(err error) bool {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status < 500
	}
	return unreached(err)
}

func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// request describes a request.
type request struct {
	method      string
	url         string
	query       url.Values
	body        []byte
	contentType string
	// again says that the request may be repeated whatever its effect was.
	again bool
}

// ask sends a request to the API itself.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, body, reply any) error {
	r := request{method: method, url: c.config.server + path, query: query, again: method == http.MethodGet || method == http.MethodDelete}
	if body != nil {
		content, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r.body, r.contentType = content, "application/json"
	}
	return c.do(ctx, r, reply)
}

// do sends a request until it is answered. It does not repeat one that may have had an effect.
func (c *client) do(ctx context.Context, r request, reply any) error {
	began := time.Now()
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := c.once(ctx, r, reply)
		wait, ok := c.again(err, r.again, pause)
		if !ok || time.Since(began)+wait > patience {
			return err
		}
		c.logger.Debug("a request to Daytona is made again", "method", r.method, "path", r.url, "after", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// again reports whether a request may be retried, and when.
func (c *client) again(err error, harmless bool, pause time.Duration) (time.Duration, bool) {
	if f, ok := errors.AsType[*failure](err); ok {
		switch {
		case f.status == http.StatusTooManyRequests:
			return max(f.after, pause), true
		case f.status >= 500:
			return max(f.after, pause), harmless
		}
		return 0, false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return 0, false
	}
	if unreached(err) {
		return pause, true
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return pause, harmless
	}
	return 0, false
}

func (c *client) once(ctx context.Context, r request, reply any) error {
	q, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	q.URL.RawQuery = r.query.Encode()
	c.sign(q.Header)
	q.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		q.Header.Set("Content-Type", r.contentType)
	}
	answer, err := c.http.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("Daytona cannot be reached: %w", err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxReply))
	if answer.StatusCode >= 300 {
		return refused(answer, content)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, q.URL.Path, err)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(content, reply); err != nil {
		return fmt.Errorf("%s %s: the reply is not what it should be: %w", r.method, q.URL.Path, err)
	}
	return nil
}

// sign adds the credentials.
func (c *client) sign(h http.Header) {
	h.Set("Authorization", "Bearer "+c.config.key)
	h.Set("X-Daytona-Source", "trajgen")
	if c.config.organization != "" {
		h.Set("X-Daytona-Organization-ID", c.config.organization)
	}
}

func refused(answer *http.Response, content []byte) *failure {
	f := &failure{status: answer.StatusCode}
	var said struct {
		Message any    `json:"message"` // a string or a list of strings
		Error   string `json:"error"`
	}
	switch err := json.Unmarshal(content, &said); {
	case err == nil && said.Message != nil:
		f.message = fmt.Sprint(said.Message)
	case err == nil && said.Error != "":
		f.message = said.Error
	default:
		f.message = strings.TrimSpace(string(content[:min(len(content), 500)]))
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		f.after = time.Duration(seconds) * time.Second
	}
	return f
}
