package export

import (
	"context"
	"strings"

	"trajgen/pipeline/episode"
)

// group is what a condition can ask of all samples of an episode's task. A missing reward is not a zero: it is counted apart.
type group struct {
	n, missing, passed int
	sum                float64
}

// taskOf names the task that an episode is a sample of.
type taskOf struct {
	row  int // files of several datasets may have the same ids
	task string
}

// Grouped reports whether the condition asks about groups, so that the source is read twice.
func (c Choice) Grouped() bool {
	return strings.Contains(c.Where, "group") || strings.Contains(c.Where, "advantage")
}

// group reads the source once, for all groups. It keeps some numbers of each task, and no episode.
func (c *chosen) group(ctx context.Context) error {
	c.groups = map[taskOf]*group{}
	for ep, err := range c.source.Episodes(ctx) {
		if err != nil {
			return err
		}
		key := taskOf{ep.Row, ep.Key.Task}
		g := c.groups[key]
		if g == nil {
			g = &group{}
			c.groups[key] = g
		}
		if ep.Twin != nil { // which is no sample of its task
			continue
		}
		if ep.Reward == nil {
			g.missing++
			continue
		}
		g.n++
		g.sum += *ep.Reward
		if ep.Outcome == episode.Success {
			g.passed++
		}
	}
	return nil
}

// values are the variables about a group.
func (g *group) values(ep *episode.Episode) (fields map[string]any, advantage any) {
	fields = map[string]any{"n": g.n, "missing": g.missing, "passed": g.passed, "mean": nil}
	if g.n > 0 {
		mean := g.sum / float64(g.n)
		fields["mean"] = mean
		if ep.Reward != nil {
			advantage = *ep.Reward - mean
		}
	}
	return fields, advantage
}
