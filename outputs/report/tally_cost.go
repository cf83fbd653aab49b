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
	Spending
	prices   episode.Prices
	asked    string // the model, as the run asks for it
	models   map[string]*modelTally
	outcomes map[episode.Outcome]*costTally
}

// modelTally counts the turns of one model.
type modelTally struct {
	ModelCost
	// cached tokens of a turn are never more than its prompt, whatever the server says.
	cached int64
	made   episode.Made
}

// costTally adds up what episodes cost.
type costTally struct {
	episodes, unknown int
	usd               float64
}

func (c *costTally) add(other costTally) {
	c.episodes, c.unknown, c.usd = c.episodes+other.episodes, c.unknown+other.unknown, c.usd+other.usd
}

func (s *spending) add(ep *episode.Episode) {
	cost := costTally{episodes: 1}
	for each := range ep.Tree() {
		usd, known := episode.CostOf(each, s.prices, s.asked)
		if cost.usd += usd; !known && len(each.Turns) > 0 {
			cost.unknown = 1
		}
		s.addUsed(each)
	}
	if ep.Twin == nil {
		tallyOf(&s.outcomes, ep.Outcome).add(cost)
	}
	for i := range ep.Earlier {
		s.Cost.Earlier.add(&ep.Earlier[i])
	}
}

// addUsed adds what models used for an episode, without its subagents.
func (s *spending) addUsed(ep *episode.Episode) {
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.Usage != nil {
			s.addPriced(*c.Usage, c.Model, c.Asked)
		}
	}
	ep.Inquired(s.addPriced)
	for i := range ep.Turns {
		turn := &ep.Turns[i]
		if !ep.Paid(i) {
			continue
		}
		s.Usage.Turns++
		s.Usage.add(turn.Usage, &s.Usage.Unreported)
		s.addPriced(turn.Usage, ep.Billed(turn, s.asked)...)
	}
	if ep.User != nil && ep.User.Model != "" {
		s.User.Episodes++
		s.User.add(ep.User.Usage, &s.User.Unreported)
	}
	if usage, asked := ep.ApproverUsage(); asked {
		s.Approver.Episodes++
		s.Approver.add(usage, &s.Approver.Unreported)
	}
}

// addPriced counts tokens that are paid for under one of the names.
func (s *spending) addPriced(u episode.Usage, names ...string) {
	name, price, known := s.prices.Find(names...)
	m := tallyOf(&s.models, name)
	if known && m.Price == nil {
		m.Price = &price
	}
	m.Usage.Turns++
	m.Usage.add(u, &m.Usage.Unreported)
	if u.Reported {
		m.cached += int64(min(u.Cached, u.Prompt))
		m.made = m.made.Add(u.Made)
	}
}

// add counts an attempt that was followed by another.
func (c *EarlierCost) add(a *episode.Attempt) {
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

// sum adds up what is known. Unknown is never zero: one turn without usage or price leaves the sum open.
func (s *spending) sum() Spending {
	sum := s.Spending
	cost := &sum.Cost
	cost.Models, cost.Outcomes = []ModelCost{}, []OutcomeCost{}
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		m := s.models[name]
		part := m.ModelCost
		part.Model = name
		if part.Price == nil || part.Usage.Unreported == part.Usage.Turns {
			cost.UnknownTurns += part.Usage.Turns
		} else {
			cost.UnknownTurns += part.Usage.Unreported
			paid := episode.Usage{
				Prompt: int(part.Usage.Prompt), Completion: int(part.Usage.Completion), Cached: int(m.cached), Made: m.made,
			}
			part.USD = new(part.Price.Of(paid))
			cost.KnownUSD = new(orZero(cost.KnownUSD) + *part.USD)
		}
		cost.Models = append(cost.Models, part)
	}
	if cost.UnknownTurns == 0 {
		cost.USD = cost.KnownUSD
	}
	var all costTally
	for _, outcome := range episode.Outcomes() {
		t := s.outcomes[outcome]
		if t == nil {
			continue
		}
		part := OutcomeCost{Outcome: outcome, Episodes: t.episodes}
		if t.unknown == 0 {
			part.USD = &t.usd
		}
		cost.Outcomes = append(cost.Outcomes, part)
		all.episodes, all.unknown, all.usd = all.episodes+t.episodes, all.unknown+t.unknown, all.usd+t.usd
	}
	if cost.USD != nil && all.unknown == 0 {
		cost.PerEpisode = new(all.usd / float64(all.episodes))
	}
	return sum
}

// episodeCostFact is the cost of an episode, by outcome.
func (c Cost) episodeCostFact() fact {
	if c.PerEpisode == nil {
		return fact{}
	}
	var parts []string
	for _, o := range c.Outcomes {
		if o.USD != nil {
			parts = append(parts, fmt.Sprintf("%s %s", o.Outcome, dollars(*o.USD)))
		}
	}
	return fact{name: "cost of an episode", text: dollars(*c.PerEpisode) + "; " + strings.Join(parts, ", ")}
}

// fact says what was spent; nothing when nothing was.
func (c EarlierCost) fact() fact {
	if c.Turns == 0 {
		return fact{}
	}
	text := fmt.Sprintf("%d turns, %d tokens", c.Turns, c.Prompt+c.Completion)
	switch {
	case c.Unknown == 0:
		text += ", " + dollars(c.KnownUSD)
	case c.KnownUSD > 0:
		text += ", at least " + dollars(c.KnownUSD)
	}
	return fact{name: "earlier attempts", text: text + ", beside the rows'"}
}

// fact says what a budget has come to; nothing when there is none.
func (b *Budget) fact() fact {
	if b == nil {
		return fact{}
	}
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
	return fact{name: "budget", text: strings.Join(parts, ", ")}
}
