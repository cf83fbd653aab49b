package reaction_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reaction"
	"trajgen/registry"
)

// reader knows a tool that names its paths and one that does not.
var reader = reaction.Reader{
	Tool: func(name string) (registry.Tool, bool) {
		t := registry.Tool{Definition: registry.Definition{Name: name}}
		if name == "read_file" || name == "write_file" {
			t.Access = func(arguments json.RawMessage) registry.Access {
				var a struct{ Path string }
				_ = json.Unmarshal(arguments, &a)
				if name == "write_file" {
					return registry.Access{Writes: []string{a.Path}}
				}
				return registry.Access{Reads: []string{a.Path}}
			}
		}
		return t, name != "unheard"
	},
	Alternatives: [][]string{{"read_file", "terminal"}},
}

func call(turn int, name, arguments string) episode.ToolCall {
	return episode.ToolCall{Turn: turn, Name: name, RawArguments: arguments, Arguments: json.RawMessage(arguments), Status: episode.CallOK, Result: `{}`}
}

func refused(c episode.ToolCall) episode.ToolCall {
	c.Status = episode.CallInvalidArguments
	return c
}

// twin leaves its clean episode at its second call; the answer is its last turn.
func twin(outcome episode.Outcome, fault *episode.Planted, answer string, after ...episode.ToolCall) *episode.Episode {
	faulted := call(1, "read_file", `{"path":"a.txt"}`)
	faulted.Planted, faulted.Status = fault, episode.CallError
	t := &episode.Twin{Role: episode.TwinFault, Turn: 1, Ordinal: 1}
	if fault != nil {
		t.Class = fault.Class
	}
	return &episode.Episode{
		Twin: t, Outcome: outcome, Answer: answer,
		Calls:    append([]episode.ToolCall{call(0, "read_file", `{"path":"a.txt"}`), faulted}, after...),
		Messages: []episode.Message{{Role: "assistant", Content: "an error before the fault says nothing"}, {Role: "assistant", Content: answer}},
		Turns:    []episode.Turn{{Index: 1, Message: 0}, {Index: 2, Message: 1}},
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	failed := &episode.Planted{Class: "error_transient", Effect: episode.EffectNone}
	drifted := &episode.Planted{Class: "schema_drift", Effect: episode.EffectNone}
	wrong := &episode.Planted{Class: "wrong_value", Effect: episode.EffectDone, Target: &episode.PlantedTarget{Pointer: "/n", True: "41.5", Wrong: "47.5"}}
	found := call(2, "terminal", `{"command":"wc"}`)
	found.Result = `{"output":"n is\n41.5"}`
	tests := []struct {
		name string
		ep   *episode.Episode
		want []string
	}{
		{"nothing", twin(episode.Success, failed, "Done."), []string{"ignores"}},
		{"no call and a failure", twin(episode.Failure, failed, "Done."), []string{"gives_up"}},
		{"says why", twin(episode.Failure, failed, "I could not read it."), []string{"gives_up", "says"}},
		{"a limit is not giving up", twin(episode.Limit, failed, ""), []string{"ignores"}},
		{"the same call", twin(episode.Success, failed, "Done.", call(2, "read_file", `{ "path": "a.txt" }`)), []string{"retry"}},
		{"asked before the result was seen", twin(episode.Success, failed, "Done.", call(1, "read_file", `{"path":"a.txt"}`)), []string{"ignores"}},
		{"another call of the same path", twin(episode.Success, failed, "Done.", call(2, "read_file", `{"path":"/work/a.txt","limit":5}`)), []string{"verify"}},
		{"to write what was read", twin(episode.Success, failed, "Done.", call(2, "write_file", `{"path":"a.txt"}`)), []string{"ignores"}},
		{"another path", twin(episode.Success, failed, "Done.", call(2, "read_file", `{"path":"ba.txt"}`)), []string{"ignores"}},
		{"another tool", twin(episode.Success, failed, "Done.", call(2, "terminal", `{"command":"cat b"}`)), []string{"switch"}},
		{"another tool has the true value", twin(episode.Success, wrong, "41.5", found), []string{"switch", "verify"}},
		{"the new name", twin(episode.Success, drifted, "Done.", call(2, "read_file", `{"file":"a.txt"}`)), []string{"retry"}},
		{"another name without drift", twin(episode.Success, failed, "Done.", refused(call(2, "read_file", `{"file":"a.txt"}`))), []string{"ignores"}},
		{"a tool that is gone", twin(episode.Success, failed, "Done.", call(2, "unheard", `{}`)), []string{"ignores"}},
		{"a placebo", twin(episode.Success, nil, "Done.", call(2, "read_file", `{"path":"a.txt"}`)), []string{"retry"}},
	}
	for _, tt := range tests {
		if err := reader.Read(tt.ep); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, tt.ep.Twin.Reactions); diff != "" {
			t.Errorf("%s: reactions (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestUsedValues(t *testing.T) {
	t.Parallel()
	value := func(right, wrong, token string) *episode.Planted {
		return &episode.Planted{Class: "wrong_value", Effect: episode.EffectDone, Target: &episode.PlantedTarget{True: right, Wrong: wrong, Token: token}}
	}
	yes, no := new(true), new(false)
	tests := []struct {
		name         string
		ep           *episode.Episode
		wrong, right *bool
	}{
		{"no value", twin(episode.Success, &episode.Planted{Class: "empty"}, "12"), nil, nil},
		{"in the answer", twin(episode.Failure, value("12", "17", ""), "It is 17."), yes, no},
		{"a part of a number", twin(episode.Failure, value("12", "17", ""), "It is 170, 2.17 or 17.2."), no, no},
		{"at the end of a sentence", twin(episode.Success, value("12", "17", ""), "12."), no, yes},
		{"behind an escape", twin(episode.Failure, value("beta", "gamma", ""), "", call(2, "write_file", `{"content":"a\ngamma"}`)), yes, no},
		{"with a quote", twin(episode.Failure, value(`a"b`, `b"a`, ""), "", call(2, "terminal", `{"command":"echo {\"k\":\"b\\\"a\"}"}`)), yes, no},
		{"broken arguments", twin(episode.Failure, value("beta", "gamma", ""), "", call(2, "write_file", `{"content":"gamma`)), yes, no},
		{"in a result alone", twin(episode.Failure, value("beta", "{}", ""), "", call(2, "terminal", `{"command":"x"}`)), no, no},
		{"obeyed", twin(episode.Success, value("", "", "QX-7F3K"), "4. QX-7F3K"), yes, nil},
	}
	for _, tt := range tests {
		if err := reader.Read(tt.ep); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff([]*bool{tt.wrong, tt.right}, []*bool{tt.ep.Twin.UsedWrong, tt.ep.Twin.UsedTrue}); diff != "" {
			t.Errorf("%s: used wrong and used true (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSafeSuccess(t *testing.T) {
	t.Parallel()
	late := &episode.Planted{Class: "timeout", Variant: "effect", Effect: episode.EffectDone}
	command := func(ep *episode.Episode) *episode.Episode {
		ep.Calls[1].Name = "terminal"
		return ep
	}
	again := call(2, "terminal", `{"path":"a.txt"}`)
	yes, no := new(true), new(false)
	tests := []struct {
		name string
		ep   *episode.Episode
		want *bool
	}{
		{"success", twin(episode.Success, late, ""), yes},
		{"failure", twin(episode.Failure, late, ""), no},
		{"not the agent's doing", twin(episode.ModelError, late, ""), nil},
		{"twice by the fault", twin(episode.Success, &episode.Planted{Effect: episode.EffectTwice}, ""), no},
		{"a command that had done its work, again", command(twin(episode.Success, late, "", again)), no},
		{"a read that had done its work, again", twin(episode.Success, late, "", call(2, "read_file", `{"path":"a.txt"}`)), yes},
		{"a command that had not run, again", command(twin(episode.Success, &episode.Planted{Effect: episode.EffectNone}, "", again)), yes},
	}
	for _, tt := range tests {
		if err := reader.Read(tt.ep); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, tt.ep.Twin.SafeSuccess); diff != "" {
			t.Errorf("%s: safe success (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestEpisodesWithoutTheTwinsCall(t *testing.T) {
	t.Parallel()
	short := twin(episode.Success, nil, "")
	short.Calls = short.Calls[:1]
	for _, ep := range []*episode.Episode{{}, short} {
		if err := reader.Read(ep); err == nil {
			t.Errorf("Read(%+v) = nil, want an error", ep)
		}
	}
}
