package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

var prices = episode.Prices{"m": {Input: 2, Output: 10, CachedInput: 0.5}}

func open(t *testing.T, cfg budget.Config) *budget.Ledger {
	t.Helper()
	if cfg.Prices == nil {
		cfg.Prices = prices
	}
	l, err := budget.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func bound(prompt, completion int) model.Bound {
	return model.Bound{Model: "m", Prompt: prompt, Completion: completion}
}

func used(prompt, completion int) episode.Usage {
	return episode.Usage{Prompt: prompt, Completion: completion, Reported: true}
}

func reserve(t *testing.T, l *budget.Ledger, b model.Bound) model.Receipt {
	t.Helper()
	receipt, err := l.Reserve(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// TestNeverAbove holds that whatever the concurrency and whatever becomes of the tries, a budget is never passed, that
// nobody waits for ever, and that it is used up as far as the worst case of a try allows.
func TestNeverAbove(t *testing.T) {
	for _, workers := range []int{1, 8, 64, 500} {
		for seed := range uint64(5) {
			synctest.Test(t, func(t *testing.T) {
				const tokens, usd = 2_000_000, 9.0
				l := open(t, budget.Config{Tokens: tokens, USD: usd})
				var truth, nano atomic.Int64 // what a server would bill
				var wait sync.WaitGroup
				for n := range workers {
					wait.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(n)))
						for {
							prompt, completion := 1+r.IntN(5000), 1+r.IntN(2000)
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(2000))*time.Millisecond)
							receipt, err := l.Reserve(ctx, model.Bound{Model: "m", Turn: r.IntN(2), Prompt: prompt, Completion: completion})
							cancel()
							if errors.Is(err, context.DeadlineExceeded) {
								continue
							}
							if err != nil {
								if _, ok := errors.AsType[*budget.Reached](err); !ok {
									t.Error(err)
								}
								return
							}
							time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
							p, c := r.IntN(prompt+1), r.IntN(completion+1)
							bill := func() { truth.Add(int64(p + c)); nano.Add(int64(p)*2000 + int64(c)*10_000) }
							switch r.IntN(4) {
							case 0:
								receipt.Void()
							case 1: // billed, and the reply was lost
								bill()
								receipt.Settle("", episode.Usage{})
							default:
								bill()
								receipt.Settle("m", used(p, c))
							}
							if got := truth.Load(); got > tokens {
								t.Errorf("%d workers, seed %d: %d tokens were spent of %d", workers, seed, got, tokens)
								return
							}
							if got := nano.Load(); got > usd*1e9 {
								t.Errorf("%d workers, seed %d: %d nano USD were spent of %v USD", workers, seed, got, usd)
								return
							}
						}
					})
				}
				wait.Wait()
				spent := l.Spent()
				if spent.Tokens > tokens || spent.USD() > usd {
					t.Errorf("%d workers, seed %d: the ledger says %+v", workers, seed, spent)
				}
				if spent.Tokens < tokens-7000 && spent.USD() < usd-0.03 {
					t.Errorf("%d workers, seed %d: stopped at %+v although another try would have fitted", workers, seed, spent)
				}
			})
		}
	}
}

// TestWaits holds that a try waits for what is under way where that may give enough back, and is turned away at once
// where it cannot.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, budget.Config{Tokens: 1000})
		first := reserve(t, l, bound(500, 400))
		if _, err := l.Reserve(t.Context(), bound(900, 101)); err == nil {
			t.Error("a try that never fits was let go")
		}
		var second model.Receipt
		go func() { second, _ = l.Reserve(t.Context(), bound(500, 400)) }()
		synctest.Wait()
		if second != nil {
			t.Fatal("a try did not wait that does not fit beside another")
		}
		first.Settle("m", used(50, 50))
		synctest.Wait()
		if second == nil {
			t.Fatal("a try was not let go although there is room")
		}
		second.Settle("m", used(400, 400))
		_, err := l.Reserve(t.Context(), bound(100, 1))
		reached, ok := errors.AsType[*budget.Reached](err)
		if !ok || !reached.Halt() || err.Error() != "budget reached: spent 900 of 1000 tokens" {
			t.Errorf("Reserve = %v, want the budget to be reached", err)
		}
	})
}

// TestBegunFirst holds that of those that wait episodes that have begun go first.
func TestBegunFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, budget.Config{Tokens: 1000})
		running := reserve(t, l, bound(500, 500))
		var order []int
		var wait sync.WaitGroup
		for i, turn := range []int{0, 0, 3, 1} {
			wait.Go(func() {
				b := bound(400, 400)
				b.Turn = turn
				receipt, err := l.Reserve(t.Context(), b)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // one at a time: no two fit
				receipt.Void()
			})
			synctest.Wait()
		}
		running.Void()
		wait.Wait()
		if len(order) != 4 || order[0] != 2 || order[1] != 3 || order[2] != 0 || order[3] != 1 {
			t.Errorf("order = %v, want 2 3 0 1", order)
		}
	})
}

// TestUnknown holds what is refused because it cannot be reckoned.
func TestUnknown(t *testing.T) {
	money := open(t, budget.Config{USD: 1})
	if err := money.Priced("m", "other", "other"); err == nil || !strings.HasSuffix(err.Error(), "needs the price of other") {
		t.Errorf("Priced = %v, want other to be named", err)
	}
	if _, err := money.Reserve(t.Context(), model.Bound{Model: "other", Prompt: 1, Completion: 1}); err == nil {
		t.Error("a model without a price was let go")
	}
	if _, err := money.Reserve(t.Context(), bound(1, 0)); err == nil {
		t.Error("a reply without a bound was let go")
	}
	tokens := open(t, budget.Config{Tokens: 10})
	if err := tokens.Priced("other"); err != nil {
		t.Errorf("Priced = %v without a limit of money", err)
	}
	told := open(t, budget.Config{USD: 1, AllowUnknownPrice: true})
	receipt := reserve(t, told, model.Bound{Model: "other", Prompt: 1e9, Completion: 1e9})
	receipt.Settle("other", used(5, 5))
	if got := told.Spent(); got != (budget.Amount{Tokens: 10}) {
		t.Errorf("spent = %+v, want 10 tokens and no money", got)
	}
	for _, cfg := range []budget.Config{{Tokens: -1}, {USD: -1}, {USD: 1e300}, {Prices: episode.Prices{"m": {Input: -1}}}} {
		if _, err := budget.Open(cfg); err == nil {
			t.Errorf("Open(%+v) was let through", cfg)
		}
	}
}

// TestDearest holds that the worst case knows that a dated name may answer, and that the price of the name that
// answered is paid.
func TestDearest(t *testing.T) {
	l := open(t, budget.Config{USD: 1, Prices: episode.Prices{"m": {Input: 1, Output: 1}, "m-2026": {Input: 4, Output: 4}}})
	if _, err := l.Reserve(t.Context(), bound(200_000, 100_000)); err == nil {
		t.Error("300,000 tokens at 4 USD a million were let go with 1 USD")
	}
	receipt := reserve(t, l, bound(100_000, 100_000))
	receipt.Settle("m-2026", used(50_000, 50_000))
	receipt = reserve(t, l, bound(100_000, 10))
	receipt.Settle("m-unheard-of", episode.Usage{Prompt: 100_000, Cached: 900_000, Reported: true})
	if got := l.Spent().USD(); got != 0.5 {
		t.Errorf("spent %v USD, want 0.4 and 0.1", got)
	}
}

// TestLearns holds that a server that uses more than the worst case is reckoned with from then on.
func TestLearns(t *testing.T) {
	l := open(t, budget.Config{Tokens: 10_000})
	a, b := reserve(t, l, bound(100, 100)), reserve(t, l, bound(100, 100))
	a.Settle("m", used(300, 100))
	b.Settle("m", used(300, 100)) // twice as much, and no more than that
	if _, err := l.Reserve(t.Context(), bound(5000, 4001)); err == nil {
		t.Error("a worst case of 9001 tokens was let go with 9200 left, of which 200 are what the server adds")
	}
	reserve(t, l, bound(5000, 4000)).Void()
	// What one part of a bound has left over is not a reason to think that the other is right.
	reserve(t, l, bound(5000, 10)).Settle("m", used(10, 50))
	if _, err := l.Reserve(t.Context(), bound(5000, 3901)); err == nil {
		t.Error("a worst case of 8901 tokens was let go with 9140 left, of which 240 are what the server adds")
	}
	reserve(t, l, bound(5000, 3900)).Void()
}

// TestLearnsPrice holds that a model that answers under a dearer name is reckoned with from then on.
func TestLearnsPrice(t *testing.T) {
	l := open(t, budget.Config{USD: 1, Prices: episode.Prices{"m": {Input: 1, Output: 1}, "router/big": {Input: 100, Output: 100}}})
	reserve(t, l, bound(1000, 1000)).Settle("router/big", used(500, 500))
	if _, err := l.Reserve(t.Context(), bound(8000, 1001)); err == nil {
		t.Error("9001 tokens at 100 USD a million were let go with 0.90 USD left")
	}
	reserve(t, l, bound(8000, 1000)).Void()
}

// TestStartsAreFree holds that a run that is started and killed before it asks anything loses nothing of its budget.
func TestStartsAreFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.jsonl")
	for range 5 {
		l := open(t, budget.Config{Tokens: 100_000})
		if err := l.Attach(path, func() (budget.Amount, error) { return budget.Amount{Tokens: 1200}, nil }); err != nil {
			t.Fatal(err)
		}
		if got := l.Spent().Tokens; got != 1200 {
			t.Fatalf("spent %d tokens, want 1200", got)
		}
	}
	if mark, said, err := budget.Read(path); said || err != nil {
		t.Errorf("the file says %+v, %v before anything was asked", mark, err)
	}
}

func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.jsonl")
	attach := func(earlier budget.Amount) *budget.Ledger {
		t.Helper()
		l := open(t, budget.Config{Tokens: 100_000, USD: 10})
		if err := l.Attach(path, func() (budget.Amount, error) { return earlier, nil }); err != nil {
			t.Fatal(err)
		}
		return l
	}
	spent := func(l *budget.Ledger) int64 { return l.Spent().Tokens }

	first := attach(budget.Amount{})
	reserve(t, first, bound(5000, 5000)).Settle("m", used(1000, 500))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := attach(budget.Amount{Tokens: 1200})
	if got := spent(second); got != 1500 {
		t.Errorf("after a clean end: %d tokens, want 1500", got)
	}
	// Killed while a try is under way: all of it counts, and a step at most beside it.
	reserve(t, second, bound(2000, 3000))
	killed := attach(budget.Amount{})
	if got := spent(killed); got < 6500 || got > 7500 {
		t.Errorf("after a kill: %d tokens, want 1500, 5000 under way, and at most 1000 more", got)
	}
	// A torn line says nothing, and spoils no later one.
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	before := spent(killed)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString(`{"tokens":9`)
	file.Close()
	torn := attach(budget.Amount{})
	if got := spent(torn); got != before {
		t.Errorf("after a torn line: %d tokens, want %d", got, before)
	}
	reserve(t, torn, bound(10, 10)).Settle("m", used(10, 10))
	if err := torn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := torn.Reserve(t.Context(), bound(1, 1)); err == nil {
		t.Error("a closed ledger let a try go")
	}
	if got := spent(attach(budget.Amount{})); got != before+20 {
		t.Errorf("after the torn line: %d tokens, want %d", got, before+20)
	}
	// The journal is asked when the file says nothing, and never else: what it knows is part of what the file says.
	for _, nothing := range []string{"", `{"tokens":9`} {
		if err := os.WriteFile(path, []byte(nothing), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := spent(attach(budget.Amount{Tokens: 50_000})); got != 50_000 {
			t.Errorf("with a journal of 50000 tokens and a file with %q: %d", nothing, got)
		}
	}
}

// TestNoFile holds that what is not a file is not taken for a ledger: some devices can be read for ever.
func TestNoFile(t *testing.T) {
	for _, path := range []string{t.TempDir(), os.DevNull} {
		if err := open(t, budget.Config{Tokens: 1}).Attach(path, nil); err == nil {
			t.Errorf("Attach(%s) was let through", path)
		}
	}
}

// TestEarlierAttempts holds that what a run spent on attempts that were played again is not forgotten.
func TestEarlierAttempts(t *testing.T) {
	usage := func(n int) episode.Usage { return episode.Usage{Prompt: n, Completion: n, Reported: true} }
	ep := &episode.Episode{
		Model: "m", Turns: []episode.Turn{{Model: "m", Usage: usage(10)}},
		Earlier: episode.Attempts{{Attempt: 1, Usage: usage(5)}, {Attempt: 2}},
	}
	got := budget.OfEpisode(ep, episode.Prices{"m": {Input: 1, Output: 1}}, budget.Names{Agent: "m"})
	if want := (budget.Amount{Tokens: 30, Nano: 30_000}); got != want {
		t.Errorf("OfEpisode = %+v, want %+v", got, want)
	}
}
