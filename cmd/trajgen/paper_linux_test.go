package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// pseudoTerminal is a terminal of 120 columns.
func pseudoTerminal(t *testing.T) *os.File {
	_, follower := pseudoTerminals(t)
	return follower
}

// pseudoTerminals are both ends of one.
func pseudoTerminals(t *testing.T) (leader, follower *os.File) {
	t.Helper()
	leader, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { leader.Close() })
	err = unix.IoctlSetPointerInt(int(leader.Fd()), unix.TIOCSPTLCK, 0)
	if err == nil {
		err = unix.IoctlSetWinsize(int(leader.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120})
	}
	number, err2 := unix.IoctlGetInt(int(leader.Fd()), unix.TIOCGPTN)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	follower, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { follower.Close() })
	return leader, follower
}

func TestPaper(t *testing.T) {
	file := pseudoTerminal(t)
	for _, tt := range []struct {
		term, noColor string
		color, bar    bool
	}{{"xterm", "", true, true}, {"xterm", "1", false, true}, {"dumb", "", false, false}} {
		t.Setenv("TERM", tt.term)
		t.Setenv("NO_COLOR", tt.noColor)
		width, color := paper(file)
		if _, bar := terminal(file); width != 120 || color != tt.color || bar != tt.bar {
			t.Errorf("TERM=%s NO_COLOR=%s: width %d, color %v, bar %v; want %+v", tt.term, tt.noColor, width, color, bar, tt)
		}
	}
	if width, color := paper(new(bytes.Buffer)); width != 0 || color {
		t.Errorf("where there is no terminal: width %d, color %v", width, color)
	}
}

// TestProgressSaysWhichTime is about both forms: the times have words.
func TestProgressSaysWhichTime(t *testing.T) {
	for _, bar := range []bool{false, true} {
		now := time.Unix(0, 0)
		var out bytes.Buffer
		p := newProgress(&out, 100, bar, 200, func() time.Time { return now })
		now = now.Add(20 * time.Second)
		p.observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
		p.end()
		text := out.String()
		if bar { // which writes only so often
			text = p.bar.State().Description
		}
		if !strings.Contains(text, "20s elapsed, 33m0s left: 1 success") {
			t.Errorf("bar %v: %q", bar, text)
		}
	}
}

func TestProgressWarnsOfUnreadCalls(t *testing.T) {
	for _, bar := range []bool{false, true} {
		var out bytes.Buffer
		p := newProgress(&out, 100, bar, 200, time.Now)
		for _, kind := range []pipeline.EventKind{pipeline.EpisodeStarted, pipeline.EpisodeRetried, pipeline.EpisodeFinished} {
			ep := &episode.Episode{Outcome: episode.ModelError}
			if kind != pipeline.EpisodeStarted {
				ep.Fault = &episode.Fault{Outcome: episode.ModelError, Class: model.ClassUnread, Message: "set tool_format"}
			}
			p.observe(pipeline.Event{Kind: kind, Episode: ep})
		}
		if n := strings.Count(out.String(), "set tool_format\n"); n != 1 {
			t.Errorf("bar %v: warned %d times: %q", bar, n, out.String())
		}
	}
}
