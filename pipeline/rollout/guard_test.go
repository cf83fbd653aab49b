package rollout_test

import (
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
)

func TestGuardrailModes(t *testing.T) {
	again := call(episode.Call{ID: "c", Name: "tuch", Arguments: "{}"}, episode.Call{ID: "d", Name: "zzzzz", Arguments: "{}"})
	tests := []struct {
		mode    string
		turns   int
		stop    episode.Stop
		noticed bool
		told    int // messages of the harness
	}{
		{rollout.GuardOff, 9, episode.StopMaxTurns, false, 0},
		{"", 9, episode.StopMaxTurns, true, 0},
		{rollout.GuardRecord, 9, episode.StopMaxTurns, true, 0},
		{rollout.GuardTell, 9, episode.StopMaxTurns, true, 8},
		{rollout.GuardStop, 5, episode.StopRepeating, true, 3},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			s := &script{steps: []func(model.Request) (model.Reply, error){again}}
			ep, err := play(t, s, episode.Task{Limits: episode.Limits{Turns: 9}, Verify: exact("x")},
				func(p *rollout.Player) { p.Guardrails = tt.mode })
			if err != nil {
				t.Fatal(err)
			}
			if len(ep.Turns) != tt.turns || ep.Stop != tt.stop || ep.Outcome != episode.Limit || ep.Reward == nil {
				t.Errorf("%d turns, ended in %s, %s, reward %v", len(ep.Turns), ep.Outcome, ep.Stop, ep.Reward)
			}
			told := 0
			for i, message := range ep.Messages {
				if message.Harness {
					told++
					if message.Role != "user" || !strings.Contains(message.Content, "tuch (c): this call has failed") || ep.Messages[i-1].Role != "tool" {
						t.Errorf("message %d: %+v", i, message)
					}
				}
				if message.Role == "tool" && strings.Contains(message.Content, "times") {
					t.Errorf("a notice stands in a result: %s", message.Content)
				}
			}
			if told != tt.told {
				t.Errorf("told %d times, want %d", told, tt.told)
			}
			last := ep.Calls[len(ep.Calls)-1]
			if tt.noticed != (last.Notice != "") {
				t.Errorf("notice = %q", last.Notice)
			}
		})
	}
	if rollout.CheckGuard("loud") == nil || rollout.CheckGuard("") != nil {
		t.Error("CheckGuard takes any mode, or not the default")
	}
}
