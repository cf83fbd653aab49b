package budget

import (
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// receipt is a reservation.
type receipt struct {
	ledger *Ledger
	bound  model.Bound
	worst  Amount
}

// Settle takes the server's usage. Without one the worst case counts as spent, as the tokens may have been billed.
func (r *receipt) Settle(served string, u episode.Usage) {
	actual := r.worst
	if u.Reported {
		_, price, _ := r.ledger.cfg.Prices.Find(served, r.bound.Model)
		actual = Of(price, u)
		r.learn(actual, u, price)
	}
	r.ledger.settle(r.worst, actual)
}

// Void releases the reservation: the try cannot have been billed.
func (r *receipt) Void() { r.ledger.settle(r.worst, Amount{}) }

// excess is what tries of a model had more than their bound, and the highest price at which they were paid. It is added
// and not multiplied: a server that puts the same words before every conversation makes a short one twice as long, and a
// long one hardly longer.
type excess struct {
	prompt, completion int
	price              episode.Price
}

// learn records a try that used more than its bound: the server counts differently than expected, or ignores the limit of a reply.
// Later worst cases are raised by as much.
func (r *receipt) learn(actual Amount, u episode.Usage, price episode.Price) {
	l := r.ledger
	l.mu.Lock()
	known := l.excess[r.bound.Model]
	more := excess{
		prompt:     max(known.prompt, min(u.Prompt, maxCount)-r.bound.Prompt),
		completion: max(known.completion, min(u.Completion, maxCount)-r.bound.Completion),
		price:      known.price.AtLeast(price),
	}
	l.excess[r.bound.Model] = more
	l.mu.Unlock()
	if more == known || actual.Tokens <= r.worst.Tokens && actual.Nano <= r.worst.Nano {
		return
	}
	l.cfg.Logger.Warn("a model call has cost more than its worst case; later ones are taken to cost more", "model", r.bound.Model,
		"tokens", actual.Tokens, "worst_tokens", r.worst.Tokens, "usd", actual.USD(), "worst_usd", r.worst.USD())
}
