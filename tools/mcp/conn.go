package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/sandbox"
	"trajgen/tools/internal/program"
)

// Bounds of what is held of a connection.
const (
	maxLine  = 4 << 20  // bytes of a message
	maxInput = 16 << 20 // bytes that may wait for a process to read them
	keptLog  = 64 << 10 // of a process's standard error
)

// conn is a connection to a server, with its process if it has one.
type conn struct {
	session *sdk.ClientSession
	process *program.Process // nil with a URL
	output  *io.PipeReader   // of the process, messages alone
	wire    *wire            // nil with a process
	changed chan struct{}    // gets a value when the server says that its list has changed
	noise   atomic.Int64     // lines of output that were not messages
	changes atomic.Int64     // of its lists

	mu     sync.Mutex // guards what follows
	fault  error      // why its output is ignored from then on
	active []*inCall  // calls that it has to answer

	life    context.Context // until it is closed or nothing more can be read
	end     context.CancelFunc
	watched sync.WaitGroup
}

// dial connects to the server. box opens where a process runs. The connection outlives ctx.
func (s *server) dial(ctx context.Context, box opener) (c *conn, err error) {
	c = &conn{changed: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	var transport sdk.Transport
	if s.cfg.URL != "" {
		c.wire = &wire{server: s, fail: c.fail}
		transport = c.wire.transport()
	} else if transport, err = s.start(ctx, c, box); err != nil {
		c.end()
		return nil, err
	}
	lasts := context.AfterFunc(ctx, c.end)
	c.session, err = s.client(c).Connect(c.life, transport, nil)
	if !lasts() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if fault := c.broken(); fault != nil {
			err = fault
		}
		if text := c.log(); text != "" {
			err = fmt.Errorf("%w; its log ends with:\n%s", err, text)
		}
		c.close(ctx)
		return nil, s.redacted(err)
	}
	return c, nil
}

// redacted is an error that does not repeat the values of headers, as a server's answer may.
func (s *server) redacted(err error) error {
	text := err.Error()
	for _, name := range sortedKeys(s.headers) {
		if value := s.headers[name]; value != "" {
			text = strings.ReplaceAll(text, value, "["+s.cfg.HeaderEnv[name]+"]")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// client makes the library's client of a connection.
func (s *server) client(c *conn) *sdk.Client {
	notice := func() {
		c.changes.Add(1)
		select {
		case c.changed <- struct{}{}:
		default: // one is waiting
		}
	}
	options := &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // nil would announce roots
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { notice() },
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			c.progress(req.Params.ProgressToken)
		},
	}
	if s.cfg.Elicitation != nil {
		options.ElicitationHandler = c.elicit
	}
	if s.cfg.Sampling != nil {
		options.CreateMessageHandler = c.sample //lint:ignore SA1019 servers of old protocols ask this way
	}
	return sdk.NewClient(&sdk.Implementation{Name: "trajgen", Version: "1"}, options)
}

// opener opens where a process runs.
type opener func(ctx context.Context) (sandbox.Sandbox, error)

// start runs the server's command and connects the library to its streams.
func (s *server) start(ctx context.Context, c *conn, open opener) (sdk.Transport, error) {
	box, err := open(ctx)
	if err != nil {
		return nil, err
	}
	layout := box.Layout()
	dir := layout.Workdir
	if !s.ofTask {
		dir = path.Join(layout.Tmp, "trajgen-mcp", s.name)
		if err := program.Put(ctx, box, dir, s.files); err != nil {
			return nil, err
		}
	}
	var lines *io.PipeWriter
	c.output, lines = io.Pipe()
	c.process, err = program.Start(ctx, box, sandbox.Command{
		Args: s.cfg.Command, Dir: dir, Env: append([]string{"TRAJGEN_WORKDIR=" + layout.Workdir, "PYTHONUNBUFFERED=1"}, s.env...),
	}, program.Streams{
		MaxInput: maxInput, MaxLine: maxLine, Log: keptLog,
		Line: func(line []byte) {
			// Banners and logs on the standard output would end the connection.
			if line[0] != '{' || !json.Valid(line) {
				c.noise.Add(1)
				return
			}
			_, _ = lines.Write(append(mend(line), '\n')) // fails when the connection has been closed
		},
		Fail: func(err error) {
			c.fail(&tooLarge{err})
			lines.CloseWithError(err)
		},
	})
	if err != nil {
		return nil, err
	}
	c.watched.Go(func() {
		c.process.Watch(c.life)
		lines.CloseWithError(io.EOF)
	})
	return &sdk.IOTransport{Reader: c.output, Writer: c.process.Input, MaxLineLength: 2 * maxLine}, nil
}

// tooLarge is a message that is longer than is read.
type tooLarge struct{ error }

func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
		c.end() // calls on the way wait in vain: over HTTP the library would connect again, to the same end
	}
}

// broken is why nothing more can be read, if that is so.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil && c.process != nil {
		select {
		case <-c.process.Ended:
			if c.process.Err != nil {
				return c.process.Err
			}
			return errors.New(c.process.HowEnded())
		default:
		}
	}
	return c.fault
}

// log is the end of what the process wrote to its standard error. A model never sees it.
func (c *conn) log() string {
	if c.process == nil {
		return ""
	}
	text := strings.TrimSpace(string(c.process.Stderr.Bytes()))
	return strings.ToValidUTF8(text[max(0, len(text)-4000):], "\uFFFD")
}

// close ends the connection, and its process without waiting for it to notice.
func (c *conn) close(ctx context.Context) {
	if c.process != nil {
		c.output.Close() // or the copying of its output would wait for a reader
		c.process.Kill(ctx)
	}
	if c.session != nil {
		_ = c.session.Close() // of a server that is gone, or that answers no more
	}
	c.end()
	c.watched.Wait()
}
