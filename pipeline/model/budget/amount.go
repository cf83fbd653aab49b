package budget

import (
	"fmt"
	"math"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

const (
	maxUSD   = 1e9 // so that sums fit
	maxPrice = 1e6 // USD for a million tokens
	maxCount = 1 << 40
)

// Amount is an amount of tokens, and of money in billionths of a USD, rounded up at each try.
type Amount struct {
	Tokens int64 `json:"tokens"`
	Nano   int64 `json:"nano_usd"`
}

// USD is the money.
func (a Amount) USD() float64 { return float64(a.Nano) / 1e9 }

// Plus is the sum of two amounts.
func (a Amount) Plus(b Amount) Amount  { return Amount{sum(a.Tokens, b.Tokens), sum(a.Nano, b.Nano)} }
func (a Amount) minus(b Amount) Amount { return Amount{a.Tokens - b.Tokens, a.Nano - b.Nano} }
func (a Amount) atLeast(b Amount) Amount {
	return Amount{max(a.Tokens, b.Tokens), max(a.Nano, b.Nano)}
}

// sum adds, and saturates at the largest number.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// within reports whether an amount is within a limit, in which a part of 0 sets none.
func (a Amount) within(limit Amount) bool {
	return (limit.Tokens == 0 || a.Tokens <= limit.Tokens) && (limit.Nano == 0 || a.Nano <= limit.Nano)
}

// Of is what a reported usage costs.
func Of(price episode.Price, u episode.Usage) Amount {
	u.Prompt, u.Completion = min(max(u.Prompt, 0), maxCount), min(max(u.Completion, 0), maxCount)
	u.Cached = min(max(u.Cached, 0), u.Prompt)
	return Amount{Tokens: int64(u.Prompt) + int64(u.Completion), Nano: nano(price.Of(u))}
}

// nano rounds up, except for floating-point errors.
func nano(usd float64) int64 {
	n := usd * 1e9
	if n >= math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return int64(math.Ceil(n - 1e-6))
}

// worst is the most that a try can cost: no token cached, the model's highest price, and the excess over earlier bounds.
func (l *Ledger) worst(b model.Bound) (worst Amount, err error) {
	if b.Completion <= 0 && b.Made == (episode.Made{}) {
		return worst, errUnbounded
	}
	price, ok := l.dearest(b.Model)
	if !ok && l.limit.Nano > 0 && !l.cfg.AllowUnknownPrice {
		return worst, fmt.Errorf("a budget in USD needs the price of %s", b.Model)
	}
	l.mu.Lock()
	more := l.excess[b.Model]
	l.mu.Unlock()
	price = price.AtLeast(more.price)
	price.Input = max(price.Input, price.CachedInput) // some servers charge more for tokens that they write to the cache
	most := episode.Usage{Prompt: plus(b.Prompt, more.prompt), Completion: plus(b.Completion, more.completion), Made: b.Made}
	return Of(price, most), nil
}

func plus(n, more int) int { return min(max(n, 0), maxCount) + more }

// dearest is the highest price of a model under its plain name and its dated ones: which of them answers is not known
// beforehand.
func (l *Ledger) dearest(name string) (found episode.Price, ok bool) {
	for other, price := range l.cfg.Prices {
		if other == name || strings.HasPrefix(other, name+"-") || strings.HasPrefix(name, other+"-") {
			found = found.AtLeast(price)
			ok = ok || other == name
		}
	}
	return found, ok
}
