// Package compress fits trajectories into a budget of tokens after they were played: a summary takes the place of the
// middle.
package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// Options say how. Budget and Measure are needed.
type Options struct {
	Budget    int // tokens of a conversation with its tools, at most
	HeadTurns int // turns of the model behind the prompt that stay as they are
	TailTurns int // and at the end
	// SummaryTokens is the room for what stands for the middle; 0 is DefaultSummaryTokens.
	SummaryTokens int
	// Measure says how many tokens the parts of an episode have.
	Measure func(*episode.Episode) Ruler
	// Summarise has a model write the summary; nil makes an outline by rule. Any error but ErrNoSummary ends the whole.
	// It is called from Workers goroutines at once.
	Summarise func(context.Context, Ask) (Summary, error)
	MaxText   int              // bytes of Ask.Text; 0 is DefaultMaxText
	Workers   int              // episodes at once; 0 is 1
	Mark      func(Mark) error // takes the marks, in the order of the episodes; nil drops them
}

// The defaults of Options.
const (
	DefaultSummaryTokens = 750
	DefaultMaxText       = 1 << 20
)

// Ruler counts tokens. All its counts are estimates.
type Ruler struct {
	Message func(*episode.Message) int
	Tools   int  // of the schemas of all tools
	Learned bool // by what the model's server has counted of this episode, rather than by a rule of thumb
}

// Ask is what a model is to summarise.
type Ask struct {
	Episode, Task string
	Text          string // Instruction is what to do with it
	MaxTokens     int
}

// Summary is what a model wrote.
type Summary struct {
	Text  string        `json:"text"`
	Model string        `json:"model,omitempty"`
	Usage episode.Usage `json:"usage"`
}

// ErrNoSummary is a model that does not write one, however often it is asked.
var ErrNoSummary = errors.New("no summary")

// Outline is the strategy of episode.Compaction for a summary by rule.
const Outline = "outline"

// Validate reports everything that is wrong at once.
func (o Options) Validate() error {
	var errs []error
	if o.Budget <= 0 {
		errs = append(errs, fmt.Errorf("budget is %d (want a number of tokens over 0)", o.Budget))
	}
	if o.HeadTurns < 0 || o.TailTurns < 0 {
		errs = append(errs, fmt.Errorf("%d head turns and %d tail turns (want 0 or more)", o.HeadTurns, o.TailTurns))
	}
	if most := cmp.Or(o.SummaryTokens, DefaultSummaryTokens); most < minSummary || o.Budget > 0 && most > o.Budget/2 {
		errs = append(errs, fmt.Errorf("%d tokens for a summary (want %d to half of the budget, %d)", most, minSummary, o.Budget/2))
	}
	if o.Workers < 0 || o.MaxText < 0 {
		errs = append(errs, fmt.Errorf("%d workers and %d bytes of text (want 0 or more)", o.Workers, o.MaxText))
	}
	return errors.Join(errs...)
}

// minSummary is the least room for a summary: what it says of itself takes most of that.
const minSummary = 50

// New yields the episodes of a source, each fitted into the budget where that can be, and marked: Episode.Compactions
// ends with what was done. None is left out, and those that are given stay as they are.
func New(source export.Source, options Options) (export.Source, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options.SummaryTokens = cmp.Or(options.SummaryTokens, DefaultSummaryTokens)
	options.MaxText = cmp.Or(options.MaxText, DefaultMaxText)
	options.Workers = max(options.Workers, 1)
	return &compressed{Source: source, Options: options}, nil
}

type compressed struct {
	export.Source
	Options
}

// Dropped and Notes are those of what the episodes come from.
func (c *compressed) Dropped() map[string]int {
	if dropper, ok := c.Source.(export.Dropper); ok {
		return dropper.Dropped()
	}
	return nil
}

func (c *compressed) Notes() []string {
	if teller, ok := c.Source.(export.Teller); ok {
		return teller.Notes()
	}
	return nil
}

// fitted is what came of an episode.
type fitted struct {
	ep    *episode.Episode
	marks []Mark // of the episode and its subagents
	err   error
}

// Episodes works on a window of as many episodes as there are workers, and yields them in their order. When the context
// ends no model is asked any more; what is under way is waited for.
func (c *compressed) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		var wait sync.WaitGroup
		defer wait.Wait()
		defer cancel(errors.New("no more is wanted"))
		var window []chan fitted
		emit := func() bool {
			next := <-window[0]
			window = window[1:]
			for _, mark := range next.marks {
				if next.err == nil && c.Mark != nil {
					next.err = c.Mark(mark)
				}
			}
			if next.err != nil {
				yield(nil, next.err)
				return false
			}
			return yield(next.ep, nil)
		}
		for ep, err := range c.Source.Episodes(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			done := make(chan fitted, 1)
			wait.Go(func() {
				var f fitted
				f.ep, f.err = c.fitTree(ctx, ep, &f.marks)
				done <- f
			})
			if window = append(window, done); len(window) == c.Workers && !emit() {
				return
			}
		}
		for len(window) > 0 {
			if !emit() {
				return
			}
		}
	}
}

// fitTree fits an episode and each of its subagents.
func (c *compressed) fitTree(ctx context.Context, ep *episode.Episode, marks *[]Mark) (*episode.Episode, error) {
	fit, mark, err := c.fit(ctx, ep)
	*marks = append(*marks, mark)
	if err != nil || len(ep.Children) == 0 {
		return fit, err
	}
	whole := *fit
	whole.Children = make([]*episode.Episode, len(ep.Children))
	for i, child := range ep.Children {
		if whole.Children[i], err = c.fitTree(ctx, child, marks); err != nil {
			return nil, err
		}
	}
	return &whole, nil
}
