package episode_test

import (
	"testing"

	"trajgen/pipeline/episode"
)

// TestBilled pays each turn as the model that answered it, whatever the others of the episode were.
func TestBilled(t *testing.T) {
	prices := episode.Prices{"run": {Input: 1}, "drawn": {Input: 10}, "second": {Input: 100}, "second-2026": {Input: 1000}}
	tests := []struct {
		name    string
		turn    episode.Turn
		sampled string
		want    float64
		known   bool
	}{
		{"the run's model", episode.Turn{Model: "run-2026"}, "", 1, true},
		{"the drawn one", episode.Turn{Model: "drawn-2026"}, "drawn", 10, true},
		{"a fallback under its own name", episode.Turn{Model: "second-2026", Fallback: "second"}, "drawn", 1000, true},
		{"a fallback under another name", episode.Turn{Model: "/models/x", Fallback: "second"}, "drawn", 100, true},
		{"a fallback that is called as the first model", episode.Turn{Model: "/models/x", Fallback: "run at http://b/v1"}, "", 1, true},
		{"a fallback without a price", episode.Turn{Model: "third-2026", Fallback: "third"}, "drawn", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.turn.Usage = episode.Usage{Prompt: 1e6, Reported: true}
			// What answered last does not answer for the others.
			ep := &episode.Episode{Model: "second-2026", Sampling: episode.Sampling{Model: tt.sampled}, Turns: []episode.Turn{tt.turn}}
			if got, known := episode.CostOf(ep, prices, "run"); got != tt.want || known != tt.known {
				t.Errorf("CostOf = %v, %v, want %v, %v", got, known, tt.want, tt.known)
			}
		})
	}
}
