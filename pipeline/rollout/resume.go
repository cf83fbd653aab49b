package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// about names what a request of the agent shows that none before it has shown: what the row says of it is to be what the
// model saw, also when another program goes on.
func (a *attempt) about(role string, req *model.Request) string {
	if a.Recorder == nil || role != record.Agent {
		return ""
	}
	var parts [][]byte
	add := func(v any) {
		text, err := json.Marshal(v)
		if err != nil { // not of texts
			panic(err)
		}
		parts = append(parts, text)
	}
	if req.Turn == 0 {
		for i := range req.Messages {
			add(&req.Messages[i])
		}
		for _, tool := range req.Tools {
			parts = append(parts, tool)
		}
		return digest(parts...)
	}
	last := a.ep.Turns[req.Turn-1].Message
	for _, call := range a.ep.Messages[last].Calls {
		if call.Sent != "" {
			add(call.Sent)
		}
	}
	for _, message := range a.ep.Messages[last+1:] {
		add(&message)
	}
	for _, c := range a.ep.Compactions {
		if c.Turn == req.Turn {
			add(episode.Compaction{Replaced: c.Replaced, From: c.From, To: c.To, Summary: c.Summary})
		}
	}
	return digest(parts...)
}

// resumed marks where the attempt goes on after its runner had died.
func (a *attempt) resumed(turn int) error {
	if !a.progress.goesOn() {
		return nil
	}
	a.mark(turn)
	a.logger.Info("episode goes on where its runner died", "id", a.ep.ID, "attempt", a.ep.Attempt, "turn", turn)
	return a.record(&step{Kind: stepResumed, Turn: turn}, false)
}

// mark writes a turn down from which the attempt went on.
func (a *attempt) mark(turn int) { a.ep.Resumed = append(a.ep.Resumed, turn) }

// results compares what the calls of a turn gave with the record, or adds it.
func (a *attempt) results(turn int, done []episode.ToolCall) error {
	was, err := a.progress.compare(turn, done)
	if err != nil || a.Recorder == nil {
		return err
	}
	if was != nil {
		a.left = min(was.Left, a.limits.Time)
		return nil
	}
	s := &step{Kind: stepResults, Turn: turn}
	for _, call := range done {
		s.Results = append(s.Results, call.Result)
	}
	return a.record(s, false)
}

// spent is how long runners have played the attempt.
func (a *attempt) spent() time.Duration { return a.progress.carried + a.Now().Sub(a.began) }

// abandon ends an attempt that cannot go on from its record. What it cost is said, and another one begins.
func (a *attempt) abandon(class string, err error) {
	ep := a.ep
	ep.Outcome, ep.Stop, ep.Answer = episode.Cancelled, episode.StopFault, ""
	ep.Fault = &episode.Fault{Outcome: episode.Cancelled, Class: class, Message: err.Error()}
	ep.Reward, ep.Rewards = nil, nil
	a.logger.Warn("episode cannot go on where its runner died; it starts anew", "id", ep.ID, "attempt", ep.Attempt, "class", class, "reason", err.Error())
}

// describe says what differed.
func describe(d *episode.Difference) error {
	where := fmt.Sprintf("turn %d", d.Turn)
	if d.Call >= 0 {
		where += fmt.Sprintf(", call %d", d.Call)
	}
	return fmt.Errorf("%s (%s) differs from the record at byte %d: was %q, is %q", where, d.Name, d.At, d.Was, d.Got)
}

// unplayed adds what the record has beyond the point at which the attempt ended: it was paid for.
func (a *attempt) unplayed() {
	ep := a.ep
	usd, known, replies := 0.0, ep.CostUSD != nil || len(ep.Turns) == 0, 0
	if ep.CostUSD != nil {
		usd = *ep.CostUSD
	}
	for _, s := range a.progress.left() {
		if s.Reply == nil {
			continue
		}
		replies++
		names := []string{s.Reply.Model, cmp.Or(a.Context.SummaryModel, a.asks())}
		if s.Role == record.Agent {
			names = ep.Billed(&episode.Turn{Model: s.Reply.Model, Fallback: s.Reply.Fallback}, a.Spending.Asked)
			if len(ep.Turns)+ep.Unplayed == 0 {
				ep.Usage = s.Reply.Usage
			} else {
				ep.Usage = ep.Usage.Add(s.Reply.Usage)
			}
			ep.Unplayed++
		}
		_, price, priced := a.Spending.Prices.Find(names...)
		known = known && priced && s.Reply.Usage.Reported
		usd += price.Of(s.Reply.Usage)
	}
	switch {
	case replies == 0:
	case known:
		ep.CostUSD = &usd
	default:
		ep.CostUSD = nil
	}
}
