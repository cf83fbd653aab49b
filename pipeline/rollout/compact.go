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

// Context is how conversations are kept within the model's window.
type Context struct {
	ContextSettings
	// Window is how many tokens a prompt and its reply may have together; 0 is not known. Then only a server's refusal
	// says that a conversation is too long.
	Window        func(model string) int // nil knows no window
	Reply         int                    // most tokens of a reply; 0 is not known
	Summary       model.Model            // writes the summaries; nil is the agent's own
	SummaryWindow int                    // of that model; 0 is not known, and then what fits the agent's is taken to fit it
}

// keptTurns are the last turns, which are sent as they are.
const keptTurns = 3

// sent is the conversation as the model is sent it next.
func (a *attempt) sent() []episode.Message {
	return episode.Shortened(a.ep.Messages, a.ep.Compactions, len(a.ep.Turns))
}

// window is that of the episode's model.
func (a *attempt) window() int {
	if s := a.progress.next(); s != nil && s.Kind == stepReply {
		return s.Window
	}
	if a.Context.Window == nil {
		return 0
	}
	return a.Context.Window(a.ep.Sampling.Model)
}

// fit shortens a conversation that nears the end of the model's window. A first request is sent as it is: it holds
// nothing that could be left out.
func (a *attempt) fit(ctx context.Context) error {
	window := a.window()
	if window == 0 || len(a.ep.Turns) == 0 {
		return nil
	}
	room := window - min(a.Context.Reply, window/2) // for the prompt
	size := a.count()
	if a.strategy() == episode.CompactStop {
		if size >= window {
			return a.overflow()
		}
		return nil
	}
	at, to := cmp.Or(a.Context.CompactAt, DefaultCompactAt), cmp.Or(a.Context.CompactTo, DefaultCompactTo)
	if size < min(int(at*float64(window)), room) {
		return nil
	}
	if size < room && !a.pays(size, int((at-to)/2*float64(window))) {
		return nil
	}
	c := episode.Compaction{Before: size, Counted: a.talk.Counter.Known().Tokens}
	if err := a.compact(ctx, c, min(int(to*float64(window)), room)); err != nil {
		if size < window && (errors.Is(err, errIncompressible) || errors.Is(err, errNoSummary)) {
			return nil // it may still fit
		}
		return a.uncompacted(err)
	}
	return nil
}

// tooLong deals with a conversation that the server found too long. It tells whether it is shorter now.
func (a *attempt) tooLong(ctx context.Context, err error) (again bool, _ error) {
	var failed *model.Error
	turn := len(a.ep.Turns)
	if turn == 0 || !errors.As(err, &failed) || failed.Class != model.ClassContextOverflow || a.strategy() == episode.CompactStop {
		return false, nil
	}
	refused := func(c episode.Compaction) bool { return c.Turn == turn && c.Refused }
	if slices.ContainsFunc(a.ep.Compactions, refused) {
		return false, nil // once
	}
	if last := len(a.ep.Compactions) - 1; last >= 0 && a.ep.Compactions[last].Turn == turn && a.unsummarized != nil {
		return false, a.uncompacted(a.unsummarized) // who was asked just now would say nothing else
	}
	c := episode.Compaction{Refused: true, Before: a.count(), Counted: a.talk.Counter.Known().Tokens}
	size := c.Before
	if window := a.window(); window > 0 {
		size = min(size, window)
	}
	if err := a.compact(ctx, c, int(cmp.Or(a.Context.CompactTo, DefaultCompactTo)*float64(size))); err != nil {
		return false, a.uncompacted(err)
	}
	return true, nil
}

// errIncompressible is a conversation in which there is nothing to leave out.
var errIncompressible = errors.New("nothing can be left out")

// errNoSummary is a model that wrote none.
var errNoSummary = errors.New("no summary")

// uncompacted ends the agent's part where the conversation could not be shortened, unless that was a fault. That a model
// which is not the agent's writes no summary is none of the agent's doing.
func (a *attempt) uncompacted(err error) error {
	switch failed, asked := errors.AsType[*model.Error](err); {
	case errors.Is(err, errIncompressible):
		return a.overflow()
	case !errors.Is(err, errNoSummary):
		return err
	case a.Context.Summary == nil:
		return a.overflow()
	case asked:
		return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: summarize the conversation: %w", len(a.ep.Turns), err))
	}
	return faulty(episode.ModelError, "no_summary", fmt.Errorf("turn %d: summarize the conversation: %w", len(a.ep.Turns), err))
}

// overflow stops the agent at the end of its window: its doing, and what it left is judged.
func (a *attempt) overflow() error {
	a.ep.Stop = episode.StopContext
	return errLimit
}

func (a *attempt) strategy() string { return cmp.Or(a.Context.Compaction, episode.CompactStop) }

// count is how many tokens the next prompt has, as far as is known.
func (a *attempt) count() int { return a.talk.Counter.Count(a.sent(), a.ep.Tools) }

// compact shortens the conversation to about target tokens, and notes how, or why not.
func (a *attempt) compact(ctx context.Context, c episode.Compaction, target int) error {
	c.Turn, c.Strategy = len(a.ep.Turns), a.strategy()
	var err error
	if c.Strategy == episode.CompactDrop {
		err = a.drop(&c, target)
	} else {
		err = a.summarize(ctx, &c)
	}
	if errors.Is(err, errIncompressible) && !c.Refused {
		return err // nothing happened
	}
	a.unsummarized = nil
	if errors.Is(err, errNoSummary) {
		a.unsummarized = err
	}
	if err != nil {
		c.Failed, c.After = err.Error(), c.Before
		c.Replaced, c.From, c.To, c.Summary = nil, 0, 0, ""
		a.ep.Compactions = append(a.ep.Compactions, c)
		return err
	}
	a.talk.Counter.Forget()
	a.session.Forget(max(len(a.ep.Turns)-keptTurns, 0))
	a.ep.Compactions = append(a.ep.Compactions, c)
	last := &a.ep.Compactions[len(a.ep.Compactions)-1]
	last.After = a.count()
	a.logger.Debug("conversation compacted", "id", a.ep.ID, "turn", c.Turn, "strategy", c.Strategy, "before", c.Before, "after", last.After)
	return nil
}

// tail is the index of the message with which the last turns begin. It is a message of the assistant, so that no call
// is parted from its results.
func (a *attempt) tail() int {
	turns := a.ep.Turns
	return turns[max(len(turns)-keptTurns, 0)].Message
}
