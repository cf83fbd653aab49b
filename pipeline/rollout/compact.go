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

// fitter keeps the conversation of an attempt within the model's window.
type fitter struct {
	*attempt
	// unsummarized is why the last request for a summary gave none; nil when it gave one.
	unsummarized error
}

// sent is the conversation as the model is sent it next.
func (f *fitter) sent() []episode.Message {
	return episode.Shortened(f.ep.Messages, f.ep.Compactions, len(f.ep.Turns))
}

// window is that of the episode's model.
func (f *fitter) window() int {
	if s := f.progress.next(); s != nil && s.Kind == stepReply {
		return s.Window
	}
	if f.Context.Window == nil {
		return 0
	}
	return f.Context.Window(f.ep.Sampling.Model)
}

// fit shortens a conversation that nears the end of the model's window. A first request is sent as it is: it holds
// nothing that could be left out.
func (f *fitter) fit(ctx context.Context) error {
	window := f.window()
	if window == 0 || len(f.ep.Turns) == 0 {
		return nil
	}
	room := window - min(f.Context.Reply, window/2) // for the prompt
	size := f.count()
	if f.strategy() == episode.CompactStop {
		if size >= window {
			return f.stop(episode.StopContext)
		}
		return nil
	}
	at, to := cmp.Or(f.Context.CompactAt, DefaultCompactAt), cmp.Or(f.Context.CompactTo, DefaultCompactTo)
	if size < min(int(at*float64(window)), room) {
		return nil
	}
	if size < room && !f.pays(size, int((at-to)/2*float64(window))) {
		return nil
	}
	c := episode.Compaction{Before: size, Counted: f.talk.Counter.Known().Tokens}
	if err := f.compact(ctx, c, min(int(to*float64(window)), room)); err != nil {
		if size < window && (errors.Is(err, errIncompressible) || errors.Is(err, errNoSummary)) {
			return nil // it may still fit
		}
		return f.uncompacted(err)
	}
	return nil
}

// tooLong deals with a conversation that the server found too long. It returns whether it is shorter now.
func (f *fitter) tooLong(ctx context.Context, err error) (again bool, _ error) {
	var failed *model.Error
	turn := len(f.ep.Turns)
	if turn == 0 || !errors.As(err, &failed) || failed.Class != model.ClassContextOverflow || f.strategy() == episode.CompactStop {
		return false, nil
	}
	refused := func(c episode.Compaction) bool { return c.Turn == turn && c.Refused }
	if slices.ContainsFunc(f.ep.Compactions, refused) {
		return false, nil // once
	}
	if last := len(f.ep.Compactions) - 1; last >= 0 && f.ep.Compactions[last].Turn == turn && f.unsummarized != nil {
		return false, f.uncompacted(f.unsummarized) // who was asked just now would say nothing else
	}
	c := episode.Compaction{Refused: true, Before: f.count(), Counted: f.talk.Counter.Known().Tokens}
	size := c.Before
	if window := f.window(); window > 0 {
		size = min(size, window)
	}
	if err := f.compact(ctx, c, int(cmp.Or(f.Context.CompactTo, DefaultCompactTo)*float64(size))); err != nil {
		return false, f.uncompacted(err)
	}
	return true, nil
}

// errIncompressible is a conversation in which there is nothing to leave out.
var errIncompressible = errors.New("nothing can be left out")

// errNoSummary is a model that wrote none.
var errNoSummary = errors.New("no summary")

// uncompacted ends the agent's part where the conversation could not be shortened, unless that was a fault. When a model
// other than the agent's writes no summary, that is not the agent's doing.
func (f *fitter) uncompacted(err error) error {
	switch failed, asked := errors.AsType[*model.Error](err); {
	case errors.Is(err, errIncompressible):
		return f.stop(episode.StopContext)
	case !errors.Is(err, errNoSummary):
		return err
	case f.Context.Summary == nil:
		return f.stop(episode.StopContext)
	case asked:
		return faulty(episode.ModelError, failed.Class, fmt.Errorf("turn %d: summarize the conversation: %w", len(f.ep.Turns), err))
	}
	return faulty(episode.ModelError, "no_summary", fmt.Errorf("turn %d: summarize the conversation: %w", len(f.ep.Turns), err))
}

func (f *fitter) strategy() string { return cmp.Or(f.Context.Compaction, episode.CompactStop) }

// count is how many tokens the next prompt has, as far as is known.
func (f *fitter) count() int { return f.talk.Counter.Count(f.sent(), f.ep.Tools) }

// compact shortens the conversation to about target tokens, and notes how, or why not.
func (f *fitter) compact(ctx context.Context, c episode.Compaction, target int) error {
	c.Turn, c.Strategy = len(f.ep.Turns), f.strategy()
	var err error
	if c.Strategy == episode.CompactDrop {
		err = f.drop(&c, target)
	} else {
		err = f.summarize(ctx, &c)
	}
	if errors.Is(err, errIncompressible) && !c.Refused {
		return err // nothing happened
	}
	f.unsummarized = nil
	if errors.Is(err, errNoSummary) {
		f.unsummarized = err
	}
	if err != nil {
		c.Failed, c.After = err.Error(), c.Before
		c.Replaced, c.From, c.To, c.Summary = nil, 0, 0, ""
		f.ep.Compactions = append(f.ep.Compactions, c)
		return err
	}
	f.talk.Counter.Forget()
	f.kit.session.Forget(max(len(f.ep.Turns)-keptTurns, 0))
	f.ep.Compactions = append(f.ep.Compactions, c)
	last := &f.ep.Compactions[len(f.ep.Compactions)-1]
	last.After = f.count()
	f.logger.Debug("conversation compacted", "id", f.ep.ID, "turn", c.Turn, "strategy", c.Strategy, "before", c.Before, "after", last.After)
	return nil
}

// tail is the index of the message with which the last turns begin. It is a message of the assistant, so that no call
// is parted from its results.
func (f *fitter) tail() int {
	turns := f.ep.Turns
	return turns[max(len(turns)-keptTurns, 0)].Message
}
