package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
)

// User answers what a server asks, as the tool clarify has it.
type User interface {
	Ask(ctx context.Context, question string, choices []string) (string, error)
}

// Attempt is what the servers of an episode's attempt share. The episode has it as a service; without it, as outside of a run,
// nothing is recorded and no model can be asked.
type Attempt struct {
	model.Side
	// Model is the model that a server may ask, with its name in the run.
	Model func(server string) (model.Model, string)
	// Servers are what the row says of the episode's servers.
	Servers []episode.MCPServer
	// Key is the episode's: pauses between connections are drawn from it.
	Key episode.Key

	mu sync.Mutex // guards Servers
}

// change changes what the row says of a server.
func (a *Attempt) change(name string, f func(*episode.MCPServer)) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.Servers {
		if a.Servers[i].Declared == name {
			f(&a.Servers[i])
		}
	}
}

// inCall is a call on its way.
type inCall struct {
	server  *server
	live    *live
	env     *registry.Env
	attempt *Attempt // nil outside of a run
	about   *About
	box     opener // where the process runs
	request request
	ctx     context.Context // of the request: what the server asks meanwhile ends with it

	// What came meanwhile, guarded by the connection's mu.
	steps     int
	elicited  []Elicited
	inquiries []episode.Inquiry
}

// call makes one call of a tool.
func (s *server) call(env *registry.Env, r request, do func(*inCall) (any, error)) (any, error) {
	attempt, _ := registry.Service[*Attempt](env.Session)
	call := &inCall{server: s, env: env, attempt: attempt, request: r, box: env.Sandbox}
	call.about = &About{Server: s.name, Tool: r.method, Via: "live", Shared: s.cfg.Shared}
	env.Source = call.about
	call.live = s.of(env.Session, env.Logger, attempt)
	if s.cfg.Shared {
		call.box = s.set.box
	}
	if s.cfg.inEpisode() {
		defer env.InSandbox()()
	}
	attempt.change(s.name, func(row *episode.MCPServer) { row.Calls++ })
	return do(call)
}

// callTool is a call of one of the server's own tools.
func (call *inCall) callTool(ctx context.Context, tool Tool) (any, error) {
	result, err := fetch(ctx, call, func(ctx context.Context, c *conn) (*sdk.CallToolResult, error) {
		params := &sdk.CallToolParams{Name: tool.Name, Arguments: call.request.arguments}
		params.SetProgressToken(c.token(call))
		return c.session.CallTool(ctx, params)
	})
	if err != nil {
		return nil, err
	}
	return call.result(result)
}

// fetch asks the server, or takes its answer from the record of the attempt: what lies outside of the episode's sandbox is never
// asked twice.
func fetch[R any](ctx context.Context, call *inCall, ask func(ctx context.Context, c *conn) (*R, error)) (*R, error) {
	if call.server.cfg.inEpisode() || call.attempt == nil || call.attempt.Ask == nil {
		return exchange(ctx, call, ask)
	}
	var kept struct {
		Result  *R                `json:"result,omitempty"`
		Failure *registry.Failure `json:"failure,omitempty"`
		About   *About            `json:"about"`
	}
	live := false
	question := fmt.Sprintf("%s %s %s", call.server.name, call.request.method, call.request.arguments)
	err := call.attempt.Ask(record.MCP, question, &kept, func() (err error) {
		live = true
		kept.About = call.about
		kept.Result, err = exchange(ctx, call, ask)
		if failure, ok := errors.AsType[*registry.Failure](err); ok && !failure.Broken {
			kept.Failure, err = failure, nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !live && kept.About != nil {
		*call.about = *kept.About
		if err := again(ctx, call.env, call.about.Elicited); err != nil {
			return nil, err
		}
	}
	if kept.Failure != nil {
		return nil, kept.Failure
	}
	return kept.Result, nil
}

// again asks the task's user what the server had asked, so that the row counts it: the record has the answers.
func again(ctx context.Context, env *registry.Env, elicited []Elicited) error {
	user, ok := registry.Service[User](env.Session)
	for _, q := range elicited {
		if !q.User || !ok {
			continue
		}
		texts := q.Fields
		if len(texts) == 0 {
			texts = []string{q.Question}
		}
		for _, text := range texts {
			if _, err := user.Ask(ctx, text, nil); err != nil {
				if _, refused := errors.AsType[*registry.Failure](err); !refused {
					return err
				}
			}
		}
	}
	return nil
}

// enter and leave say whose calls the server has to answer.
func (c *conn) enter(call *inCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = append(c.active, call)
}

func (c *conn) leave(call *inCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, each := range c.active {
		if each == call {
			c.active = append(c.active[:i:i], c.active[i+1:]...)
			return
		}
	}
}

// token names a call in notices of its progress.
func (c *conn) token(call *inCall) string { return call.env.CallID }

// progress counts a notice.
func (c *conn) progress(token any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.active {
		if token == c.token(call) {
			call.steps++
		}
	}
}

// asking is the call in which the server asks something: the only one on the way, as servers that may ask have no calls side by side.
func (c *conn) asking() *inCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.active) == 1 {
		return c.active[0]
	}
	return nil
}
