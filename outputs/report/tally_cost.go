package report

import (
	"fmt"
	"maps"
	"slices"
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

// spending adds up the tokens of models, and what they cost.
type spending struct {
	prices         episode.Prices
	asked          string // the model, as the run asks for it
	usage          TokenUsage
	user, approver OtherUsage
	models         map[string]*modelTally
	outcomes       costs
	earlier        EarlierCost
}

// modelTally counts the turns of one model.
type modelTally struct {
	price *Price
	usage TokenUsage
	// cached tokens of a turn are never more than its prompt, whatever the server says.
	cached int64
}

func (s *spending) add(ep *episode.Episode) {
	s.outcomes.add(ep, s.prices, s.asked)
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.Usage != nil {
			s.addPriced(*c.Usage, c.Model, c.Asked)
		}
	}
	for i := range ep.Turns {
		turn := &ep.Turns[i]
		s.usage.Turns++
		s.usage.add(turn.Usage, &s.usage.Unreported)
		s.addPriced(turn.Usage, ep.Billed(turn, s.asked)...)
	}
	if ep.User != nil && ep.User.Model != "" {
		s.user.Episodes++
		s.user.add(ep.User.Usage, &s.user.Unreported)
	}
	if usage, asked := ep.ApproverUsage(); asked {
		s.approver.Episodes++
		s.approver.add(usage, &s.approver.Unreported)
	}
	for i := range ep.Earlier {
		s.addEarlier(&ep.Earlier[i])
	}
}

// addPriced counts tokens that are paid for under one of the names.
func (s *spending) addPriced(u episode.Usage, names ...string) {
	name, price, known := s.prices.Find(names...)
	m := tallyOf(s.models, name)
	if known && m.price == nil {
		m.price = &price
	}
	m.usage.Turns++
	m.usage.add(u, &m.usage.Unreported)
	if u.Reported {
		m.cached += int64(min(u.Cached, u.Prompt))
	}
}

// addEarlier counts an attempt that was followed by another.
func (s *spending) addEarlier(a *episode.Attempt) {
	c := &s.earlier
	c.Attempts, c.Turns = c.Attempts+1, c.Turns+a.Turns
	c.Prompt, c.Completion = c.Prompt+int64(a.Usage.Prompt), c.Completion+int64(a.Usage.Completion)
	switch {
	case a.CostUSD != nil:
		c.KnownUSD += *a.CostUSD
	case a.Turns > 0:
		c.Unknown++
	}
}

// add adds what a server reported, or counts that it reported nothing.
func (t *Tokens) add(u episode.Usage, unreported *int) {
	if !u.Reported {
		*unreported++
		return
	}
	t.Prompt += int64(u.Prompt)
	t.Completion += int64(u.Completion)
	t.Reasoning += int64(u.Reasoning)
	t.Cached += int64(u.Cached)
}

func (s *spending) sum(budget *Budget) Spending {
	return Spending{s.usage, s.cost(), budget, s.user, s.approver}
}

// cost adds up what is known. Unknown is never zero: one turn without usage or price leaves the sum open.
func (s *spending) cost() Cost {
	cost := Cost{Models: []ModelCost{}, Earlier: s.earlier}
	known, priced := 0.0, false
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		m := s.models[name]
		part := ModelCost{Model: name, Price: m.price, Usage: m.usage}
		if m.price == nil || m.usage.Unreported == m.usage.Turns {
			cost.UnknownTurns += m.usage.Turns
		} else {
			cost.UnknownTurns += m.usage.Unreported
			usd := m.price.Of(episode.Usage{Prompt: int(m.usage.Prompt), Completion: int(m.usage.Completion), Cached: int(m.cached)})
			part.USD = &usd
			known, priced = known+usd, true
		}
		cost.Models = append(cost.Models, part)
	}
	if priced {
		cost.KnownUSD = &known
	}
	if priced && cost.UnknownTurns == 0 {
		cost.USD = new(known)
	}
	if cost.Outcomes, cost.PerEpisode = s.outcomes.list(); cost.USD == nil {
		cost.PerEpisode = nil
	}
	return cost
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
