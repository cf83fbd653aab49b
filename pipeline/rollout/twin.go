package rollout

import (
	"encoding/json"
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

// prefix is what a twin has in common with its clean episode: everything up to one call. What the model said is taken from the
// clean one, tools run again, and what they give is compared. What answers from outside of the sandbox is taken from it, too.
type prefix struct {
	*attempt
	clean *episode.Episode
	inner registry.Twin // of the run; nil without

	passed bool // the two have parted
}

// classDiverged is the class of a twin that could not follow its clean episode.
const classDiverged = "twin_diverged"

// Replayable says why the beginning of an episode cannot be played again up to a call of a turn; nil if it can.
func Replayable(ep *episode.Episode, turn int) error {
	switch {
	case ep.User != nil:
		return errors.New("its user was asked")
	case len(ep.Children) > 0:
		return errors.New("it has subagents")
	case slices.ContainsFunc(ep.Compactions, func(c episode.Compaction) bool { return c.Turn <= turn }):
		return errors.New("its conversation was shortened")
	}
	for i := range ep.Calls {
		if c := &ep.Calls[i]; c.Turn <= turn && (len(c.Inquiries()) > 0 || c.Verdict != nil && c.Verdict.Usage != nil) {
			return fmt.Errorf("its call %d asked a model", i)
		}
	}
	return nil
}

// fork makes the record that a twin goes on from.
func (p *progress) fork() error {
	clean, err := p.Clean(p.ep.Twin)
	if err != nil {
		return err
	}
	p.twin = &prefix{attempt: p.attempt, clean: clean}
	steps, tokens, err := p.twin.steps()
	p.ahead, p.ep.Twin.PrefixTokens, p.ep.Twin.Prefix = steps, tokens, episode.PrefixReplayed
	return err
}

// steps are the replies up to the turn where the two part, and the results of the turns before.
func (p *prefix) steps() (all []step, tokens int, err error) {
	last := p.ep.Twin.Turn
	if last >= len(p.clean.Turns) {
		return nil, 0, fmt.Errorf("twin %s parts from %s in turn %d, which that does not have", p.ep.ID, p.clean.ID, last)
	}
	left := p.limits.Time
	for i := range p.clean.Turns[:last+1] {
		turn := &p.clean.Turns[i]
		left -= turn.Elapsed - turn.Waited
		tokens += turn.Usage.Prompt + turn.Usage.Completion
		message := p.clean.Messages[turn.Message]
		message.Calls = slices.Clone(message.Calls)
		for i := range message.Calls {
			message.Calls[i].Sent = ""
		}
		repairs := slices.DeleteFunc(slices.Clone(turn.Repairs), func(r string) bool { return strings.HasPrefix(r, sentAsObject) })
		all = append(all, step{
			Kind: stepReply, Role: record.Agent, Turn: i, Started: turn.Started, Took: took{Elapsed: turn.Elapsed}, Left: max(left, time.Millisecond),
			Quirks: p.shown().Quirks(),
			Reply: &model.Reply{
				Message: message, FinishReason: turn.FinishReason, Usage: turn.Usage, Model: turn.Model, RequestID: turn.RequestID, Service: turn.Service,
				Endpoint: turn.Endpoint, Tries: model.Tries{Retries: turn.Retries, Waited: turn.Waited}, Fallback: turn.Fallback,
				Repairs: repairs, Raw: turn.Raw,
			},
		})
		if i == last {
			break
		}
		results := step{Kind: stepResults, Turn: i}
		for _, call := range p.calls(i) {
			results.Results = append(results.Results, valid(shown(&call)))
			left -= call.Elapsed
		}
		results.Left = max(left, time.Millisecond)
		all = append(all, results)
	}
	return all, tokens, nil
}

// calls are the model's own calls of a turn of the clean episode.
func (p *prefix) calls(turn int) (own []episode.ToolCall) {
	for _, call := range p.clean.Calls {
		if call.Turn == turn && call.Parent == "" {
			own = append(own, call)
		}
	}
	return own
}

// short says that a twin ended before it parted from its clean episode, as at a limit that only it reached, or that scripts made
// another number of calls before it did.
func (p *prefix) short() *episode.Difference {
	switch {
	case p == nil:
	case !p.passed:
		return &episode.Difference{Turn: len(p.ep.Turns), Call: -1, Name: "end", Was: "a turn more", Got: string(p.ep.Stop)}
	default:
		t := p.ep.Twin
		at := slices.Index(p.ep.Places(), t.Place())
		if at != t.Ordinal {
			return &episode.Difference{Turn: t.Turn, Call: t.Index, Name: "calls", Was: fmt.Sprint(t.Ordinal), Got: fmt.Sprint(at)}
		}
	}
	return nil
}

// holds reports whether a turn belongs to the prefix of a twin; nil has none.
func (p *prefix) holds(turn int) bool { return p != nil && turn <= p.ep.Twin.Turn }

// length is how many turns the prefix has.
func (p *prefix) length() int {
	if p == nil {
		return 0
	}
	return p.ep.Twin.Turn + 1
}

// parts compares what the two have seen when they part: all messages, the tools, and the results of calls before the one that
// differs.
func (p *prefix) parts(done []episode.ToolCall) *episode.Difference {
	at := p.clean.Turns[p.ep.Twin.Turn].Message
	differ := func(call int, name string, was, got any) *episode.Difference {
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(got)
		if string(a) == string(b) {
			return nil
		}
		return &episode.Difference{Turn: p.ep.Twin.Turn, Call: call, Name: name, Was: string(a), Got: string(b)}
	}
	if len(p.ep.Messages) <= at {
		return &episode.Difference{Turn: p.ep.Twin.Turn, Call: -1, Name: "messages", Was: fmt.Sprint(at), Got: fmt.Sprint(len(p.ep.Messages))}
	}
	if d := differ(-1, "tools", p.clean.Tools, p.ep.Tools); d != nil {
		return d
	}
	if d := differ(-1, "messages", p.clean.Messages[:at], p.ep.Messages[:at]); d != nil {
		return d
	}
	before := p.calls(p.ep.Twin.Turn)
	for i := range min(p.ep.Twin.Index, len(before), len(done)) {
		now := done[i]
		if now.Planted != nil { // the fault exchanged its result with that of the twin's call
			now.Result = now.Planted.RealResult
		}
		if d := differ(i, now.Name, valid(shown(&before[i])), valid(shown(&now))); d != nil {
			return d
		}
	}
	return p.script()
}

// script compares the calls of the script where the two part in one: the same calls up to that one, with the same results before it.
func (p *prefix) script() *episode.Difference {
	t, done := p.ep.Twin, p.kit.session.Trace()
	for i := t.Ordinal - t.Nested + 1; i <= t.Ordinal && i < len(done); i++ {
		was, now := &p.clean.Calls[i], &done[i]
		for _, each := range []struct{ name, was, got string }{
			{"calls", was.Name + was.RawArguments, now.Name + now.RawArguments}, {now.Name, valid(shown(was)), valid(shown(now))},
		} {
			if each.was != each.got && (i < t.Ordinal || each.name == "calls") {
				return &episode.Difference{Turn: t.Turn, Call: t.Index, Name: each.name, Was: each.was, Got: each.got}
			}
		}
	}
	return nil
}

// before reports whether a call belongs to what the two have in common. A script that runs behind the call where they part does not.
func (p *prefix) before(at episode.Place) bool {
	t := p.ep.Twin
	switch {
	case at.Turn != t.Turn:
		return at.Turn < t.Turn
	case at.Index != t.Index:
		return at.Index < t.Index
	}
	return at.Nested > 0 && (t.Nested == 0 || at.Nested < t.Nested)
}

// Begin answers calls of the prefix that go outside of the sandbox as they were answered in the clean episode, see registry.Twin.
func (p *prefix) Begin(call registry.TwinCall) registry.TwinAnswer {
	if p.before(call.Place) {
		for i := range p.clean.Calls {
			if was := &p.clean.Calls[i]; was.Turn == call.Turn && was.Index == call.Index && was.Parent == call.Parent && was.Name == call.Tool.Name {
				p.ep.Twin.Prefix = episode.PrefixRecorded
				return func(json.RawMessage, func() (registry.Answer, error)) (registry.Answer, error) { return answered(was) }
			}
		}
	}
	if p.inner == nil {
		return nil
	}
	return p.inner.Begin(call)
}

// answered is what a call was answered with.
func answered(was *episode.ToolCall) (registry.Answer, error) {
	a := registry.Answer{Result: was.Result, Source: was.Source, ExitCode: was.ExitCode}
	if was.Status == episode.CallOK {
		return a, nil
	}
	var said map[string]json.RawMessage
	var message string
	if err := json.Unmarshal([]byte(was.Result), &said); err != nil {
		return a, fmt.Errorf("the recorded result of %s: %w", was.Name, err)
	}
	if err := json.Unmarshal(said["error"], &message); err != nil {
		return a, fmt.Errorf("the recorded error of %s: %w", was.Name, err)
	}
	delete(said, "error")
	a.Failure = &registry.Failure{Class: was.ErrorClass, Status: was.Status, Message: message}
	for key, value := range said {
		if a.Failure.Extra == nil {
			a.Failure.Extra = map[string]any{}
		}
		a.Failure.Extra[key] = value
	}
	return a, nil
}
