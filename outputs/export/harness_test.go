package export_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

func TestWithoutHarness(t *testing.T) {
	said := []episode.Message{
		{Role: "user", Content: "do it"},
		{Role: "assistant", Content: "a"},
		{Role: "user", Content: "and on"},
		{Role: "assistant", Content: "b"},
	}
	shown := episode.Message{Role: "user", Content: "Shown by camera:", Harness: true, Parts: []episode.Part{{Type: episode.PartImage, SHA256: "ab"}}}
	system := func(text string, harness bool) episode.Message {
		return episode.Message{Role: "system", Content: text, Harness: harness}
	}
	tests := []struct {
		name     string
		give     episode.Episode
		messages []episode.Message
		turns    []int
	}{
		{"nothing of it", episode.Episode{Messages: append([]episode.Message{system("s", false)}, said...), Turns: []episode.Turn{{Message: 2}, {Message: 4}}},
			append([]episode.Message{system("s", false)}, said...), []int{2, 4}},
		{"ends of the system message", episode.Episode{Ephemeral: "\n\ne", Recalled: "\n\nr",
			Messages: append([]episode.Message{system("s\n\ne\n\nr", false)}, said...), Turns: []episode.Turn{{Message: 2}, {Message: 4}}},
			append([]episode.Message{system("s", false)}, said...), []int{2, 4}},
		{"a system message of which nothing is left", episode.Episode{Recalled: "r",
			Messages: append([]episode.Message{system("r", false)}, said...), Turns: []episode.Turn{{Message: 2}, {Message: 4}}}, said, []int{1, 3}},
		{"a system message of the harness, prefill, a warning", episode.Episode{Ephemeral: "e",
			Messages: []episode.Message{system("e", true), {Role: "user", Content: "x", Harness: true}, {Role: "assistant", Content: "y", Harness: true},
				said[0], said[1], {Role: "user", Content: "careful", Harness: true}, said[2], said[3]},
			Turns: []episode.Turn{{Message: 4}, {Message: 7}}},
			said, []int{1, 3}},
		{"an image that a tool showed", episode.Episode{Messages: []episode.Message{said[0], said[1], {Role: "user", Content: "x", Harness: true}, shown}, Turns: []episode.Turn{{Message: 1}}},
			[]episode.Message{said[0], said[1], shown}, []int{1}},
		{"a shortened conversation", episode.Episode{
			Messages:    append([]episode.Message{system("s", false), {Role: "user", Content: "x", Harness: true}}, said...),
			Turns:       []episode.Turn{{Message: 3}, {Message: 5}},
			Compactions: []episode.Compaction{{Turn: 1, From: 2, To: 4, Summary: "it did a", Replaced: []episode.Replacement{{Message: 3, Content: "…"}}}}},
			append([]episode.Message{system("s", false)}, said...), []int{2, 4}},
		{"no messages", episode.Episode{}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.Drift = &episode.Drift{Verdict: episode.DriftNone}
			before, _ := json.Marshal(tt.give)
			var got []*episode.Episode
			for ep, err := range export.WithoutHarness(played{&tt.give}).Episodes(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, ep)
			}
			if len(got) != 1 {
				t.Fatalf("%d episodes, want 1", len(got))
			}
			if diff := cmp.Diff(tt.messages, got[0].Messages); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			var turns []int
			for _, turn := range got[0].Turns {
				turns = append(turns, turn.Message)
			}
			if diff := cmp.Diff(tt.turns, turns); diff != "" {
				t.Errorf("messages of the turns (-want +got):\n%s", diff)
			}
			if got[0].Ephemeral+got[0].Recalled != "" {
				t.Errorf("ephemeral %q and recalled %q are left", got[0].Ephemeral, got[0].Recalled)
			}
			for _, c := range got[0].Compactions {
				if c.From != 1 || c.To != 3 || c.Summary != "" || c.Replaced != nil || c.Turn != 1 {
					t.Errorf("the compaction became %+v", c)
				}
			}
			if whole := len(tt.messages) == len(tt.give.Messages) && tt.give.Ephemeral == ""; (got[0].Drift != nil) != whole {
				t.Errorf("drift is %v, want it kept: %v", got[0].Drift, whole)
			}
			if after, _ := json.Marshal(tt.give); string(after) != string(before) {
				t.Error("the episode itself was changed")
			}
		})
	}
}

// played is a source of episodes that are there.
type played []*episode.Episode

func (p played) Episodes(context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		for _, ep := range p {
			if !yield(ep, nil) {
				return
			}
		}
	}
}
