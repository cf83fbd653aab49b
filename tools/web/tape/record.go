package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/outputs/log/index"
	"trajgen/tools/web/source"
)

// Options say how a recording is made.
type Options struct {
	// More goes on with a recording. Without it one that holds something is refused.
	More bool
	// Secrets are values that the recording must not have, such as the keys of providers. They are taken out of URLs and bodies.
	Secrets []string
	Now     func() time.Time
}

// Recorder records onto a tape. It is used from many goroutines. The first error of the disk is the last thing that it does:
// every request afterwards gets the same error.
type Recorder struct {
	index   *index.Writer
	secrets secrets
	now     func() time.Time
	session int
}

// Create opens the recording in a directory for writing. What a killed writer left half-written is cut off. The recorder is
// the only one in the directory.
func Create(dir string, o Options) (*Recorder, error) {
	r := &Recorder{secrets: o.Secrets, now: o.Now}
	exchanges := 0
	w, err := kind.Create(dir, func(record []byte) error {
		x := &exchange{}
		if err := json.Unmarshal(record, x); err != nil {
			return err
		}
		exchanges++
		r.session = max(r.session, x.Session)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if exchanges > 0 && !o.More {
		err := fmt.Errorf("%s holds %d exchanges of another run: --resume goes on, another directory starts one", dir, exchanges)
		return nil, errors.Join(err, w.Close())
	}
	r.index = w
	r.session++
	return r, nil
}

// Recording is what is recorded of an attempt at an episode.
type Recording struct {
	recorder *Recorder
	episode  string
	attempt  int
	begun    atomic.Int64 // requests
}

// Play begins to record an attempt. One that an earlier process recorded, and that is played again, replaces what it recorded.
func (r *Recorder) Play(episode string, attempt int) *Recording {
	return &Recording{recorder: r, episode: episode, attempt: attempt}
}

// Transport records what live answers to a tool call. Provider says who is asked, and in which version of our requests: it is a part
// of what a replay looks up. A live error is a *source.Error, unless the caller cancelled the request.
func (p *Recording) Transport(call, provider string, live http.RoundTripper) http.RoundTripper {
	return &recording{play: p, call: call, provider: provider, live: live}
}

// Whole is a transport whose answers are recorded with all of their headers: cookies and policies decide what a browser does with a
// page.
type Whole interface {
	http.RoundTripper
	Whole()
}

type recording struct {
	play           *Recording
	call, provider string
	live           http.RoundTripper
}

// RoundTrip sends the request. The exchange is recorded when the body has been read or closed.
func (t *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	r := t.play.recorder
	order := int(t.play.begun.Add(1) - 1)
	a, body, kept, err := r.secrets.read(req, t.provider)
	if err != nil {
		return nil, err
	}
	if err := r.index.Failed(); err != nil {
		return nil, unusable(err)
	}
	x := &exchange{
		Episode: t.play.episode, Attempt: t.play.attempt, Session: r.session, Order: order, Call: t.call, asked: a,
		Began: r.now().UnixMilli(),
	}
	o := &open{x: x, sent: kept, began: r.now(), ctx: req.Context(), names: t.names(), secrets: r.secrets, now: r.now, keep: r.keep}
	return o.send(req, body, t.live)
}

// send makes the request, whose answer is kept when its body has been read or closed.
func (o *open) send(req *http.Request, body []byte, live http.RoundTripper) (*http.Response, error) {
	x, again := o.x, req.Clone(req.Context())
	again.Body = http.NoBody
	if len(body) > 0 {
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := live.RoundTrip(again)
	if err != nil {
		return nil, o.fail(err)
	}
	x.Status, x.Header, x.Length = resp.StatusCode, o.secrets.came(resp.Header, o.names), resp.ContentLength
	if size(x.Header) > maxHeader {
		x.Status, x.Header, x.Length = 0, nil, 0
		tooLarge := source.Errorf(source.Outage, source.TooLarge, "%s %s: headers of more than %d KB", x.Method, x.URL, maxHeader>>10)
		return nil, errors.Join(o.fail(tooLarge), resp.Body.Close())
	}
	o.ReadCloser = resp.Body
	o.bodiless = req.Method == http.MethodHead || x.Status == http.StatusNoContent || x.Status == http.StatusNotModified
	resp.Body = o
	return resp, nil
}

// names are the headers that are kept of an answer; nil for all.
func (t *recording) names() []string {
	if _, ok := t.live.(Whole); ok {
		return nil
	}
	return cameHeaders
}

// open is an exchange that goes on, and the body of its response.
type open struct {
	io.ReadCloser
	x        *exchange
	sent     []byte
	ctx      context.Context
	began    time.Time
	bodiless bool
	names    []string // of the headers that are kept
	secrets  secrets
	now      func() time.Time
	keep     func(x *exchange, sent, body []byte) error

	mu    sync.Mutex // Close may come while Read waits
	kept  bytes.Buffer
	read  int64
	ended error // what further reads get
}

func (o *open) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept.Write(p[:min(n, maxBody-o.kept.Len())])
	o.read += int64(n)
	switch {
	case err == nil:
		return n, nil
	case o.ended != nil:
		return n, o.ended
	case err == io.EOF:
		o.x.Cut = o.read > int64(o.kept.Len())
		if o.ended = o.record(); o.ended == nil {
			o.ended = io.EOF
		}
	default:
		o.ended = o.fail(err)
	}
	return n, o.ended
}

// Close records what was read of the body.
func (o *open) Close() error {
	err := o.ReadCloser.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended != nil {
		return err
	}
	whole := o.bodiless || o.x.Length >= 0 && o.read >= o.x.Length
	o.x.Cut = !whole || o.read > int64(o.kept.Len())
	o.ended = http.ErrBodyReadAfterClose
	return errors.Join(err, o.record())
}

// fail records an error of the transport, and returns it as a replay will. A request that its caller gave up is not recorded.
func (o *open) fail(err error) error {
	if errors.Is(o.ctx.Err(), context.Canceled) {
		return context.Cause(o.ctx)
	}
	failed, ok := errors.AsType[*source.Error](err)
	if !ok {
		why := o.secrets.without([]byte(err.Error()))
		failed = source.Errorf(source.Outage, source.Unavailable, "%s %s: %s", o.x.Method, o.x.URL, why)
	}
	message := strings.ToValidUTF8(failed.Message[:min(len(failed.Message), maxError)], "")
	o.x.Failure = &failure{failed.Class, failed.Blame, message}
	if err := o.record(); err != nil {
		return err
	}
	return o.x.Failure.error()
}

// record keeps the exchange.
func (o *open) record() error {
	o.x.Took = o.now().Sub(o.began).Microseconds()
	body := o.secrets.without(o.kept.Bytes())
	o.x.Bytes = len(body)
	return o.keep(o.x, o.sent, body)
}

// keep writes an exchange.
func (r *Recorder) keep(x *exchange, sent, body []byte) error {
	var err, unsent error
	x.Body, err = r.index.Keep(body)
	x.SentBody, unsent = r.index.Keep(sent)
	if err = errors.Join(unsent, err); err != nil {
		return unusable(err)
	}
	record, err := json.Marshal(x)
	if err != nil {
		return unusable(err)
	}
	if err := r.index.Add(record); err != nil {
		return unusable(err)
	}
	return nil
}

// Sync returns when everything that was recorded before is on the disk. It is called before the rows that rest on it are kept.
func (r *Recorder) Sync() error { return r.index.Sync() }

// Close ends the recording.
func (r *Recorder) Close() error { return r.index.Close() }
