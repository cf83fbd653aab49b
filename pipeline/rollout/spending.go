package rollout

import (
	"cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// Spending is what models cost.
type Spending struct {
	Prices episode.Prices
	Asked  string // name of the model as the run has it; prices go by the name that the server gives, then by this
}

// account is what an episode has used, summaries among it. What a server does not report counts as the worst that it can
// have been where the longest reply is known, and as an estimate of what was said where it is not.
type account struct {
	*attempt
	tokens int
	usd    float64
}

// charge counts what a request used, at the price of the first of the names that has one.
func (a *account) charge(req model.Request, reply *model.Reply, names ...string) {
	u := reply.Usage
	if longest := cmp.Or(req.MaxTokens, a.Context.Reply); !u.Reported && longest > 0 {
		u = episode.Usage{Prompt: model.PromptBound(req), Completion: longest}
	} else if !u.Reported {
		var said model.Counter
		u = episode.Usage{Prompt: a.talk.Counter.Count(req.Messages, req.Tools), Completion: said.Count([]episode.Message{reply.Message}, nil)}
	}
	_, price, _ := a.Spending.Prices.Find(names...)
	a.tokens += u.Prompt + u.Completion
	a.usd += price.Of(u)
}

// inquired counts what models used that a call's tool asked.
func (a *account) inquired(call *episode.ToolCall) {
	for _, q := range call.Inquiries() {
		if q.Usage == nil {
			continue
		}
		_, price, _ := a.Spending.Prices.Find(q.Model, q.Asked)
		a.tokens += q.Usage.Prompt + q.Usage.Completion
		a.usd += price.Of(*q.Usage)
	}
}

// asks is the name of the model that the episode asks.
func (a *account) asks() string { return cmp.Or(a.ep.Sampling.Model, a.Spending.Asked) }

// exhausted says why the episode cannot pay for another turn, or "". The worst case of the turn must fit where it is
// known: what the server has counted before, a byte of what was said since for a token, and the longest reply. Of a first
// request no more than an estimate is known.
func (a *account) exhausted(req model.Request) episode.Stop {
	if a.limits.Tokens == 0 && a.most == 0 {
		return ""
	}
	worst := episode.Usage{}
	if a.Context.Reply > 0 {
		worst = episode.Usage{Prompt: model.PromptBound(req), Completion: a.Context.Reply}
		if len(a.ep.Turns) == 0 {
			worst.Prompt = a.fits.count()
		}
	}
	_, price, _ := a.Spending.Prices.Find(a.asks(), a.ep.Model)
	switch used := a.tokens + worst.Prompt + worst.Completion; {
	case a.limits.Tokens > 0 && (used > a.limits.Tokens || a.tokens >= a.limits.Tokens):
		return episode.StopMaxTokens
	case a.most > 0 && a.usd+price.Of(worst) > a.most:
		return episode.StopMaxCost
	}
	return ""
}

// cost writes down what the episode cost, when all of it is known.
func (a *account) cost() {
	if usd, known := episode.CostOf(a.ep, a.Spending.Prices, a.asks()); known {
		a.ep.CostUSD = &usd
	}
}

// unplayed adds what the record has beyond the point at which the attempt ended: it was paid for.
func (a *account) unplayed() {
	ep := a.ep
	usd, known, replies := 0.0, ep.CostUSD != nil || len(ep.Turns) == 0, 0
	if ep.CostUSD != nil {
		usd = *ep.CostUSD
	}
	for _, s := range a.progress.rest() {
		if s.Reply == nil || a.twin.holds(s.Turn) {
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
