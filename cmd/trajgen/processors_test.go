package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
)

// TestProgressSaysWhatHolds has a run that waits for its own processors, and then no more.
func TestProgressSaysWhatHolds(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := newProgress(&out, 100, false, 80, func() time.Time { return now })
	var held time.Duration
	p.held = func() time.Duration { return held }
	for _, more := range []time.Duration{0, 9 * time.Second, time.Second} {
		now = now.Add(10 * time.Second)
		held += more
		p.observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("printed %q, want three lines", out.String())
	}
	for i, line := range lines {
		if got := strings.Contains(line, "processors"); got != (i == 1) {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
}
