package compress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Status says what became of an episode.
type Status string

// The statuses.
const (
	Fits       Status = "fits"       // it was within the budget
	Compressed Status = "compressed" // it is now
	CannotFit  Status = "cannot_fit" // it is as it was, over the budget
)

// Mark is what is known of an episode's way into the budget. Tokens are estimates.
type Mark struct {
	ID      string `json:"id"`
	Task    string `json:"task"`
	Row     int    `json:"row"`
	Sample  int    `json:"sample"`
	Status  Status `json:"status"`
	Budget  int    `json:"budget"`
	Before  int    `json:"before_tokens"`
	After   int    `json:"after_tokens"`
	Learned bool   `json:"learned"` // from what the server has counted of this episode, how many bytes a token is

	// Least is what is protected, with room for a summary: the least budget that this episode fits into. Only with cannot_fit.
	Least int `json:"least_tokens,omitempty"`

	// Of what was left out: the messages From up to To of the episode as it was played, and what they were.
	From  int `json:"from_message,omitempty"`
	To    int `json:"to_message,omitempty"`
	Turns int `json:"turns,omitempty"`
	Calls int `json:"calls,omitempty"`

	By    string         `json:"by"` // rule or model
	Model string         `json:"model,omitempty"`
	Usage *episode.Usage `json:"usage,omitempty"`
	Cut   bool           `json:"summary_cut,omitempty"` // the summary was longer than its room
	// Reason is why it cannot fit.
	Reason string `json:"reason,omitempty"`
}

// fit fits one episode into the budget.
func (c *compressed) fit(ctx context.Context, ep *episode.Episode) (*episode.Episode, Mark, error) {
	ruler := c.Measure(ep)
	sizes := make([]int, len(ep.Messages))
	total := ruler.Tools
	for i := range ep.Messages {
		sizes[i] = ruler.Message(&ep.Messages[i])
		total += sizes[i]
	}
	mark := Mark{
		ID: ep.ID, Task: ep.Key.Task, Row: ep.Row, Sample: ep.Key.Sample,
		Budget: c.Budget, Before: total, After: total, Learned: ruler.Learned, By: "rule",
	}
	if c.Summarise != nil {
		mark.By = "model"
	}
	if total <= c.Budget {
		mark.Status = Fits
		return marked(ep, mark), mark, nil
	}
	cut, least, reason := c.middle(ep, sizes, total)
	if reason != "" {
		mark.Status, mark.Reason, mark.Least = CannotFit, reason, least
		return marked(ep, mark), mark, nil
	}
	mark.From, mark.To = cut.from, cut.to
	mark.Turns, mark.Calls = cut.counts(ep)
	err := c.shorten(ctx, ep, cut, ruler, &mark)
	if errors.Is(err, ErrNoSummary) {
		mark.Status, mark.Reason, mark.After = CannotFit, err.Error(), total
		mark.From, mark.To, mark.Turns, mark.Calls = 0, 0, 0, 0
		return marked(ep, mark), mark, nil
	}
	if err != nil {
		return nil, mark, fmt.Errorf("compress episode %s: %w", ep.ID, err)
	}
	mark.Status = Compressed
	return cut.apply(ep, mark), mark, nil
}

// middle finds what is left out: turns from the first one that is not protected on, with everything behind each, until
// the rest and a summary fit. Where they never do, least is what they have.
func (c *compressed) middle(ep *episode.Episode, sizes []int, total int) (_ *cut, least int, reason string) {
	turns := slices.Sorted(maps.Keys(ep.Spoken())) // where they begin
	last := len(turns) - c.TailTurns
	if last <= c.HeadTurns {
		return nil, total, fmt.Sprintf("all of its %d turns are protected", len(turns))
	}
	end := len(ep.Messages)
	if c.TailTurns > 0 {
		end = turns[last]
	}
	from, saved := turns[c.HeadTurns], 0
	for i := c.HeadTurns; i < last; i++ {
		to := end
		if i+1 < last {
			to = turns[i+1]
		}
		for at := turns[i]; at < to; at++ {
			if !byUser(&ep.Messages[at]) {
				saved += sizes[at]
			}
		}
		if total-saved+c.SummaryTokens <= c.Budget {
			if parted(ep.Messages, from, to) {
				return nil, total, "results do not follow their calls"
			}
			return &cut{from: from, to: to}, 0, ""
		}
	}
	return nil, total - saved + c.SummaryTokens, "what is protected and a summary are over the budget"
}

// byUser tells the user's own words, which no summary must replace.
func byUser(m *episode.Message) bool { return m.Role == "user" && !m.Harness }

// parted says whether a result behind the cut answers a call within it.
func parted(messages []episode.Message, from, to int) bool {
	// Behind the cut comes a message of the model's, or nothing: what follows that answers later calls, unless results
	// stand where no model would read them.
	open := map[string]bool{}
	for i := from; i < to; i++ {
		for _, call := range messages[i].Calls {
			open[call.ID] = true
		}
		if messages[i].Role == "tool" {
			delete(open, messages[i].ToolCallID)
		}
	}
	if len(open) == 0 {
		return false
	}
	return slices.ContainsFunc(messages[to:], func(m episode.Message) bool { return m.Role == "tool" && open[m.ToolCallID] })
}

// shorten writes what stands for the middle.
func (c *compressed) shorten(ctx context.Context, ep *episode.Episode, cut *cut, ruler Ruler, mark *Mark) error {
	text, err := c.summary(ctx, ep, cut, mark)
	if err != nil {
		return err
	}
	left, room := mark.Before, c.SummaryTokens
	for i := cut.from; i < cut.to; i++ {
		n := ruler.Message(&ep.Messages[i])
		left -= n
		if byUser(&ep.Messages[i]) {
			room += n
		}
	}
	for {
		cut.stand(ep, text)
		size := ruler.Message(&cut.summary)
		mark.After = left + size
		if size <= room || text == "" {
			break
		}
		mark.Cut = true
		text = episode.Head(text, min(len(text)*room/size, len(text)-len(text)/16-1))
	}
	if mark.After > c.Budget {
		return fmt.Errorf("%w: its frame alone is over the budget", ErrNoSummary)
	}
	return nil
}

// summary says what happened in the middle.
func (c *compressed) summary(ctx context.Context, ep *episode.Episode, cut *cut, mark *Mark) (string, error) {
	if c.Summarise == nil {
		return outline(ep, cut), nil
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	summary, err := c.Summarise(ctx, Ask{
		Episode: ep.ID, Task: ep.Key.Task, Text: episode.Transcript(ep.Messages[cut.from:cut.to], c.MaxText), MaxTokens: c.SummaryTokens,
	})
	if err != nil {
		return "", err
	}
	mark.Model, mark.Usage = summary.Model, &summary.Usage
	text := strings.TrimSpace(summary.Text)
	if text == "" {
		return "", fmt.Errorf("%w: the model said nothing", ErrNoSummary)
	}
	return text, nil
}
