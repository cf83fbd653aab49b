package rollout

import (
	"context"
	"errors"
	"fmt"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
)

// errTimeUp ends the agent's part of an episode at its wall time limit.
var errTimeUp = errors.New("the episode's time is up")

// errLimit ends the agent's part where Stop already says why.
var errLimit = errors.New("limit reached")

// converse lets the model and the tools take turns until the agent has answered or met a limit.
func (g *game) converse(ctx context.Context) error {
	agent, cancel := context.WithTimeoutCause(ctx, g.limits.Time, errTimeUp)
	defer cancel()
	began := g.Now()
	defer func() { g.ep.Phases.Agent = g.Now().Sub(began) }()
	if system := g.system(); system != "" {
		g.say(episode.Message{Role: "system", Content: system})
	}
	for _, part := range parts(g.task.Prompt) {
		for _, message := range part {
			g.say(message)
		}
		if err := g.answer(agent); err != nil && !errors.Is(err, errLimit) {
			// Only when the run itself goes on is it the episode's own clock that ran out.
			if errors.Is(context.Cause(agent), errTimeUp) && ctx.Err() == nil {
				g.ep.Stop = episode.StopTimeout
				return nil
			}
			return err
		}
		if g.ep.Stop != "" {
			return nil
		}
	}
	g.ep.Stop = episode.StopAnswered
	return nil
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
		if g.spent() {
			g.ep.Stop = episode.StopMaxTokens
			return nil
		}
		reply, err := g.ask(ctx)
		if err != nil {
			return err
		}
		if len(reply.Message.Calls) == 0 {
			g.ep.Answer = reply.Message.Content
			if reply.FinishReason == "length" {
				g.ep.Stop = episode.StopLength
			}
			return nil
		}
		if err := g.act(ctx, reply.Message.Calls); err != nil {
			return err
		}
	}
}

// spent says whether the episode has used up its tokens. A server that reports none cannot be bounded this way.
func (g *game) spent() bool {
	return g.limits.Tokens > 0 && g.ep.Usage.Prompt+g.ep.Usage.Completion >= g.limits.Tokens
}

// ask makes one turn: a request with everything said so far, and the model's message.
func (g *game) ask(ctx context.Context) (model.Reply, error) {
	ep, index := g.ep, len(g.ep.Turns)
	seed := ep.Key.RequestSeed(index)
	began := g.Now()
	reply, err := g.Model.Complete(ctx, model.Request{
		Messages: ep.Messages, Tools: ep.Tools, Seed: &seed, Episode: ep.ID, Task: ep.Key.Task,
	})
	elapsed := g.Now().Sub(began)
	ep.Phases.Model += elapsed
	if err != nil {
		return reply, g.modelFault(ctx, index, err)
	}
	for i := range reply.Message.Calls {
		if reply.Message.Calls[i].ID == "" {
			reply.Message.Calls[i].ID = fmt.Sprintf("call_%d_%d", index, i)
		}
	}
	ep.Turns = append(ep.Turns, episode.Turn{
		Index: index, Message: len(ep.Messages), Model: reply.Model, RequestID: reply.RequestID,
		FinishReason: reply.FinishReason, Usage: reply.Usage, Started: began, Elapsed: elapsed, Retries: reply.Retries,
	})
	if index == 0 {
		ep.Usage = reply.Usage
	} else {
		ep.Usage = ep.Usage.Add(reply.Usage)
	}
	ep.Model = reply.Model
	g.say(reply.Message)
	if reply.FinishReason == "content_filter" && len(reply.Message.Calls) == 0 {
		return reply, faulty(episode.ModelError, "content_policy", errors.New("the provider's content filter cut the reply"))
	}
	return reply, nil
}

// modelFault says what an error of the model means for the episode.
func (g *game) modelFault(ctx context.Context, turn int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failed *model.Error
	if !errors.As(err, &failed) {
		return faulty(episode.ModelError, "unknown", fmt.Errorf("turn %d: %w", turn, err))
	}
	if failed.Fatal {
		return err
	}
	if failed.Class == "context_overflow" {
		// The agent filled its window: its doing, and what it left is judged.
		g.ep.Stop = episode.StopContext
		return errLimit
	}
	return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: %w", turn, err))
}

// act runs the calls of one turn and says their results.
func (g *game) act(ctx context.Context, calls []episode.Call) error {
	turn := len(g.ep.Turns) - 1
	requests := make([]registry.Request, len(calls))
	for i, call := range calls {
		requests[i] = registry.Request{ID: call.ID, Turn: turn, Index: i, Name: call.Name, Arguments: call.Arguments}
	}
	began := g.Now()
	done := g.session.CallAll(ctx, requests)
	g.ep.Phases.Tools += g.Now().Sub(began)
	for i, call := range done {
		g.say(episode.Message{Role: "tool", Content: call.Result, ToolCallID: calls[i].ID, Name: calls[i].Name})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := g.box.fault(); err != nil {
		return err
	}
	if fault := g.session.Fault(); fault != nil {
		return &faultError{Fault: *fault}
	}
	return nil
}
