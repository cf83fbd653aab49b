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
	"trajgen/pipeline/model/record"
	"trajgen/registry"
)

// errTimeUp ends the agent's part of an episode at its wall time limit.
var errTimeUp = model.ErrTimeUp

// errLimit ends the agent's part where Stop already says why.
var errLimit = errors.New("limit reached")

// converse lets the model and the tools take turns until the agent has answered or met a limit.
func (a *attempt) converse(ctx context.Context) error {
	began := a.Now().Add(-a.progress.carried)
	defer func() {
		opened := a.ep.Phases.Open + a.ep.Phases.Setup + a.ep.Phases.Verify
		a.ep.Phases.Agent = a.Now().Sub(began) - opened
	}()
	a.greet()
	asked := 0
	for _, part := range parts(a.ep.Task.Prompt) { // whose images are kept
		for _, message := range part {
			a.say(message)
			if message.Role == "user" {
				asked++
			}
		}
		a.ep.Answer = "" // what was answered before is not an answer to this
		if err := a.answer(ctx); err != nil && !errors.Is(err, errLimit) {
			return err
		}
		if a.ep.Stop != "" {
			return nil
		}
		if goOn, err := a.judge.due(ctx, asked); err != nil {
			return err
		} else if !goOn {
			break
		}
	}
	a.ep.Stop = episode.StopAnswered
	return nil
}

// stop ends the agent's part: its doing, and what it left is judged.
func (a *attempt) stop(why episode.Stop) error {
	a.ep.Stop = why
	return errLimit
}

func (a *attempt) say(message episode.Message) { a.ep.Messages = append(a.ep.Messages, message) }

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
func (a *attempt) answer(ctx context.Context) error {
	for {
		if len(a.ep.Turns) == a.limits.Turns {
			a.ep.Stop = episode.StopMaxTurns
			return nil
		}
		reply, err := a.ask(ctx)
		if err != nil {
			return err
		}
		if len(reply.Message.Calls) == 0 {
			a.ep.Answer = reply.Message.Content
			switch {
			case reply.FinishReason == "length":
				a.ep.Stop = episode.StopLength
			case strings.TrimSpace(a.ep.Answer) == "":
				a.ep.Stop = episode.StopEmpty
			}
			return nil
		}
		if err := a.act(ctx, reply.Message.Calls); err != nil {
			return err
		}
	}
}

// ask makes one turn: a request with everything said so far, and the model's message.
func (a *attempt) ask(ctx context.Context) (*model.Reply, error) {
	ep, index := a.ep, len(a.ep.Turns)
	if a.clock.left <= 0 {
		return nil, a.stop(episode.StopTimeout)
	}
	if err := a.fits.fit(ctx); err != nil {
		return nil, err
	}
	req := a.talk.Next(a.fits.sent(), ep.Tools)
	if a.progress.next() == nil { // what was paid for is kept, whatever models cost by now
		if a.ep.Stop = a.account.exhausted(req); a.ep.Stop != "" {
			return nil, errLimit
		}
	}
	var said *step
	var err error
	var began time.Time
	var all took
	var refused []episode.Fault
	for again := true; again; {
		said, err = a.consult(ctx, record.Agent, a.Model, &req)
		if all.Elapsed, all.Worked = all.Elapsed+said.Took.Elapsed, all.Worked+said.Took.Worked; began.IsZero() {
			began = said.Started
		}
		var fault episode.Fault
		if fault, again = a.refused(index, err); again {
			refused = append(refused, fault)
			req = a.talk.Next(a.fits.sent(), ep.Tools)
			continue
		}
		var ended error
		if again, ended = a.fits.tooLong(ctx, err); ended != nil {
			return nil, ended
		} else if again {
			req = a.talk.Next(a.fits.sent(), ep.Tools)
		}
	}
	ep.Phases.Model += all.Elapsed
	if err != nil {
		return nil, a.modelFault(ctx, index, all.Worked, err)
	}
	a.took(&req, said.Reply, refused, began, all.Elapsed)
	return said.Reply, nil
}

// took makes a turn of a reply.
func (a *attempt) took(req *model.Request, reply *model.Reply, refused []episode.Fault, began time.Time, elapsed time.Duration) {
	ep, index := a.ep, len(a.ep.Turns)
	ep.Turns = append(ep.Turns, episode.Turn{
		Index: index, Message: len(ep.Messages), Model: reply.Model, RequestID: reply.RequestID, Endpoint: reply.Endpoint,
		FinishReason: reply.FinishReason, Usage: reply.Usage, Started: began, Elapsed: elapsed, Waited: reply.Waited, Fallback: reply.Fallback, Retries: append(refused, reply.Retries...),
		Repairs: reply.Repairs, Raw: reply.Raw, Service: reply.Service, Tokens: ep.KeepTokens(reply.Tokens),
	})
	switch {
	case a.twin.holds(index): // its clean episode paid for it
	case index == a.twin.length():
		ep.Usage = reply.Usage
	default:
		ep.Usage = ep.Usage.Add(reply.Usage)
	}
	ep.Model = reply.Model
	a.account.charge(*req, reply, ep.Billed(&ep.Turns[index], a.Spending.Asked)...)
	a.talk.Take(req, reply)
	a.say(reply.Message)
}

// modelFault says what an error of the model means for the episode. run is the run's context, not the agent's clock.
func (a *attempt) modelFault(run context.Context, turn int, waited time.Duration, err error) error {
	var failed *model.Error
	switch {
	case run.Err() != nil:
		return context.Cause(run)
	case !errors.As(err, &failed):
		return faulty(episode.ModelError, "unknown", fmt.Errorf("turn %d: %w", turn, err))
	case failed.Fatal:
		return err
	case failed.Class == model.ClassContextOverflow && turn > 0:
		return a.stop(episode.StopContext)
	case failed.Class != model.ClassCancelled:
		return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: %w", turn, err))
	case len(failed.Retries) > 0:
		// The clock ran out while the model kept failing: an outage, and never the agent's score.
		last := failed.Retries[len(failed.Retries)-1]
		return faulty(episode.ModelError, last.Class, fmt.Errorf("turn %d: the model failed until the episode's time was up: %s", turn, last.Message))
	case waited > a.limits.Time/2:
		return faulty(episode.ModelError, model.ClassTimeout, fmt.Errorf("turn %d: the model did not answer for %s, most of the episode's time", turn, waited.Round(time.Second)))
	}
	return a.stop(episode.StopTimeout)
}

// act runs the calls of one turn and says their results.
func (a *attempt) act(ctx context.Context, calls []episode.Call) error {
	turn := len(a.ep.Turns) - 1
	requests := make([]registry.Request, len(calls))
	for i, call := range calls {
		requests[i] = registry.Request{ID: call.ID, Turn: turn, Index: i, Name: call.Name, Arguments: call.Arguments, Cut: call.Cut}
	}
	// The sandbox is opened before the first calls that need one, so that its set-up takes none of the agent's time.
	needs := func(r registry.Request) bool { return a.kit.toolset.NeedsSandbox(r.Name) }
	if !a.sandbox.isOpen() && slices.ContainsFunc(requests, needs) {
		if _, err := a.sandbox.open(ctx); err != nil {
			return err
		}
	}
	if a.clock.left <= 0 {
		return a.stop(episode.StopTimeout)
	}
	left, waited := a.clock.left, a.kit.session.Waited()
	done := a.kit.session.CallAll(ctx, requests)
	a.ep.Phases.Tools += left - a.clock.left
	waited = (a.kit.session.Waited() - waited).Truncate(time.Millisecond)
	a.ep.Turns[turn].Waited += waited
	a.ep.Turns[turn].Elapsed += waited
	resend(&a.ep.Turns[turn], calls, done)
	for i, call := range done {
		a.account.inquired(&call)
		a.say(episode.Message{Role: "tool", Content: call.Result, ToolCallID: calls[i].ID, Name: calls[i].Name})
	}
	a.show(done)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.agents != nil {
		if err := a.agents.broken(); err != nil {
			return err
		}
	}
	if err := a.sandbox.fault(); err != nil {
		return err
	}
	if err := a.user.broken(); err != nil {
		return err
	}
	if fault := a.kit.session.Fault(); fault != nil {
		return &faultError{Fault: *fault}
	}
	if err := a.progress.results(turn, done); err != nil {
		return err
	}
	if a.clock.late {
		return a.stop(episode.StopTimeout)
	}
	return a.warn(done)
}

// sentAsObject begins the repair of a turn that says which call's arguments later requests have as an object.
const sentAsObject = "arguments sent as an object: "

// resend says what later requests have for calls whose arguments servers would refuse. calls are those of the message.
func resend(turn *episode.Turn, calls []episode.Call, done []episode.ToolCall) {
	for i := range calls {
		ran := done[i].Arguments
		if done[i].Via != "" || len(done[i].Rewritten) > 0 { // they are not what the model wrote, mended or not
			ran = nil
		}
		if calls[i].Sent = model.SentArguments(calls[i].Arguments, ran); calls[i].Sent != "" {
			turn.Repairs = append(turn.Repairs, sentAsObject+episode.Head(calls[i].Name, 128))
		}
	}
}
