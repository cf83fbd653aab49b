package export

import (
	"cmp"
	"slices"

	"trajgen/pipeline/episode"
)

// pool has each message of an episode once, and behind them what was sent in the place of some: shortened results of
// tools, summaries, and calls with other arguments.
type pool struct {
	ep       *episode.Episode
	messages []episode.Message
	shortens map[int]bool // turns that were asked for with another conversation than the messages before them

	applied  int         // compactions
	replaced map[int]int // the place of what was last sent for a message
	summary  int         // the place of what was last sent for the messages from up to another
	from, to int
}

func newPool(ep *episode.Episode) *pool {
	p := &pool{ep: ep, messages: slices.Clone(ep.Messages), shortens: map[int]bool{}, replaced: map[int]int{}}
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.To > c.From || len(c.Replaced) > 0 {
			p.shortens[c.Turn] = true
		}
	}
	if ep.Drift != nil && ep.Drift.Verdict == episode.DriftNone {
		return p // what was sent in other words came to the same tokens
	}
	for i := range ep.Messages {
		if !slices.ContainsFunc(ep.Messages[i].Calls, func(c episode.Call) bool { return c.Sent != "" }) {
			continue
		}
		sent := ep.Messages[i]
		sent.Calls = slices.Clone(sent.Calls)
		for n := range sent.Calls {
			sent.Calls[n].Arguments = cmp.Or(sent.Calls[n].Sent, sent.Calls[n].Arguments)
		}
		p.replaced[i] = p.put(sent)
		if next := slices.IndexFunc(ep.Turns, func(t episode.Turn) bool { return t.Message > i }); next >= 0 {
			p.shortens[next] = true
		}
	}
	return p
}

// sent are the places of what the model was sent for a turn, as Episode.Sent has it. It is asked for one turn after another.
func (p *pool) sent(turn int) (places []int) {
	for ; p.applied < len(p.ep.Compactions) && p.ep.Compactions[p.applied].Turn <= turn; p.applied++ {
		c := &p.ep.Compactions[p.applied]
		for _, r := range c.Replaced {
			if r.Message >= len(p.ep.Messages) {
				continue
			}
			message := p.ep.Messages[r.Message]
			message.Content, message.Parts, message.Harness = r.Content, nil, true
			p.replaced[r.Message] = p.put(message)
		}
		if c.To > c.From {
			p.summary, p.from, p.to = p.put(episode.Message{Role: "user", Content: c.Summary, Harness: true}), c.From, c.To
		}
	}
	for i := range p.ep.Turns[turn].Message {
		if i == p.from && p.to > p.from {
			places = append(places, p.summary)
		}
		if i >= p.from && i < p.to {
			continue
		}
		if at, ok := p.replaced[i]; ok {
			places = append(places, at)
		} else {
			places = append(places, i)
		}
	}
	return places
}

func (p *pool) put(m episode.Message) int {
	p.messages = append(p.messages, m)
	return len(p.messages) - 1
}
