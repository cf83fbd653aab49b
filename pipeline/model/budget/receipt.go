package budget

import (
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// receipt is a reservation. It ends once.
type receipt struct {
	ledger *Ledger
	bound  model.Bound
	worst  Amount
	factor float64 // that is in worst
	once   sync.Once
}

// Settle takes what the server reported. Where it reported nothing the worst case stays debited: the tokens may have
// been billed.
func (r *receipt) Settle(served string, u episode.Usage) {
	r.once.Do(func() {
		actual := r.worst
		if u.Reported {
			actual = r.ledger.actual(r.bound, served, u)
			r.learn(actual)
		}
		r.ledger.settle(r.worst, actual)
	})
}

// Void gives everything back: the try cannot have been billed.
func (r *receipt) Void() { r.once.Do(func() { r.ledger.settle(r.worst, Amount{}) }) }

// actual is what reported tokens cost, at the price of the model that answered or else of the one that was asked.
func (l *Ledger) actual(b model.Bound, served string, u episode.Usage) Amount {
	_, price, _ := l.cfg.Prices.Find(served, b.Model)
	return Of(price, u)
}

// learn takes note of a try that cost more than it could have: the server counts otherwise than we thought, or does not
// keep to the limit of a reply. Later worst cases are as much worse.
func (r *receipt) learn(actual Amount) {
	over := max(share(actual.Tokens, r.worst.Tokens), share(actual.Nano, r.worst.Nano))
	if over <= 1 {
		return
	}
	l := r.ledger
	l.mu.Lock()
	l.excess[r.bound.Model] = max(l.excess[r.bound.Model], r.factor*over)
	l.mu.Unlock()
	l.cfg.Logger.Warn("a model call has cost more than its worst case; later ones are reckoned dearer", "model", r.bound.Model,
		"tokens", actual.Tokens, "worst_tokens", r.worst.Tokens, "usd", actual.USD(), "worst_usd", r.worst.USD())
}

func share(n, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(n) / float64(of)
}
