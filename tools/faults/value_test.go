package faults_test

import (
	"encoding/json"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/faults"
)

// TestOtherCallsOfTheTurn: whether a call can have a wrong value depends on what earlier turns have shown, and not on another call of its
// own turn, which may end before it or after.
func TestOtherCallsOfTheTurn(t *testing.T) {
	read := func(turn int) episode.ToolCall {
		return episode.ToolCall{Turn: turn, Name: "read", Arguments: json.RawMessage(`{}`), Status: episode.CallOK, Result: `{"content":"4217"}`}
	}
	tool := &registry.Tool{Definition: registry.Definition{Name: "read"}}
	for first, want := range []bool{false, true} { // the turn of the other call
		ep := &episode.Episode{Calls: []episode.ToolCall{read(first), read(1)}}
		if got := faults.Eligible(faults.Settings{}, tool, ep, 1, "wrong_value"); got != want {
			t.Errorf("with the same result in turn %d, a wrong value in turn 1: %t, want %t", first, got, want)
		}
	}
}
