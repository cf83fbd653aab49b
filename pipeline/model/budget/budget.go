// Package budget keeps what a run spends on models within its limits.
//
// A Ledger reserves the worst-case cost of each try before the try, and releases the rest afterwards. So spending and open
// reservations together never exceed a limit, however many requests are in flight. Reservations are covered on disk before they are
// granted: a run that is killed and resumed keeps its limit, too.
package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"trajgen/outputs/log"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// Config says what may be spent.
type Config struct {
	Tokens int64   // of prompts and replies together; 0 sets no limit
	USD    float64 // 0 sets no limit
	Prices episode.Prices
	// AllowUnknownPrice allows models without a price. The limit of money does not include their cost.
	AllowUnknownPrice bool
	Logger            *slog.Logger // nil is silent
}

// Ledger is what is left of a budget. It is safe for concurrent use.
type Ledger struct {
	cfg   Config
	limit Amount // a part that is 0 sets none

	mu      sync.Mutex // guards the fields below
	spent   Amount     // by tries that ended
	held    Amount     // open reservations
	waiting []*waiter  // in the order in which they are served
	reached *Reached
	excess  map[string]excess // by model
	marked  Amount            // the mark in the file, or the spending that it began with; at least spent plus held
	file    *log.File         // nil before Attach
	broken  error             // of the file
}

var _ model.Meter = (*Ledger)(nil)

// Open makes a ledger with nothing spent.
func Open(cfg Config) (*Ledger, error) {
	if cfg.Tokens < 0 || !(cfg.USD >= 0) || cfg.USD > maxUSD {
		return nil, fmt.Errorf("budget of %d tokens and %v USD (want 0 or more, 0 for no limit)", cfg.Tokens, cfg.USD)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Prices)) {
		amounts := cfg.Prices[name].Amounts()
		for _, of := range slices.Sorted(maps.Keys(amounts)) {
			if amount := amounts[of]; !(amount >= 0 && amount <= maxPrice) {
				return nil, fmt.Errorf("price of %s: %s is %v USD (want 0 or more, at most %.0f)", name, of, amount, maxPrice)
			}
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Ledger{
		cfg: cfg, excess: map[string]excess{},
		limit: Amount{Tokens: cfg.Tokens, Nano: int64(math.Floor(cfg.USD * 1e9))},
	}, nil
}

// Priced says what is missing to keep a limit of money while the models are asked.
func (l *Ledger) Priced(models ...string) error {
	if l.limit.Nano == 0 || l.cfg.AllowUnknownPrice {
		return nil
	}
	var unknown []string
	for _, name := range models {
		if _, ok := l.dearest(name); !ok && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("a budget in USD needs the price of %s", strings.Join(unknown, ", "))
}

// Reserve waits until the worst-case cost of a try fits beside the open reservations. It returns a *Reached if it will never fit.
func (l *Ledger) Reserve(ctx context.Context, b model.Bound) (model.Receipt, error) {
	worst, err := l.worst(b)
	if err != nil {
		return nil, err
	}
	w := &waiter{worst: worst, begun: b.Turn > 0, ready: make(chan error, 1)}
	l.mu.Lock()
	l.enqueue(w)
	l.serve()
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		l.giveUp(w)
		return nil, context.Cause(ctx)
	}
	return &receipt{ledger: l, bound: b, worst: worst}, nil
}

// waiter is a try that waits.
type waiter struct {
	worst Amount
	begun bool // its episode is in progress, and would be lost
	ready chan error
}

// enqueue adds a try to the queue: episodes that have begun go first.
func (l *Ledger) enqueue(w *waiter) {
	at := len(l.waiting)
	if w.begun {
		at = 0
		for at < len(l.waiting) && l.waiting[at].begun {
			at++
		}
	}
	l.waiting = slices.Insert(l.waiting, at, w)
}

// serve grants the reservations that fit, in order, and refuses those that will never fit.
func (l *Ledger) serve() {
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		switch {
		case l.broken != nil:
			w.ready <- l.broken
		case !l.spent.Plus(w.worst).within(l.limit):
			if l.reached == nil {
				l.reached = &Reached{}
			}
			l.reached.Spent, l.reached.Limit = l.spent, l.limit
			w.ready <- l.copyReached()
		case !l.spent.Plus(l.held).Plus(w.worst).within(l.limit):
			return // until an open reservation ends
		default:
			if l.broken = l.vouch(l.spent.Plus(l.held).Plus(w.worst)); l.broken != nil {
				continue
			}
			l.held = l.held.Plus(w.worst)
			w.ready <- nil
		}
		l.waiting = l.waiting[1:]
	}
}

// copyReached copies the error, so that the returned one does not change later.
func (l *Ledger) copyReached() *Reached {
	r := *l.reached
	return &r
}

// giveUp removes a try from the queue, or releases a reservation that was granted at the same moment.
func (l *Ledger) giveUp(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, w); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	} else if err := <-w.ready; err == nil {
		l.held = l.held.minus(w.worst)
	}
	l.serve()
}

// settle ends a reservation: actual was spent, and the rest is released.
func (l *Ledger) settle(worst, actual Amount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = l.held.minus(worst)
	l.spent = l.spent.Plus(actual)
	l.serve()
}

// Spent is the spending of tries that have ended.
func (l *Ledger) Spent() Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent
}

// Reached returns the error if a try was refused, with the current spending.
func (l *Ledger) Reached() *Reached {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached == nil {
		return nil
	}
	r := l.copyReached()
	r.Spent = l.spent
	return r
}

// Reached is the error of a try that the budget cannot pay for any more.
type Reached struct {
	Spent, Limit Amount
}

// Halt tells the pipeline to start no more episodes, and to finish those that it can.
func (*Reached) Halt() bool { return true }

func (r *Reached) Error() string {
	var parts []string
	if r.Limit.Nano > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s USD", dollars(r.Spent.Nano), dollars(r.Limit.Nano)))
	}
	if r.Limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tokens", r.Spent.Tokens, r.Limit.Tokens))
	}
	return "budget reached: spent " + strings.Join(parts, " and ")
}

// dollars shows cents, and more digits for smaller amounts.
func dollars(nano int64) string {
	usd := float64(nano) / 1e9
	if nano%1e7 == 0 || usd >= 100 {
		return fmt.Sprintf("%.2f", usd)
	}
	return fmt.Sprintf("%.4f", usd)
}

// errUnbounded is the error of a request whose reply has no bound.
var errUnbounded = errors.New("a budget needs to know how long a reply can be: set the most tokens of a reply")
