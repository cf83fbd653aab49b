package report

import (
	"time"

	"trajgen/pipeline/episode"
)

// clock adds up how long episodes took.
type clock struct {
	span           Span
	elapsed        durations
	all, wait, use time.Duration // sums over episodes: elapsed, model, tools
}

func (c *clock) add(ep *episode.Episode) {
	c.elapsed.add(hashOf(ep.ID), ep.Elapsed)
	c.all, c.wait, c.use = c.all+ep.Elapsed, c.wait+ep.Phases.Model, c.use+ep.Phases.Tools
	if ep.Started.IsZero() {
		return
	}
	started, ended := ep.Started.UTC(), ep.Started.Add(ep.Elapsed).UTC()
	if c.span.Started == nil || started.Before(*c.span.Started) {
		c.span.Started = &started
	}
	if c.span.Ended == nil || ended.After(*c.span.Ended) {
		c.span.Ended = &ended
	}
}

// timing is for a run that took so long, in which so many episodes ended.
func (c *clock) timing(wall time.Duration, played int) Timing {
	t := Timing{Episode: c.elapsed.quantiles()}
	if wall > 0 {
		t.WallUS = new(wall.Microseconds())
		t.PerSecond = new(float64(played) / wall.Seconds())
	}
	if c.all > 0 {
		t.ModelShare = new(float64(c.wait) / float64(c.all))
		t.ToolShare = new(float64(c.use) / float64(c.all))
	}
	return t
}
