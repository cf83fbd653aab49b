package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// Context says how a conversation is kept within the model's window.
type Context struct {
	// Window is how many tokens a prompt and its reply may have together; 0 is not known. Then only a server's refusal
	// says that a conversation is too long.
	Window   func(model string) int // nil knows no window
	Reply    int                    // most tokens of a reply; 0 is not known
	Strategy string                 // a strategy of episode.Compaction; "" is episode.CompactStop
	// At and To are shares of the window: beyond the one a conversation is shortened until it is below the other. 0 is
	// DefaultCompactAt or DefaultCompactTo.
	At, To float64
	// Summary writes the summaries; nil is the agent's own model.
	Summary       model.Model
	SummaryName   string // of that model as the run has it
	SummaryWindow int    // of that model; 0 is not known, and then what fits the agent's is taken to fit it
}

// The defaults of Context.
const (
	DefaultCompactAt = 0.8
	DefaultCompactTo = 0.5
)

// keptTurns are the last turns, which are sent as they are.
const keptTurns = 3

// Validate reports everything that is wrong at once.
func (c Context) Validate() error {
	var errs []error
	strategies := []string{episode.CompactStop, episode.CompactDrop, episode.CompactSummarize}
	if c.Strategy != "" && !slices.Contains(strategies, c.Strategy) {
		errs = append(errs, fmt.Errorf("compaction is %q; one of stop, drop, summarize", c.Strategy))
	}
	at, to := cmp.Or(c.At, DefaultCompactAt), cmp.Or(c.To, DefaultCompactTo)
	if !(to > 0 && to < at && at <= 1) {
		errs = append(errs, fmt.Errorf("compact_at is %v and compact_to %v; over 0 to 1, and compact_to the smaller one", at, to))
	}
	return errors.Join(errs...)
}

// sent is the conversation as the model is sent it next.
func (g *game) sent() []episode.Message {
	return episode.Shortened(g.ep.Messages, g.ep.Compactions, len(g.ep.Turns))
}

// window is that of the episode's model.
func (g *game) window() int {
	if was, known := g.progress.window(); known {
		return was
	}
	if g.Context.Window == nil {
		return 0
	}
	return g.Context.Window(g.ep.Sampling.Model)
}

// fit shortens a conversation that nears the end of the model's window. A first request is sent as it is: it holds
// nothing that could be left out.
func (g *game) fit(ctx context.Context) error {
	window := g.window()
	if window == 0 || len(g.ep.Turns) == 0 {
		return nil
	}
	room := window - min(g.Context.Reply, window/2) // for the prompt
	size := g.count()
	if g.strategy() == episode.CompactStop {
		if size >= window {
			return g.overflow()
		}
		return nil
	}
	at, to := cmp.Or(g.Context.At, DefaultCompactAt), cmp.Or(g.Context.To, DefaultCompactTo)
	if size < min(int(at*float64(window)), room) {
		return nil
	}
	if size < room && !g.pays(size, int((at-to)/2*float64(window))) {
		return nil
	}
	c := episode.Compaction{Before: size, Counted: g.talk.Counter.Known().Tokens}
	if err := g.compact(ctx, c, min(int(to*float64(window)), room)); err != nil {
		if size < window && (errors.Is(err, errIncompressible) || errors.Is(err, errNoSummary)) {
			return nil // it may still fit
		}
		return g.uncompacted(err)
	}
	return nil
}

// tooLong deals with a conversation that the server found too long. It tells whether it is shorter now.
func (g *game) tooLong(ctx context.Context, err error) (again bool, _ error) {
	var failed *model.Error
	turn := len(g.ep.Turns)
	if turn == 0 || !errors.As(err, &failed) || failed.Class != model.ClassContextOverflow || g.strategy() == episode.CompactStop {
		return false, nil
	}
	refused := func(c episode.Compaction) bool { return c.Turn == turn && c.Refused }
	if slices.ContainsFunc(g.ep.Compactions, refused) {
		return false, nil // once
	}
	if last := len(g.ep.Compactions) - 1; last >= 0 && g.ep.Compactions[last].Turn == turn && g.unsummarized != nil {
		return false, g.uncompacted(g.unsummarized) // who was asked just now would say nothing else
	}
	c := episode.Compaction{Refused: true, Before: g.count(), Counted: g.talk.Counter.Known().Tokens}
	size := c.Before
	if window := g.window(); window > 0 {
		size = min(size, window)
	}
	if err := g.compact(ctx, c, int(cmp.Or(g.Context.To, DefaultCompactTo)*float64(size))); err != nil {
		return false, g.uncompacted(err)
	}
	return true, nil
}

// errIncompressible is a conversation in which there is nothing to leave out.
var errIncompressible = errors.New("nothing can be left out")

// errNoSummary is a model that wrote none.
var errNoSummary = errors.New("no summary")

// uncompacted ends the agent's part where the conversation could not be shortened, unless that was a fault. That a model
// which is not the agent's writes no summary is none of the agent's doing.
func (g *game) uncompacted(err error) error {
	switch failed, asked := errors.AsType[*model.Error](err); {
	case errors.Is(err, errIncompressible):
		return g.overflow()
	case !errors.Is(err, errNoSummary):
		return err
	case g.Context.Summary == nil:
		return g.overflow()
	case asked:
		return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: summarize the conversation: %w", len(g.ep.Turns), err))
	}
	return faulty(episode.ModelError, "no_summary", fmt.Errorf("turn %d: summarize the conversation: %w", len(g.ep.Turns), err))
}

// overflow stops the agent at the end of its window: its doing, and what it left is judged.
func (g *game) overflow() error {
	g.ep.Stop = episode.StopContext
	return errLimit
}

func (g *game) strategy() string { return cmp.Or(g.Context.Strategy, episode.CompactStop) }

// count is how many tokens the next prompt has, as far as is known.
func (g *game) count() int { return g.talk.Counter.Count(g.sent(), g.ep.Tools) }

// compact shortens the conversation to about target tokens, and notes how, or why not.
func (g *game) compact(ctx context.Context, c episode.Compaction, target int) error {
	c.Turn, c.Strategy = len(g.ep.Turns), g.strategy()
	var err error
	if c.Strategy == episode.CompactDrop {
		err = g.drop(&c, target)
	} else {
		err = g.summarize(ctx, &c)
	}
	if errors.Is(err, errIncompressible) && !c.Refused {
		return err // nothing happened
	}
	g.unsummarized = nil
	if errors.Is(err, errNoSummary) {
		g.unsummarized = err
	}
	if err != nil {
		c.Failed, c.After = err.Error(), c.Before
		c.Replaced, c.From, c.To, c.Summary = nil, 0, 0, ""
		g.ep.Compactions = append(g.ep.Compactions, c)
		return err
	}
	g.talk.Counter.Forget()
	g.session.Forget(max(len(g.ep.Turns)-keptTurns, 0))
	g.ep.Compactions = append(g.ep.Compactions, c)
	last := &g.ep.Compactions[len(g.ep.Compactions)-1]
	last.After = g.count()
	g.logger.Debug("conversation compacted", "id", g.ep.ID, "turn", c.Turn, "strategy", c.Strategy, "before", c.Before, "after", last.After)
	return nil
}

// tail is the index of the message with which the last turns begin. It is a message of the assistant, so that no call
// is parted from its results.
func (g *game) tail() int {
	turns := g.ep.Turns
	return turns[max(len(turns)-keptTurns, 0)].Message
}
