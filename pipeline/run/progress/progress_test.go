package progress_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/run/progress"
)

// TestProgressSaysWhatHolds has a run that waits for its own processors, and then no more.
func TestProgressSaysWhatHolds(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := progress.New(&out, 100, false, 80, func() time.Time { return now })
	var held time.Duration
	p.Held = func() time.Duration { return held }
	for _, more := range []time.Duration{0, 9 * time.Second, time.Second} {
		now = now.Add(10 * time.Second)
		held += more
		p.Observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
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

// TestProgressSaysWhichTime is about both forms: the times have words.
func TestProgressSaysWhichTime(t *testing.T) {
	for _, bar := range []bool{false, true} {
		now := time.Unix(0, 0)
		var out bytes.Buffer
		p := progress.New(&out, 100, bar, 200, func() time.Time { return now })
		now = now.Add(20 * time.Second)
		p.Observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
		p.End()
		text := out.String()
		if bar { // which writes only so often
			text = p.Described()
		}
		if !strings.Contains(text, "20s elapsed, 33m0s left: 1 success") {
			t.Errorf("bar %v: %q", bar, text)
		}
	}
}

// TestProgressCountsTwins is about both forms: what is counted anew is not the episodes that they are twins of.
func TestProgressCountsTwins(t *testing.T) {
	for _, bar := range []bool{false, true} {
		now := time.Unix(0, 0)
		var out bytes.Buffer
		p := progress.New(&out, 1, bar, 200, func() time.Time { return now })
		play := func() {
			now = now.Add(20 * time.Second)
			p.Observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
		}
		play()
		p.Observe(pipeline.Event{Kind: pipeline.TwinsPlanned, Twins: 345})
		p.Observe(pipeline.Event{Kind: pipeline.EpisodeSkipped})
		play()
		p.End()
		text := out.String()
		want := []string{"1 of 1 episodes", "2 of 345 twins", "20s elapsed, 1h54m20s left: 1 success"}
		if bar {
			text += p.Described()
			want = []string{"(1/1, ", "twins 20s elapsed, 1h54m20s left: 1 success (2/345)"}
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("bar %v: %q lacks %q", bar, text, w)
			}
		}
	}
}

func TestProgressWarnsOfUnreadCalls(t *testing.T) {
	for _, bar := range []bool{false, true} {
		var out bytes.Buffer
		p := progress.New(&out, 100, bar, 200, time.Now)
		for _, kind := range []pipeline.EventKind{pipeline.EpisodeStarted, pipeline.EpisodeRetried, pipeline.EpisodeFinished} {
			ep := &episode.Episode{Outcome: episode.ModelError}
			if kind != pipeline.EpisodeStarted {
				ep.Fault = &episode.Fault{Outcome: episode.ModelError, Class: model.ClassUnread, Message: "set tool_format"}
			}
			p.Observe(pipeline.Event{Kind: kind, Episode: ep})
		}
		if n := strings.Count(out.String(), "set tool_format\n"); n != 1 {
			t.Errorf("bar %v: warned %d times: %q", bar, n, out.String())
		}
	}
}
