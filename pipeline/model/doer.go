package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
)

const (
	maxReply = 64 << 20 // bytes of a reply on the wire; a server that sends more is broken
	maxError = 1 << 20  // bytes of an error's body
	maxDrain = 64 << 10 // bytes read on Close so that the connection can be used again

	connBuffer = 1 << 10 // bytes, of each direction
	// drainTime bounds the reading on Close: a server may keep the body open after its last event.
	drainTime = 100 * time.Millisecond
)

// exchange is the record of one try. Its HTTP client replaces the body that go-openai sends and keeps the raw reply, as
// go-openai can neither send nor keep all fields.
type exchange struct {
	api           *openai.Client             // of the endpoint that is asked
	fields        map[string]json.RawMessage // merged into the body; a null takes the field out
	episode, task string
	stream        bool
	idle, timeout time.Duration
	cancel        context.CancelCauseFunc
	messages      []byte // a JSON list without the bracket at its end
	images        []inlined
	tools         json.RawMessage

	taped *taped // nil without a tape

	limitField string // the name of the limit of a reply; empty when none is sent
	seedless   bool   // no seed is sent
	resampled  int    // earlier tries with a useless reply; added to the seed

	// Set by the doer.
	status int
	header http.Header
	raw    bytes.Buffer // the body of anything but a stream
	reply  *assembler   // of a stream
	broken error        // reading the body ended with this
	masked bool         // a secret was taken out of the answer
}

// doer sends the exchanges of one client.
type doer struct {
	cfg       Config
	http      *http.Client
	good, bad *mask
}

func newDoer(cfg Config) *doer {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	good, bad := cfg.masks()
	return &doer{cfg: cfg, good: good, bad: bad, http: &http.Client{
		Transport: unpacking{&http.Transport{
			Proxy:                 proxying(cfg.Proxy),
			DialContext:           dialing(dialer.DialContext),
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   15 * time.Second,
			ExpectContinueTimeout: time.Second,
			IdleConnTimeout:       90 * time.Second,
			// The default of two makes every busy run dial for nearly each request.
			MaxIdleConns:        0,
			MaxIdleConnsPerHost: cfg.Concurrency,
			DisableCompression:  true, // replies are small, and a compressed stream comes late
			// Thousands of connections wait for a reply, and large reads and writes bypass the buffers.
			ReadBufferSize: connBuffer, WriteBufferSize: connBuffer,
		}},
		// A redirected POST would arrive as a GET without its body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// proxying uses no proxy for Unix sockets.
func proxying(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(req *http.Request) (*url.URL, error) {
		if proxy == nil || socketOf(req.URL.Host) != "" {
			return nil, nil
		}
		return proxy(req)
	}
}

// do sends the request with the body of the exchange, and records the answer there.
func (d *doer) do(req *http.Request, x *exchange) (*http.Response, error) {
	if err := d.prepare(req, x); err != nil {
		return nil, err
	}
	silence := time.AfterFunc(x.idle, func() { x.cancel(errIdle) })
	if !x.stream {
		silence.Stop() // the headers come with the whole reply, so only the timeout applies until then
	}
	resp, err := d.roundTrip(req, x)
	if err != nil {
		silence.Stop()
		return nil, err
	}
	silence.Reset(x.idle)
	x.status, x.header = resp.StatusCode, resp.Header
	body := &watched{ReadCloser: resp.Body, x: x, silence: silence}
	good := resp.StatusCode/100 == 2
	if x.stream && good {
		x.reply = &assembler{}
		resp.Body = body
		return resp, nil
	}
	defer body.Close()
	limit := int64(maxReply + 1) // watched returns an error beyond maxReply
	if !good {
		limit = maxError
	}
	if _, err := io.Copy(&x.raw, io.LimitReader(body, limit)); err != nil && good {
		return nil, x.broken // of an error's body a part is enough
	}
	resp.Body = io.NopCloser(bytes.NewReader(x.raw.Bytes()))
	if good && x.messages != nil { // a reply is read from the raw bytes; the library would decode it all for nothing
		resp.Body = io.NopCloser(bytes.NewReader([]byte("{}")))
	}
	return resp, nil
}

// prepare puts the real body and headers into the request.
func (d *doer) prepare(req *http.Request, x *exchange) error {
	for name, value := range d.cfg.Headers {
		req.Header.Set(name, value)
	}
	if d.cfg.TraceHeaders {
		if x.episode != "" {
			req.Header.Set("X-Trajgen-Episode", url.PathEscape(x.episode))
		}
		if x.task != "" {
			req.Header.Set("X-Trajgen-Task", url.PathEscape(x.task))
		}
	}
	if req.Body == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	err := json.NewDecoder(req.Body).Decode(&fields)
	req.Body.Close()
	if err != nil {
		return fmt.Errorf("read request body: %w", err)
	}
	maps.Copy(fields, x.fields)
	short := shortFields(fields)
	x.taped.asked(short, x.messages, x.tools)
	// Messages and tools may be long, and requests share the tools: they are sent without a copy.
	before, after := slices.Concat(short[:len(short)-1], []byte(`,"messages":`)), net.Buffers{[]byte("]}")}
	if len(x.tools) > 0 {
		after = net.Buffers{[]byte(`],"tools":`), x.tools, []byte("}")}
	}
	body, size := d.body(x, before, after)
	req.ContentLength = size
	req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
	req.Body = body()
	return nil
}

// shortFields is an object of the fields but for messages, tools and those that are null. The model is in it.
func shortFields(fields map[string]json.RawMessage) json.RawMessage {
	var list []episode.Member
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value := fields[name]; string(value) != "null" && name != "messages" && name != "tools" {
			list = append(list, episode.Member{Name: name, Value: value})
		}
	}
	return episode.Object(list)
}

// watched is a body whose reads reset the idle timer, and whose Close keeps the connection usable.
type watched struct {
	io.ReadCloser
	x       *exchange
	silence *time.Timer
	read    int64
	end     error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.silence.Reset(w.x.idle)
		if w.x.reply != nil {
			w.x.reply.Write(p[:n])
		}
	}
	if w.read += int64(n); w.read > maxReply && err == nil {
		err = &refusal{class: ClassReplyTooLarge, message: fmt.Sprintf("the reply is longer than %d MiB", maxReply>>20)}
	}
	if w.end = err; err != nil && err != io.EOF {
		w.x.broken = fmt.Errorf("read reply: %w", err)
	}
	if err == nil && w.x.reply != nil && w.x.reply.done { // go-openai only recognizes a terminator on a line of its own
		err = io.EOF
	}
	return n, err
}

// Close reads a finished stream to its end first, since net/http closes a connection with unread bytes.
func (w *watched) Close() error {
	w.silence.Stop()
	if w.end == nil && w.x.reply != nil && w.x.reply.done {
		timer := time.AfterFunc(drainTime, func() { w.x.cancel(nil) })
		io.CopyN(io.Discard, w.ReadCloser, maxDrain)
		timer.Stop()
	}
	return w.ReadCloser.Close()
}

// retryAfter reads the pause that the server's headers ask for.
func (d *doer) retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return seconds(s)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, _ := http.ParseTime(d.clock(h))
	return max(at.Sub(now), 0)
}

// clock is the server's time if the headers have it, as ours may be minutes off.
func (d *doer) clock(h http.Header) string {
	date := h.Get("Date")
	if _, err := http.ParseTime(date); err != nil {
		return d.cfg.Now().UTC().Format(http.TimeFormat)
	}
	return date
}

// jittered adds up to a tenth at random, so that calls with the same Retry-After do not all retry at the same moment.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/10+1))
}

// requestID is the id by which the server's operator can find this exchange.
func requestID(h http.Header) string {
	id := h.Get("X-Request-Id")
	for _, s := range servers {
		id = cmp.Or(id, h.Get(s.requestID))
	}
	return id
}
