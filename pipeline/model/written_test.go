package model_test

import (
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// TestWritten sends a conversation that grows, is cut, changes in its middle and goes to another client, once with what
// the earlier requests were written as and once without: the bodies are the same.
func TestWritten(t *testing.T) {
	var bodies []string
	url := taken(t, &bodies, nil)
	plain, thinking := open(t, model.Config{Settings: model.Settings{BaseURL: url}}), open(t, model.Config{Settings: model.Settings{BaseURL: url, SendReasoning: model.ReasoningAlways}})
	long := []episode.Message{
		{Role: "system", Content: "<be> & do"},
		{Role: "user", Content: "write \u2028 it"},
		{Role: "assistant", Reasoning: "hm", Calls: []episode.Call{{ID: "a", Name: "terminal", Arguments: `{"command":"ls"}`}, {ID: "b", Name: "none", Arguments: "{"}}},
		{Role: "tool", ToolCallID: "a", Name: "terminal", Content: strings.Repeat("line\n", 10000)},
		{Role: "tool", ToolCallID: "b"},
		{Role: "assistant", Content: "Done.", Reasoning: "so it is"},
		{Role: "user", Content: "again"},
	}
	changed := slices.Clone(long)
	changed[2].Calls = []episode.Call{{ID: "a", Name: "terminal", Arguments: `{"command":"pwd"}`}, {ID: "b", Name: "none", Arguments: "{"}}
	var written model.Written
	for i, turn := range []struct {
		by *model.Client
		of []episode.Message
	}{
		{plain, long[:2]}, {plain, long[:5]}, {plain, long[:5]}, {plain, long}, {plain, changed}, {plain, changed[:5]}, {plain, changed[1:]},
		{thinking, long[:5]}, {thinking, long}, {plain, long},
	} {
		bodies = nil
		for _, w := range []*model.Written{&written, nil} {
			if _, err := turn.by.Complete(t.Context(), model.Request{Messages: turn.of, State: model.State{Written: w}}); err != nil {
				t.Fatal(err)
			}
		}
		if bodies[0] != bodies[1] {
			t.Errorf("request %d: body %s, want %s", i, bodies[0], bodies[1])
		}
	}
}
