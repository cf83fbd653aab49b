package export

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"trajgen/pipeline/episode"
)

// sound says what is wrong with an episode that was read from a file: an index that leads out of a list, a number that
// is none, a word of no closed set. Formats rely on it. What a journal holds was made here and is sound.
func sound(ep *episode.Episode) error {
	c := &checker{}
	c.want(ep.ID != "", "it has no id")
	c.want(ep.Row >= 0 && ep.Key.Sample >= 0, "row %d, sample %d (want them from 0)", ep.Row, ep.Key.Sample)
	c.want(slices.Contains(episode.Outcomes(), ep.Outcome), "outcome %q (want one of %v)", ep.Outcome, episode.Outcomes())
	c.want(ep.Schema <= episode.SchemaVersion, "schema %d (this trajgen knows up to %d)", ep.Schema, episode.SchemaVersion)
	c.finite("log_p", &ep.LogP)
	c.finite("reward", ep.Reward)
	c.finite("cost_usd", ep.CostUSD)
	c.finite("temperature", ep.Sampling.Temperature)
	c.finite("top_p", ep.Sampling.TopP)
	for _, r := range ep.Rewards {
		c.finite("reward "+r.Name, &r.Value)
		c.finite("weight of reward "+r.Name, &r.Weight)
	}
	if ep.Reward != nil {
		c.want(ep.Outcome.AgentsDoing(), "outcome %s with a reward (want null: it is not the agent's doing)", ep.Outcome)
	}
	for i := range ep.Turns {
		t := &ep.Turns[i]
		c.want(t.Message >= 0 && t.Message < len(ep.Messages), "turn %d is message %d of %d", i, t.Message, len(ep.Messages))
		c.finite("cost of a turn", t.Cost)
		if k := t.Tokens; k != nil {
			c.want(k.Shared >= 0 && k.Shared <= episode.MaxIDs, "turn %d shares %d token ids", i, k.Shared)
			c.ids("prompt", k.Prompt)
			c.ids("completion", k.Completion)
		}
		if d := ep.Drift; d != nil && d.Verdict == episode.DriftNone {
			c.want(t.Tokens != nil, "turn %d has no tokens though there is no drift", i)
		}
	}
	for i := range ep.Calls {
		call := &ep.Calls[i]
		c.want(call.Turn >= 0 && call.Turn < len(ep.Turns), "call %d is of turn %d of %d", i, call.Turn, len(ep.Turns))
	}
	for i := range ep.Compactions {
		p := &ep.Compactions[i]
		c.want(p.Turn >= 0 && p.From >= 0 && p.From <= max(p.To, p.From) && p.To <= len(ep.Messages) && p.From <= len(ep.Messages),
			"compaction %d is of turn %d, from message %d to %d of %d", i, p.Turn, p.From, p.To, len(ep.Messages))
		for _, r := range p.Replaced {
			c.want(r.Message >= 0 && r.Message < len(ep.Messages), "compaction %d replaces message %d of %d", i, r.Message, len(ep.Messages))
		}
	}
	if d := ep.Drift; d != nil {
		c.want(slices.Contains(episode.DriftVerdicts(), d.Verdict), "drift %q (want one of %v)", d.Verdict, episode.DriftVerdicts())
		c.want(d.Turn == 0 || d.Turn > 0 && d.Turn < len(ep.Turns), "drift in turn %d of %d", d.Turn, len(ep.Turns))
		c.want(d.Position >= 0, "drift at token %d", d.Position)
		c.ids("drift", d.Expected)
		c.ids("drift", d.Got)
	}
	if err := errors.Join(c.wrong...); err != nil {
		return fmt.Errorf("episode %.60q: %w", ep.ID, err)
	}
	return nil
}

type checker struct{ wrong []error }

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok && len(c.wrong) < 20 {
		c.wrong = append(c.wrong, fmt.Errorf(format, args...))
	}
}

func (c *checker) finite(name string, v *float64) {
	c.want(v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0), "%s is not a finite number", name)
}

func (c *checker) ids(what string, ids episode.IDs) {
	c.want(len(ids) <= episode.MaxIDs, "%d token ids in one list (want at most %d)", len(ids), episode.MaxIDs)
	c.want(!slices.ContainsFunc(ids, func(id int32) bool { return id < 0 }), "a negative token id (%s)", what)
}
