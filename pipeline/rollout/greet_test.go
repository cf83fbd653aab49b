package rollout_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
)

// TestGreet shows what is sent before the task's prompt, and that the row tells the harness's part of it.
func TestGreet(t *testing.T) {
	remembered := &episode.Memory{Memory: []string{"CI is slow"}}
	examples := []episode.Message{
		{Role: "user", Content: "an example"},
		{Role: "assistant", Calls: []episode.Call{{ID: "x", Name: "todo", Arguments: "{}"}}},
		{Role: "tool", ToolCallID: "x", Name: "todo", Content: "[]"},
		{Role: "assistant", Content: "an answer"},
	}
	tests := []struct {
		name      string
		task      episode.Task
		ephemeral string
		prefill   []episode.Message
		own       string // what is the task's of the system message
	}{
		{"nothing", episode.Task{}, "", nil, ""},
		{"all", episode.Task{System: "Be brief.", Memory: remembered}, "Today is Monday.", examples, "Be brief."},
		{"ephemeral alone", episode.Task{}, "Today is Monday.", nil, ""},
		{"ephemeral and memory", episode.Task{Memory: remembered}, "Today is Monday.", nil, ""},
		{"prefill alone", episode.Task{}, "", examples, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := steps(say("done"))
			ep, err := playWith(t, s, tt.task, []string{"memory", "todo"}, func(p *rollout.Player) {
				p.Prompts.Ephemeral, p.Prompts.Prefill = tt.ephemeral, tt.prefill
			})
			if err != nil {
				t.Fatal(err)
			}
			sent := s.asked[0].Messages
			if diff := cmp.Diff(ep.Messages[:len(sent)], sent); diff != "" {
				t.Errorf("what is stored is not what was sent (-stored +sent):\n%s", diff)
			}
			if len(sent) > 0 && sent[0].Role == "system" {
				system := sent[0]
				own, recalled := strings.CutSuffix(system.Content, ep.Recalled)
				own, added := strings.CutSuffix(own, ep.Ephemeral)
				if !recalled || !added || own != tt.own || system.Harness != (tt.own == "") || !strings.Contains(ep.Ephemeral, tt.ephemeral) {
					t.Errorf("system message %+v with ephemeral %q and recalled %q: %q is left, want %q", system, ep.Ephemeral, ep.Recalled, own, tt.own)
				}
				sent = sent[1:]
			} else if tt.own+tt.ephemeral != "" || ep.Ephemeral != "" {
				t.Errorf("no system message, ephemeral %q", ep.Ephemeral)
			}
			want := []episode.Message{}
			for _, m := range tt.prefill {
				m.Harness = true
				want = append(want, m)
			}
			want = append(want, episode.Message{Role: "user", Content: "do it"})
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("messages after the system's (-want +got):\n%s", diff)
			}
			if at := ep.Turns[0].Message; ep.Messages[at].Content != "done" {
				t.Errorf("the turn's message is %+v", ep.Messages[at])
			}
		})
	}
	if examples[0].Harness {
		t.Error("the run's own messages were changed")
	}
}

func TestSweep(t *testing.T) {
	sweep := rollout.Sweep{Models: []string{"a", "b"}, Temperatures: []float64{0, 1}, TopPs: []float64{0.5}}
	base := episode.Sampling{Model: "x", ReasoningEffort: "low", MaxTokens: 9}
	var got []string
	for sample := range 5 {
		got = append(got, sweep.At(base, sample).String())
	}
	want := []string{
		"model=a reasoning_effort=low temperature=0 top_p=0.5 max_tokens=9",
		"model=a reasoning_effort=low temperature=1 top_p=0.5 max_tokens=9",
		"model=b reasoning_effort=low temperature=0 top_p=0.5 max_tokens=9",
		"model=b reasoning_effort=low temperature=1 top_p=0.5 max_tokens=9",
		"model=a reasoning_effort=low temperature=0 top_p=0.5 max_tokens=9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if none := (rollout.Sweep{}).At(base, 7); none.String() != "model=x reasoning_effort=low max_tokens=9" {
		t.Errorf("without a sweep: %v", none)
	}
	ep, err := playWith(t, steps(say("done")), episode.Task{}, nil, func(p *rollout.Player) { p.Sampling, p.Sweep = base, sweep })
	if err != nil || ep.Sampling.String() != want[0] {
		t.Errorf("the row has %v, %v", ep.Sampling, err)
	}
}

func TestSweepRefused(t *testing.T) {
	tests := []struct {
		name    string
		give    rollout.Sweep
		samples int
		want    string
	}{
		{"none", rollout.Sweep{}, 1, ""},
		{"as many as samples", rollout.Sweep{Temperatures: []float64{0, 1}, ReasoningEfforts: []string{"low", "high"}}, 4, ""},
		{"more than samples", rollout.Sweep{Temperatures: []float64{0, 1}, ReasoningEfforts: []string{"low", "high"}}, 3,
			"sweep: 4 combinations (2 reasoning efforts × 2 temperatures) and 3 samples of each task: give at least --samples 4"},
		{"twice", rollout.Sweep{Temperatures: []float64{1, 0, 1}}, 3, "sweep of temperature: 1 is there twice"},
		{"too hot", rollout.Sweep{Temperatures: []float64{6}}, 1, "sweep of temperature: 6 (want 0 to 5)"},
		{"no number", rollout.Sweep{TopPs: []float64{math.NaN()}}, 1, "sweep of top_p: NaN (want 0 to 1)"},
		{"no name", rollout.Sweep{Models: []string{" "}}, 1, "sweep of model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.give.Validate(tt.samples)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate(%d) = %v, want %q", tt.samples, err, tt.want)
			}
		})
	}
}
