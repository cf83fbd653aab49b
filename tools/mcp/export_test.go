package mcp

import (
	"log/slog"
	"time"

	"trajgen/pipeline/episode"
)

// HurryUp makes the pauses between tries short, and the wait for a sign of life.
func HurryUp() { pause, pingTime = 10*time.Millisecond, time.Second }

// Pauses are the waits before all tries of an episode to connect to a server, and then before those to connect again.
func Pauses(key episode.Key) (all []time.Duration) {
	l := newLive(&server{name: "fake"}, slog.New(slog.DiscardHandler), key)
	for _, again := range []bool{false, true} {
		for try := range maxTries {
			all = append(all, l.pause(try, again))
		}
	}
	return all
}
