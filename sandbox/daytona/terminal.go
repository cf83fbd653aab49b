package daytona

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"trajgen/sandbox/internal/rented"
)

const (
	// maxPart bounds one message, in bytes: the toolbox accepts at most twice as much.
	maxPart = 32 << 10
	// noise bounds what a login shell may print before the agent begins.
	noise = 1 << 20
	// beginTime bounds how long the agent takes to begin.
	beginTime = time.Minute
	// A terminal echoes what is typed, so the marks are typed in another form than they are printed.
	markBegin = "trajgen-begins"
	markAgent = "trajgen-agent"
)

// terminal is a terminal of a machine, over a WebSocket. Once the agent runs, it is a plain stream of bytes.
type terminal struct {
	machine *machine
	id      string
	socket  *websocket.Conn

	rest    []byte // read from the socket and not yet returned
	closing sync.Once
	err     error
}

// terminal makes a terminal.
func (m *machine) terminal(ctx context.Context) (*terminal, error) {
	t := &terminal{machine: m, id: "trajgen-" + strings.ToLower(rand.Text()[:12])}
	body, err := json.Marshal(map[string]any{"id": t.id, "cwd": "", "rows": 24, "cols": 200})
	if err != nil {
		return nil, err
	}
	// A second terminal with the same name is refused, so the request can be repeated.
	err = m.service.do(ctx, request{method: http.MethodPost, url: m.toolbox + "/process/pty", body: body, contentType: "application/json", again: true}, nil)
	if err != nil && !isStatus(err, http.StatusConflict) {
		return nil, fmt.Errorf("make a terminal in machine %s: %w", m.id, err)
	}
	if err := t.connect(ctx); err != nil {
		return nil, fmt.Errorf("connect to the terminal of machine %s: %w", m.id, err)
	}
	return t, nil
}

func (t *terminal) url() string { return t.machine.toolbox + "/process/pty/" + url.PathEscape(t.id) }

func (t *terminal) connect(ctx context.Context) error {
	where, err := url.Parse(t.url() + "/connect")
	if err != nil {
		return err
	}
	origin := *where
	where.Scheme = strings.Replace(where.Scheme, "http", "ws", 1)
	c := websocket.Config{Location: where, Origin: &origin, Version: websocket.ProtocolVersionHybi13, Header: http.Header{}, TlsConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	t.machine.service.sign(c.Header)
	if t.socket, err = c.DialContext(ctx); err != nil {
		return err
	}
	t.socket.PayloadType = websocket.BinaryFrame
	stop := context.AfterFunc(ctx, func() { _ = t.socket.SetDeadline(time.Now()) })
	defer stop()
	// Output may arrive before the message of success.
	for len(t.rest) < noise {
		m, err := t.receive()
		if err != nil {
			return errors.Join(err, t.socket.Close())
		}
		if m.kind != websocket.TextFrame {
			t.rest = append(t.rest, m.data...)
			continue
		}
		var said struct{ Type, Status, Error string }
		if err := json.Unmarshal(m.data, &said); err != nil || said.Type != "control" {
			t.rest = append(t.rest, m.data...)
			continue
		}
		if said.Status != "connected" {
			return errors.Join(errors.New(said.Error), t.socket.Close())
		}
		return nil
	}
	return errors.Join(errors.New("it says too much"), t.socket.Close())
}

// start makes the terminal's shell start the agent, and returns what it reports of the image.
func (t *terminal) start(ctx context.Context, agent string) (rented.Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTime, fmt.Errorf("no agent in %v", beginTime))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = t.socket.SetDeadline(time.Now()) })
	defer stop()
	fail := func(err error) (rented.Image, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return rented.Image{}, fmt.Errorf("%w; the terminal said %q", err, tail(t.rest))
	}
	// Its parent is the login shell, which started with the image's environment, before any profile.
	script := `stty raw -echo -iexten && printf "trajgen-%s\n" begins && pwd && cat /proc/$PPID/environ && printf "\ntrajgen-%s\n" agent && exec ` +
		agent + ` trajgen-helper agent bare 2>/dev/null`
	if _, err := t.Write([]byte(" sh -c '" + script + "'; exit\r")); err != nil {
		return fail(err)
	}
	head, err := t.until("\n" + markAgent + "\n")
	if err != nil {
		return fail(err)
	}
	_, head, ok := bytes.Cut(head, []byte(markBegin+"\n"))
	if !ok {
		return fail(errors.New("the agent began without a word"))
	}
	if !stop() {
		return fail(context.Cause(ctx))
	}
	workdir, environ, _ := strings.Cut(string(head), "\n")
	return rented.Image{Workdir: workdir, Env: rented.Environment(environ, "DAYTONA_")}, nil
}

func tail(said []byte) string { return string(said[max(0, len(said)-500):]) }

// until reads up to a mark and returns what is before it.
func (t *terminal) until(mark string) ([]byte, error) {
	for {
		if before, after, ok := bytes.Cut(t.rest, []byte(mark)); ok {
			t.rest = after
			return before, nil
		}
		if len(t.rest) > noise {
			return nil, fmt.Errorf("the login shell printed more than %d bytes before the agent began", noise)
		}
		m, err := t.receive()
		if err != nil {
			return nil, err
		}
		t.rest = append(t.rest, m.data...)
	}
}

// framed is a message and its kind.
type framed struct {
	kind byte
	data []byte
}

var codec = websocket.Codec{
	Unmarshal: func(data []byte, kind byte, v any) error {
		*v.(*framed) = framed{kind, data}
		return nil
	},
}

func (t *terminal) receive() (framed, error) {
	var m framed
	err := codec.Receive(t.socket, &m)
	return m, err
}

// Read returns the agent's output. At the end the error says why.
func (t *terminal) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		m, err := t.receive()
		if err != nil {
			return 0, t.ended(err)
		}
		t.rest = m.data
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// ended explains why a terminal's connection ended.
func (t *terminal) ended(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection to the terminal of machine %s: %w", t.machine.id, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch err := t.machine.service.once(ctx, request{method: http.MethodGet, url: t.url()}, nil); {
	case err == nil:
		return fmt.Errorf("Daytona ended the connection to the terminal of machine %s, perhaps because it was not read fast enough", t.machine.id)
	case isStatus(err, http.StatusNotFound):
		return fmt.Errorf("the agent on machine %s, or the machine, ended: %w", t.machine.id, io.EOF)
	default:
		return fmt.Errorf("the connection to machine %s ended: %w", t.machine.id, err)
	}
}

// Write sends input to the agent.
func (t *terminal) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		sent, err := t.socket.Write(p[n:min(len(p), n+maxPart)])
		n += sent
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close ends the connection. The terminal ends with the machine.
func (t *terminal) Close() error {
	t.closing.Do(func() { t.err = t.socket.Close() })
	return t.err
}
