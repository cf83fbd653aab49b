package rollout_test

import (
	"testing"

	"trajgen/pipeline/episode"
)

// TestStepsAreJudgedAtTheirEnd holds that a check sees what stood when its message was answered, and that the agent never sees the
// check's files.
func TestStepsAreJudgedAtTheirEnd(t *testing.T) {
	task := func(least float64) episode.Task {
		return episode.Task{
			Prompt: []episode.Message{{Role: "user", Content: "one"}, {Role: "user", Content: "two"}},
			Verify: []episode.Check{
				{Name: "first", After: 1, AtLeast: least, Command: "test -e a && test ! -e b", Tests: episode.Files{"/tests/t": nil, "hint": nil}},
				{Name: "second", Command: "test -e b && test ! -e hint"},
			},
		}
	}
	touch := func(path string) episode.Call {
		return episode.Call{ID: path, Name: "write_file", Arguments: `{"path": "` + path + `", "content": "x"}`}
	}
	tests := []struct {
		name  string
		first string // the file that is made in the first step
		least float64
		want  [2]float64
		turns int
	}{
		{"both", "a", 1, [2]float64{1, 1}, 4},
		{"the second alone", "x", 0, [2]float64{0, 1}, 4},
		{"below the gate", "x", 0.5, [2]float64{0, 0}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := playWith(t, steps(call(touch(tt.first)), say("done"), call(touch("b")), say("done")), task(tt.least), []string{"file"})
			if err != nil {
				t.Fatal(err)
			}
			if len(ep.Rewards) != 2 || ep.Rewards[0].Value != tt.want[0] || ep.Rewards[1].Value != tt.want[1] || len(ep.Turns) != tt.turns {
				t.Errorf("%d turns, rewards %+v, %+v; want %d, %v", len(ep.Turns), ep.Rewards, ep.Fault, tt.turns, tt.want)
			}
		})
	}
}
