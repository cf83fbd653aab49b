package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
)

// errTimeUp ends the agent's part of an episode at its wall time limit.
var errTimeUp = model.ErrTimeUp

// errLimit ends the agent's part where Stop already says why.
var errLimit = errors.New("limit reached")

// converse lets the model and the tools take turns until the agent has answered or met a limit.
func (g *game) converse(ctx context.Context) error {
	began := g.Now().Add(-g.progress.carried)
	defer func() {
		opened := g.ep.Phases.Open + g.ep.Phases.Setup
		g.ep.Phases.Agent = g.Now().Sub(began) - opened
	}()
	g.greet()
	for _, part := range parts(g.task.Prompt) {
		for _, message := range part {
			g.say(message)
		}
		g.ep.Answer = "" // what was answered before is no answer to this
		if err := g.answer(ctx); err != nil && !errors.Is(err, errLimit) {
			return err
		}
		if g.ep.Stop != "" {
			return nil
		}
	}
	g.ep.Stop = episode.StopAnswered
	return nil
}

// timed runs a step of the agent on its clock: the time that limits.Time leaves. Setting up a sandbox, and waiting for
// a model that fails, are not on it.
func (g *game) timed(ctx context.Context, step func(context.Context) (charged bool)) (elapsed time.Duration) {
	ctx, cancel := context.WithTimeoutCause(ctx, g.left, errTimeUp)
	defer cancel()
	began := g.Now()
	charged := step(ctx)
	elapsed = g.Now().Sub(began)
	if charged {
		g.left -= elapsed
	}
	return elapsed
}

// thinking runs a step of the model on the agent's clock, which stops while a request waits, and takes back what failed.
func (g *game) thinking(ctx context.Context, step func(context.Context, model.Clock)) (worked time.Duration) {
	clock, ctx, cancel := startClock(ctx, g.Now, g.left)
	defer cancel()
	step(ctx, clock)
	clock.Stop()
	worked = g.left - clock.Left()
	g.left -= worked
	return worked
}

// timeUp stops the agent at its time limit.
func (g *game) timeUp() error {
	g.ep.Stop = episode.StopTimeout
	return errLimit
}

func (g *game) system() string {
	if g.task.System != "" {
		return g.task.System
	}
	return g.System
}

func (g *game) say(message episode.Message) { g.ep.Messages = append(g.ep.Messages, message) }

// parts cuts a prompt into what is said before each of the agent's answers: it ends with every user message that no
// message of the assistant follows.
func parts(prompt []episode.Message) [][]episode.Message {
	var parts [][]episode.Message
	start := 0
	for i, message := range prompt {
		last := i == len(prompt)-1
		if message.Role == "user" && (last || prompt[i+1].Role == "user") {
			parts = append(parts, prompt[start:i+1])
			start = i + 1
		}
	}
	return parts
}

// answer plays turns until the model answers without calling a tool. A limit sets Stop.
func (g *game) answer(ctx context.Context) error {
	for {
		if len(g.ep.Turns) == g.limits.Turns {
			g.ep.Stop = episode.StopMaxTurns
			return nil
		}
		reply, err := g.ask(ctx)
		if err != nil {
			return err
		}
		if len(reply.Message.Calls) == 0 {
			g.ep.Answer = reply.Message.Content
			switch {
			case reply.FinishReason == "length":
				g.ep.Stop = episode.StopLength
			case strings.TrimSpace(g.ep.Answer) == "":
				g.ep.Stop = episode.StopEmpty
			}
			return nil
		}
		if err := g.act(ctx, reply.Message.Calls); err != nil {
			return err
		}
	}
}

// ask makes one turn: a request with everything said so far, and the model's message.
func (g *game) ask(ctx context.Context) (*model.Reply, error) {
	ep, index := g.ep, len(g.ep.Turns)
	if g.left <= 0 {
		return nil, g.timeUp()
	}
	if err := g.fit(ctx); err != nil {
		return nil, err
	}
	req := g.talk.Next(g.sent(), ep.Tools)
	if !g.progress.again() { // what was paid for is kept, whatever models cost by now
		if g.ep.Stop = g.exhausted(req); g.ep.Stop != "" {
			return nil, errLimit
		}
	}
	var reply *model.Reply
	var err error
	var began time.Time
	var all took
	var refused []episode.Fault
	for again := true; again; {
		var at time.Time
		var t took
		reply, at, t, err = g.consult(ctx, roleAgent, g.Model, &req)
		if all.Elapsed, all.Worked = all.Elapsed+t.Elapsed, all.Worked+t.Worked; began.IsZero() {
			began = at
		}
		var fault episode.Fault
		if fault, again = g.refused(ctx, index, err); again {
			refused = append(refused, fault)
			req = g.talk.Next(g.sent(), ep.Tools)
			continue
		}
		var ended error
		if again, ended = g.tooLong(ctx, err); ended != nil {
			return nil, ended
		} else if again {
			req = g.talk.Next(g.sent(), ep.Tools)
		}
	}
	ep.Phases.Model += all.Elapsed
	if err != nil {
		return nil, g.modelFault(ctx, index, all.Worked, err)
	}
	g.took(&req, reply, refused, began, all.Elapsed)
	return reply, nil
}

// took makes a turn of a reply.
func (g *game) took(req *model.Request, reply *model.Reply, refused []episode.Fault, began time.Time, elapsed time.Duration) {
	ep, index := g.ep, len(g.ep.Turns)
	ep.Turns = append(ep.Turns, episode.Turn{
		Index: index, Message: len(ep.Messages), Model: reply.Model, RequestID: reply.RequestID, Endpoint: reply.Endpoint,
		FinishReason: reply.FinishReason, Usage: reply.Usage, Started: began, Elapsed: elapsed, Waited: reply.Waited, Fallback: reply.Fallback, Retries: append(refused, reply.Retries...),
		Repairs: reply.Repairs, Raw: reply.Raw, Service: reply.Service, Tokens: ep.KeepTokens(reply.Tokens),
	})
	if index == 0 {
		ep.Usage = reply.Usage
	} else {
		ep.Usage = ep.Usage.Add(reply.Usage)
	}
	ep.Model = reply.Model
	g.charge(*req, reply, ep.Billed(&ep.Turns[index], g.Spending.Asked)...)
	g.talk.Take(req, reply)
	g.say(reply.Message)
}

// modelFault says what an error of the model means for the episode. run is the run's context, not the agent's clock.
func (g *game) modelFault(run context.Context, turn int, waited time.Duration, err error) error {
	var failed *model.Error
	switch {
	case run.Err() != nil:
		return context.Cause(run)
	case g.progress.lost(err):
		return err
	case !errors.As(err, &failed):
		return faulty(episode.ModelError, "unknown", fmt.Errorf("turn %d: %w", turn, err))
	case failed.Fatal:
		return err
	case failed.Class == model.ClassContextOverflow && turn > 0:
		// The agent filled its window: its doing, and what it left is judged.
		g.ep.Stop = episode.StopContext
		return errLimit
	case failed.Class != model.ClassCancelled:
		return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: %w", turn, err))
	case len(failed.Retries) > 0:
		// The clock ran out while the model kept failing: an outage, and never the agent's score.
		last := failed.Retries[len(failed.Retries)-1]
		return faulty(episode.ModelError, last.Class, fmt.Errorf("turn %d: the model failed until the episode's time was up: %s", turn, last.Message))
	case waited > g.limits.Time/2:
		return faulty(episode.ModelError, model.ClassTimeout, fmt.Errorf("turn %d: the model did not answer for %s, most of the episode's time", turn, waited.Round(time.Second)))
	}
	return g.timeUp()
}

// act runs the calls of one turn and says their results.
func (g *game) act(ctx context.Context, calls []episode.Call) error {
	turn := len(g.ep.Turns) - 1
	requests := make([]registry.Request, len(calls))
	for i, call := range calls {
		requests[i] = registry.Request{ID: call.ID, Turn: turn, Index: i, Name: call.Name, Arguments: call.Arguments, Cut: call.Cut}
	}
	if err := g.open(ctx, requests); err != nil {
		return err
	}
	if g.left <= 0 {
		return g.timeUp()
	}
	var done []episode.ToolCall
	var late bool
	g.progress.calls(turn)
	g.ep.Phases.Tools += g.timed(ctx, func(ctx context.Context) bool {
		done = g.session.CallAll(ctx, requests)
		late = errors.Is(context.Cause(ctx), errTimeUp)
		return true
	})
	g.resend(turn, calls, done)
	for i, call := range done {
		g.say(episode.Message{Role: "tool", Content: call.Result, ToolCallID: calls[i].ID, Name: calls[i].Name})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := g.box.fault(); err != nil {
		return err
	}
	if err := g.user.broken(); err != nil {
		return err
	}
	if fault := g.session.Fault(); fault != nil {
		return &faultError{Fault: *fault}
	}
	if err := g.results(ctx, turn, done); err != nil {
		return err
	}
	if late {
		return g.timeUp()
	}
	return g.warn(done)
}

// resend says what later requests have for calls whose arguments servers would refuse. calls are those of the message.
func (g *game) resend(turn int, calls []episode.Call, done []episode.ToolCall) {
	for i := range calls {
		ran := done[i].Arguments
		if done[i].Via != "" || len(done[i].Rewritten) > 0 { // they are not what the model wrote, mended or not
			ran = nil
		}
		if calls[i].Sent = model.SentArguments(calls[i].Arguments, ran); calls[i].Sent != "" {
			g.ep.Turns[turn].Repairs = append(g.ep.Turns[turn].Repairs, "arguments sent as an object: "+head(calls[i].Name, 128))
		}
	}
}

// open opens the sandbox before the first calls that need one, so that its set-up is on nobody's clock.
func (g *game) open(ctx context.Context, requests []registry.Request) error {
	if g.box.isOpen() || !slices.ContainsFunc(requests, func(r registry.Request) bool { return g.toolset.NeedsSandbox(r.Name) }) {
		return nil
	}
	_, err := g.box.open(ctx)
	return err
}
