// Package mcpserve offers tools of the registry over the Model Context Protocol, each session in a sandbox of its own.
package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Config says what is served.
type Config struct {
	Version  string // of this program
	Toolset  *registry.Toolset
	Sessions int // at most, at once
	// Open begins the session of a number, from 1. It is called at the first call of a session: one that only lists tools costs
	// nothing.
	Open   func(ctx context.Context, number int) (*Desk, error)
	Prompt string       // of a task, which clients can read as a resource; "" for none
	Logger *slog.Logger // nil logs nothing
}

// PromptURI is the address of the prompt.
const PromptURI = "trajgen://task/prompt"

// Desk is what a session has.
type Desk struct {
	Session *registry.Session
	Image   func(sha256 string) ([]byte, error) // that a call has attached
	// Called is told of each call when it has ended, one at a time. Optional.
	Called func(call episode.ToolCall) error
	// Close ends the session with its sandbox.
	Close func() error
}

// Server serves sessions. Close it.
type Server struct {
	config Config
	mcp    *mcp.Server
	ended  context.Context // with all sessions
	end    context.CancelCauseFunc

	watching sync.WaitGroup
	mu       sync.Mutex // guards what follows
	desks    map[*mcp.ServerSession]*desk
	opened   int
	errs     []error // of desks that did not close
}

// desk is a session under way.
type desk struct {
	*Desk
	open  func() error // opens the desk at the first call
	turn  *semaphore.Weighted
	calls int // guarded by turn
}

var (
	errClosed = errors.New("the server is closed")
	errFull   = errors.New("the server has no room for another session")
)

// New makes a server.
func New(c Config) *Server {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, desks: map[*mcp.ServerSession]*desk{}}
	s.ended, s.end = context.WithCancelCause(context.Background())
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "trajgen", Version: c.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{}, // tools and resources are added to it; logging is not offered
	})
	s.mcp.AddReceivingMiddleware(s.recover)
	for _, schema := range c.Toolset.Schemas() {
		var tool struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		if err := json.Unmarshal(schema, &tool); err != nil { // of our own
			panic(err)
		}
		f := tool.Function
		s.mcp.AddTool(&mcp.Tool{Name: f.Name, Description: f.Description, InputSchema: f.Parameters}, s.call)
	}
	if c.Prompt != "" {
		s.mcp.AddResource(&mcp.Resource{
			URI: PromptURI, Name: "prompt", MIMEType: "text/plain", Description: "What the task asks for.",
		}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text := &mcp.ResourceContents{URI: PromptURI, MIMEType: "text/plain", Text: c.Prompt}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{text}}, nil
		})
	}
	return s
}

// Serve serves one session, until its client or ctx ends it.
func (s *Server) Serve(ctx context.Context, transport mcp.Transport) error {
	defer context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })()
	return s.mcp.Run(ctx, transport)
}

// Close ends all sessions with their sandboxes, and waits for that. It returns what went wrong at the end of any.
func (s *Server) Close() error {
	s.end(errClosed)
	for _, session := range slices.Collect(s.mcp.Sessions()) {
		_ = session.Close()
	}
	s.watching.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// recover keeps a panic of one request from the other sessions.
func (s *Server) recover(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if value := recover(); value != nil {
				s.config.Logger.Error("a request panicked", "method", method, "panic", value, "stack", string(debug.Stack()))
				result, err = nil, fmt.Errorf("%s failed inside the server", method)
			}
		}()
		return next(ctx, method, req)
	}
}

// call makes a call through the whole dispatch. Calls of a session run one by one, as each may depend on the one before.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ended, func() { cancel(context.Cause(s.ended)) })()
	d, err := s.desk(req.Session)
	if err == nil {
		err = d.turn.Acquire(ctx, 1)
	}
	if err != nil {
		return failed(err), nil
	}
	defer d.turn.Release(1)
	if err := d.open(); err != nil {
		s.config.Logger.Error("a session could not be opened", "error", err.Error())
		return failed(fmt.Errorf("the session could not be opened: %w", err)), nil
	}
	d.calls++
	call := d.Session.Call(ctx, registry.Request{
		ID: fmt.Sprintf("call_%d", d.calls-1), Turn: d.calls - 1, Name: req.Params.Name, Arguments: string(req.Params.Arguments),
	})
	if d.Called != nil {
		if err := d.Called(call); err != nil {
			return nil, err
		}
	}
	return d.result(call)
}

// result is a call's result as its client gets it.
func (d *desk) result(call episode.ToolCall) (*mcp.CallToolResult, error) {
	text := call.Result
	if call.Notice != "" {
		text += "\n\n" + call.Notice
	}
	result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: call.Status != episode.CallOK}
	for _, image := range call.Images {
		data, err := d.Image(image.SHA256)
		if err != nil {
			return nil, fmt.Errorf("read an image of the call: %w", err)
		}
		result.Content = append(result.Content, &mcp.ImageContent{MIMEType: image.MIME, Data: data})
	}
	return result, nil
}

func failed(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}, IsError: true}
}

// desk is the session's, which ends with it.
func (s *Server) desk(session *mcp.ServerSession) (*desk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.desks[session]; d != nil {
		return d, nil
	}
	switch {
	case s.ended.Err() != nil:
		return nil, context.Cause(s.ended)
	case len(s.desks) >= s.config.Sessions:
		return nil, errFull
	}
	s.opened++
	number := s.opened
	d := &desk{turn: semaphore.NewWeighted(1)}
	d.open = sync.OnceValue(func() (err error) {
		d.Desk, err = s.config.Open(s.ended, number) // not the call's context: it outlives the call
		return err
	})
	s.desks[session] = d
	s.watching.Go(func() {
		_ = session.Wait()
		err := d.close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.desks, session)
		if err != nil {
			s.config.Logger.Error("a session did not end well", "session", number, "error", err.Error())
			s.errs = append(s.errs, fmt.Errorf("session %d: %w", number, err))
		}
	})
	return d, nil
}

// close waits for the call under way, and ends the desk.
func (d *desk) close() error {
	if err := d.turn.Acquire(context.Background(), 1); err != nil { // it does not end
		return err
	}
	if d.Desk == nil { // no call came so far as to open it
		return nil
	}
	return d.Desk.Close()
}
