package export_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// rewarded are samples of a task with these rewards.
func rewarded(task string, row int, rewards ...float64) (episodes []*episode.Episode) {
	for sample, reward := range rewards {
		ep := plainEpisode()
		ep.Key = episode.Key{Task: task, Sample: sample}
		ep.ID, ep.Row, ep.Reward = fmt.Sprint(task, sample), row, &reward
		episodes = append(episodes, ep)
	}
	return episodes
}

func TestPreferencePairs(t *testing.T) {
	other := func(episodes []*episode.Episode, change func(*episode.Episode), samples ...int) []*episode.Episode {
		for _, sample := range samples {
			change(episodes[sample])
		}
		return episodes
	}
	prompt := func(ep *episode.Episode) {
		ep.Messages = append([]episode.Message{{Role: "system", Content: "other"}}, ep.Messages...)
		ep.Turns = []episode.Turn{{Message: 2}}
	}
	tools := func(ep *episode.Episode) { ep.Tools = []json.RawMessage{json.RawMessage(`{}`)} }
	unjudged := func(ep *episode.Episode) { ep.Reward = nil }
	const alone, tie, middle = "the only sample with a reward of its task, prompt and tools", "no other sample whose reward is as far away as the margin", "between the best sample and the worst"
	tests := []struct {
		name    string
		give    []*episode.Episode
		set     map[string]string
		pairs   []string
		dropped map[string]int
	}{
		{"best against worst", rewarded("a", 0, 0.5, 0, 1, 0), nil, []string{"a2 a1"}, map[string]int{middle: 2}},
		{"all", rewarded("a", 0, 0.5, 0, 1), map[string]string{"pairs": "all"}, []string{"a2 a0", "a2 a1", "a0 a1"}, map[string]int{}},
		{"all with a margin", rewarded("a", 0, 0.5, 0, 1), map[string]string{"pairs": "all", "margin": "0.6"}, []string{"a2 a1"}, map[string]int{tie: 1}},
		{"a tie", rewarded("a", 0, 1, 1, 1), nil, nil, map[string]int{tie: 3}},
		{"a tie without a margin", rewarded("a", 0, 1, 1), map[string]string{"margin": "0"}, nil, map[string]int{tie: 2}},
		{"within the margin", rewarded("a", 0, 0.05, 0), nil, nil, map[string]int{tie: 2}},
		{"single samples", append(rewarded("a", 0, 1), rewarded("b", 1, 0)...), nil, nil, map[string]int{alone: 2}},
		{"two rows of one task id", append(rewarded("a", 0, 1), rewarded("a", 1, 0)...), nil, nil, map[string]int{alone: 2}},
		{"two tasks", append(rewarded("a", 0, 1, 0), rewarded("b", 1, 0, 1)...), nil, []string{"a0 a1", "b1 b0"}, map[string]int{}},
		{"another prompt", other(rewarded("a", 0, 1, 0, 0, 0.5), prompt, 1, 3), nil, []string{"a0 a2", "a3 a1"}, map[string]int{}},
		{"other tools", other(rewarded("a", 0, 1, 0), tools, 1), nil, nil, map[string]int{alone: 2}},
		{"not judged", other(rewarded("a", 0, 1, 0, 0), unjudged, 1), nil, []string{"a0 a2"}, map[string]int{"no reward": 1}},
		{"rewards below 0", rewarded("a", 0, -2, -1), nil, []string{"a1 a0"}, map[string]int{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, row := range readRows(t, exported(t, "trl-preference", tt.give, export.Options{Set: tt.set})) {
				got = append(got, row.ChosenID+" "+row.RejectedID)
			}
			if diff := cmp.Diff(tt.pairs, got); diff != "" {
				t.Errorf("pairs (-want +got):\n%s", diff)
			}
			result := write(t, "trl-preference", tt.set, tt.give...)
			if diff := cmp.Diff(tt.dropped, result.Dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			n := len(tt.give)
			for _, count := range tt.dropped {
				n -= count
			}
			if result.Episodes != n {
				t.Errorf("%d episodes are in pairs, want %d", result.Episodes, n)
			}
		})
	}
}

func TestOpenAIWeights(t *testing.T) {
	prefill := episode.Message{Role: "assistant", Content: "as in this example", Harness: true}
	give := func() *episode.Episode {
		ep := chat(user("x"), prefill, user("hi"), calling("a"), result("a", "1"), calling("b"), result("b", "2"), episode.Message{Role: "assistant", Content: "done"}, user("bye"))
		ep.Calls = []episode.ToolCall{
			{ID: "a", Turn: 0, Name: "f", Status: episode.CallOK}, {ID: "a.1", Parent: "a", Turn: 0, Name: "g", Status: episode.CallError},
			{ID: "b", Turn: 1, Name: "f", Status: episode.CallTimeout}, {ID: "?", Turn: 9, Status: episode.CallError},
		}
		return ep
	}
	tests := []struct {
		weight string
		want   []int // -1 is none
	}{
		{"model", []int{0, 1, 1, 1}}, {"ok", []int{0, 1, 0, 1}}, {"none", []int{-1, -1, -1, -1}},
	}
	for _, tt := range tests {
		rows := readRows(t, exported(t, "openai", []*episode.Episode{give()}, export.Options{Set: map[string]string{"weight": tt.weight}}))
		var got []int
		for _, m := range rows[0].Messages {
			switch {
			case m.Role == "assistant" && m.Weight == nil:
				got = append(got, -1)
			case m.Role == "assistant":
				got = append(got, *m.Weight)
			case m.Weight != nil:
				t.Errorf("%s has a weight", m.Role)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("weight=%s (-want +got):\n%s", tt.weight, diff)
		}
		last := rows[0].Messages[len(rows[0].Messages)-1]
		if call := rows[0].Messages[3]; *last.Content != "done" || call.Content != nil {
			t.Errorf("last message %q; content beside calls alone %v, want null", *last.Content, call.Content)
		}
	}
	want := []string{
		"episodes with assistant messages of the dataset or the harness, which have weight 0: 1",
		"episodes with messages behind the model's last one, which were left out: 1",
	}
	if diff := cmp.Diff(want, write(t, "openai", map[string]string{"weight": "ok"}, give()).Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	ep := give()
	ep.Messages[3] = calling("a", "c")
	ep.Messages = append(ep.Messages[:5:5], append([]episode.Message{result("c", "3")}, ep.Messages[5:]...)...)
	if dropped := write(t, "openai", map[string]string{"parallel_tool_calls": "false"}, ep).Dropped; dropped["several calls in a turn"] != 1 {
		t.Errorf("dropped %v", dropped)
	}
}
