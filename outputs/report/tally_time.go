package report

import (
	"time"

	"trajgen/pipeline/episode"
)

// clock adds up how long episodes took.
type clock struct {
	began, ended   time.Time // of the first episode, and of the last one
	elapsed        durations
	all, wait, use time.Duration // sums over episodes: elapsed, model, tools
}

func (c *clock) add(ep *episode.Episode) {
	c.elapsed.add(hashOf(ep.ID), ep.Elapsed)
	c.all, c.wait, c.use = c.all+ep.Elapsed, c.wait+ep.Phases.Model, c.use+ep.Phases.Tools
	if ep.Started.IsZero() {
		return
	}
	if c.began.IsZero() || ep.Started.Before(c.began) {
		c.began = ep.Started
	}
	if end := ep.Started.Add(ep.Elapsed); end.After(c.ended) {
		c.ended = end
	}
}

func (c *clock) span() (s Span) {
	if !c.began.IsZero() {
		s.Started, s.Ended = new(c.began.UTC()), new(c.ended.UTC())
	}
	return s
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
