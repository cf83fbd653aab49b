package rollout

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// about names what a request of the agent shows that none before it has shown: what the row says of it is to be what the
// model saw, also when another program goes on.
func (p *progress) about(role string, req *model.Request) string {
	if p.Recorder == nil || role != record.Agent || p.twin.holds(req.Turn) {
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
	last := p.ep.Turns[req.Turn-1].Message
	for _, call := range p.ep.Messages[last].Calls {
		if call.Sent != "" {
			add(call.Sent)
		}
	}
	for _, message := range p.ep.Messages[last+1:] {
		add(&message)
	}
	for _, c := range p.ep.Compactions {
		if c.Turn == req.Turn {
			add(episode.Compaction{Replaced: c.Replaced, From: c.From, To: c.To, Summary: c.Summary})
		}
	}
	return digest(parts...)
}

// resumed marks where the attempt goes on after its runner had died.
func (p *progress) resumed(turn int) error {
	if !p.goesOn() {
		return nil
	}
	p.mark(turn)
	p.logger.Info("episode goes on where its runner died", "id", p.ep.ID, "attempt", p.ep.Attempt, "turn", turn)
	return p.record(&step{Kind: stepResumed, Turn: turn}, false)
}

// mark writes a turn down from which the attempt went on.
func (p *progress) mark(turn int) { p.ep.Resumed = append(p.ep.Resumed, turn) }

// results compares what the calls of a turn gave with the record, or adds it.
func (p *progress) results(turn int, done []episode.ToolCall) error {
	if p.twin != nil && turn == p.ep.Twin.Turn {
		if d := p.twin.parts(done); d != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.differs(*d)
		}
		p.twin.passed = true
	}
	was, err := p.compare(turn, done)
	if err != nil || p.Recorder == nil {
		return err
	}
	if was != nil {
		p.clock.left = min(was.Left, p.limits.Time)
		return nil
	}
	s := &step{Kind: stepResults, Turn: turn}
	for _, call := range done {
		s.Results = append(s.Results, shown(&call))
	}
	return p.record(s, false)
}

// shown is what a call showed the model: its result, and the digests of its images, a line each.
func shown(call *episode.ToolCall) string {
	text := call.Result
	for _, image := range call.Images {
		text += "\nimage " + image.SHA256
	}
	return text
}

// spent is how long runners have played the attempt.
func (p *progress) spent() time.Duration { return p.carried + p.Now().Sub(p.began) }

// startOver ends an attempt that cannot go on from its record. What it cost is said, and another one begins.
func startOver(ep *episode.Episode, logger *slog.Logger, class string, err error) {
	ep.Outcome, ep.Stop, ep.Answer = episode.Cancelled, episode.StopFault, ""
	ep.Fault = &episode.Fault{Outcome: episode.Cancelled, Class: class, Message: err.Error()}
	ep.Reward, ep.Rewards = nil, nil
	logger.Warn("episode cannot go on where its runner died; it starts anew", "id", ep.ID, "attempt", ep.Attempt, "class", class, "reason", err.Error())
}

// describe says what differed.
func describe(d *episode.Difference) error {
	where := fmt.Sprintf("turn %d", d.Turn)
	if d.Call >= 0 {
		where += fmt.Sprintf(", call %d", d.Call)
	}
	return fmt.Errorf("%s (%s) differs from the record at byte %d: was %q, is %q", where, d.Name, d.At, d.Was, d.Got)
}
