package report

import (
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// OutcomeCost is what the episodes of one outcome cost.
type OutcomeCost struct {
	Outcome  episode.Outcome `json:"outcome"`
	Episodes int             `json:"episodes"`
	USD      *float64        `json:"usd"` // null when that of any of them is not known
}

// Budget is what a run may spend on all models, and has spent: also on attempts that were played again, on episodes that
// were not finished, and what may have been billed for requests whose reply was lost.
type Budget struct {
	SpentUSD    float64 `json:"spent_usd"`
	SpentTokens int64   `json:"spent_tokens"`
	USD         float64 `json:"usd,omitempty"` // 0 is no limit
	Tokens      int64   `json:"tokens,omitempty"`
}

// costs adds up what episodes cost, by their outcomes.
type costs map[episode.Outcome]*costTally

type costTally struct {
	episodes, unknown int
	usd               float64
}

func (c costs) add(ep *episode.Episode, prices episode.Prices, asked string) {
	t := tallyOf(c, ep.Outcome)
	t.episodes++
	usd, known := episode.CostOf(ep, prices, asked)
	if !known && len(ep.Turns) > 0 {
		t.unknown++
	}
	t.usd += usd
}

// list has the outcomes that there were, in their order.
func (c costs) list() (list []OutcomeCost, perEpisode *float64) {
	list = []OutcomeCost{}
	episodes, unknown, sum := 0, 0, 0.0
	for _, outcome := range episode.Outcomes() {
		t := c[outcome]
		if t == nil {
			continue
		}
		part := OutcomeCost{Outcome: outcome, Episodes: t.episodes}
		if t.unknown == 0 {
			part.USD = &t.usd
		}
		list = append(list, part)
		episodes, unknown, sum = episodes+t.episodes, unknown+t.unknown, sum+t.usd
	}
	if episodes > 0 && unknown == 0 {
		perEpisode = new(sum / float64(episodes))
	}
	return list, perEpisode
}

// addEarlier counts an attempt that was followed by another.
func (b *Builder) addEarlier(a *episode.Attempt, ep *episode.Episode) {
	if a.Fault != nil {
		b.earlier.add(*a.Fault, ep)
	}
	c := &b.before
	c.Attempts, c.Turns = c.Attempts+1, c.Turns+a.Turns
	c.Prompt, c.Completion = c.Prompt+int64(a.Usage.Prompt), c.Completion+int64(a.Usage.Completion)
	switch {
	case a.CostUSD != nil:
		c.KnownUSD += *a.CostUSD
	case a.Turns > 0:
		c.Unknown++
	}
}

// text says what was spent; nothing when nothing was.
func (c EarlierCost) text() string {
	if c.Turns == 0 {
		return ""
	}
	text := fmt.Sprintf("%d turns, %d tokens", c.Turns, c.Prompt+c.Completion)
	switch {
	case c.Unknown == 0:
		text += ", " + dollars(c.KnownUSD)
	case c.KnownUSD > 0:
		text += ", at least " + dollars(c.KnownUSD)
	}
	return text + ", beside the rows'"
}

// costFacts are the cost of an episode, by outcome, and what a budget has come to.
func (r *Report) costFacts() (facts []fact) {
	if each := r.Cost.PerEpisode; each != nil && r.Cost.USD != nil {
		var parts []string
		for _, o := range r.Cost.Outcomes {
			if o.USD != nil {
				parts = append(parts, fmt.Sprintf("%s %s", o.Outcome, dollars(*o.USD)))
			}
		}
		facts = append(facts, fact{name: "cost of an episode", text: dollars(*each) + "; " + strings.Join(parts, ", ")})
	}
	if text := r.Cost.Earlier.text(); text != "" {
		facts = append(facts, fact{name: "earlier attempts", text: text})
	}
	if b := r.Budget; b != nil {
		var parts []string
		if b.USD > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s", dollars(b.SpentUSD), dollars(b.USD)))
		}
		if b.Tokens > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d tokens", b.SpentTokens, b.Tokens))
		}
		if len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("%d tokens, no limit", b.SpentTokens))
		}
		facts = append(facts, fact{name: "budget", text: strings.Join(parts, ", ")})
	}
	return facts
}
