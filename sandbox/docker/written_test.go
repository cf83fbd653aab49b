package docker

import "testing"

// TestStaleMeasure holds that a command which begins after a slow measurement did is judged by a new one.
func TestStaleMeasure(t *testing.T) {
	r := &room{limit: 10}
	var asked int
	got := r.written(func() int64 {
		if asked++; asked == 1 {
			r.started.Add(1) // "rm" has ended, and the next command begins
			return 15
		}
		return 5
	})
	if got != 5 || asked != 2 {
		t.Errorf("got %d bytes after %d measurements, want 5 after 2", got, asked)
	}
	asked = 0
	got = r.written(func() int64 { asked++; r.started.Add(1); return 15 })
	if got != 15 || asked != 3 {
		t.Errorf("commands that begin all the time: got %d bytes after %d measurements, want 15 after 3", got, asked)
	}
}
