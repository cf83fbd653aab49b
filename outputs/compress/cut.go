package compress

import (
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
)

// cut is the messages of an episode that are left out, from up to to, and what stands in their place.
type cut struct {
	from, to int
	summary  episode.Message
}

// holds says whether a turn is among what is left out.
func (c *cut) holds(t *episode.Turn) bool { return t.Message >= c.from && t.Message < c.to }

// counts are the turns and the model's own calls that are left out.
func (c *cut) counts(ep *episode.Episode) (turns, calls int) {
	for i := range ep.Spoken() {
		if i >= c.from && i < c.to {
			turns++
			calls += len(ep.Messages[i].Calls)
		}
	}
	return turns, calls
}

// stand makes the message that stands for the middle: the harness's, which the text says, too. What the user said there
// stays, word for word.
func (c *cut) stand(ep *episode.Episode, text string) {
	turns, calls := c.counts(ep)
	content := fmt.Sprintf("[To make this conversation shorter, %d turns with %d calls of tools were left out here. This stands for them.]", turns, calls)
	if text != "" {
		content += "\n\n" + text
	}
	const meanwhile = "[The user said meanwhile:]"
	parts, images := []episode.Part{{Type: episode.PartText, Text: content}}, 0
	for i := c.from; i < c.to; i++ {
		if m := &ep.Messages[i]; byUser(m) {
			content += "\n\n" + meanwhile + "\n\n" + m.Content
			parts = append(append(parts, episode.Part{Type: episode.PartText, Text: meanwhile}), m.Ordered()...)
			images += len(m.Images())
		}
	}
	c.summary = episode.Message{Role: "user", Content: content, Harness: true}
	if images > 0 {
		c.summary.Parts = parts
	}
}

// apply is the episode without the middle. Its turns and calls are those that are left, and its token ids go: they are
// those of the whole conversation. What it cost stays.
func (c *cut) apply(ep *episode.Episode, mark Mark) *episode.Episode {
	short := *ep
	short.Messages = slices.Concat(ep.Messages[:c.from], []episode.Message{c.summary}, ep.Messages[c.to:])
	short.Drift = nil
	short.Turns, short.Calls = nil, nil
	now := make([]int, len(ep.Turns)) // where a turn is; -1 is nowhere
	for i, turn := range ep.Turns {
		now[i] = -1
		if c.holds(&turn) {
			continue
		}
		now[i] = len(short.Turns)
		turn.Index, turn.Tokens = now[i], nil
		if turn.Message >= c.to {
			turn.Message -= c.to - c.from - 1
		}
		short.Turns = append(short.Turns, turn)
	}
	for _, call := range ep.Calls {
		if call.Turn >= 0 && call.Turn < len(now) {
			if call.Turn = now[call.Turn]; call.Turn < 0 {
				continue
			}
		}
		short.Calls = append(short.Calls, call)
	}
	// The positions of earlier compactions refer to messages that the cut removed.
	short.Compactions = slices.Clone(ep.Compactions)
	for i := range short.Compactions {
		before := &short.Compactions[i]
		before.Replaced, before.From, before.To, before.Summary = nil, 0, 0, ""
		if before.Turn = min(max(before.Turn, 0), len(now)); before.Turn < len(now) {
			before.Turn = max(now[before.Turn], 0)
		} else {
			before.Turn = len(short.Turns)
		}
	}
	return marked(&short, mark)
}

// marked is the episode with what was done to it as its last compaction: of a turn that was never asked for, so that it
// says nothing of what the model was sent.
func marked(ep *episode.Episode, mark Mark) *episode.Episode {
	with := *ep
	c := episode.Compaction{Turn: len(ep.Turns), Strategy: Outline, Before: mark.Before, After: mark.After, Model: mark.Model, Usage: mark.Usage, Failed: mark.Reason}
	if mark.By == "model" {
		c.Strategy = episode.CompactSummarize
	}
	with.Compactions = append(slices.Clone(ep.Compactions), c)
	return &with
}
