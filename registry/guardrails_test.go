package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// guarded is a session whose tool read gives what is said, and fails when that is "".
func guarded(t *testing.T, say *string) (*registry.Session, *registry.Guardrails) {
	t.Helper()
	g := registry.NewGuardrails()
	run := func(context.Context, *registry.Env, access) (any, error) {
		if *say == "" {
			return nil, errors.New("nothing there")
		}
		return *say, nil
	}
	read := registry.Define(registry.Definition{Name: "read", Toolset: "test",
		Access: func(arguments json.RawMessage) registry.Access {
			var a access
			_ = json.Unmarshal(arguments, &a)
			return a.access()
		}}, run)
	do := registry.Define(registry.Definition{Name: "do", Toolset: "test"}, run)
	return session(t, registry.SessionConfig{Guardrails: g}, read, do), g
}

func TestGuardrails(t *testing.T) {
	type step struct{ tool, arguments, say, notice string } // notice "" is none
	const a, b = `{"r":"a"}`, `{"r":"b"}`
	tests := []struct {
		name  string
		steps []step
		stop  string
	}{
		{"the same failure", []step{
			{"do", a, "", ""}, {"do", a, "", "failed 2 times with the same arguments"}, {"do", a, "", "failed 3 times in a row"},
			{"do", a, "x", ""}, {"do", a, "", ""},
		}, ""},
		{"failures of a tool", []step{
			{"do", a, "", ""}, {"do", b, "", ""}, {"do", `{"r":"c"}`, "", "do has failed 3 times in a row"}, {"read", a, "x", ""},
			{"do", `{"r":"d"}`, "", "4 times"}, {"do", `{"r":"e"}`, "x", ""}, {"do", `{"r":"f"}`, "", ""},
		}, ""},
		{"the same result", []step{
			{"read", a, "x", ""}, {"read", a, "x", "the same result 2 times"}, {"read", a, "y", ""}, {"read", b, "y", ""},
			{"read", a, "y", "2 times"},
		}, ""},
		{"a tool that does things", []step{{"do", a, "x", ""}, {"do", a, "x", ""}, {"do", a, "x", ""}}, ""},
		{"a read that writes", []step{{"read", `{"w":"a"}`, "x", ""}, {"read", `{"w":"a"}`, "x", ""}}, ""},
		{"unknown tools", []step{{"zzzzz", a, "", ""}, {"zzzzz", a, "", "failed 2 times"}}, ""},
		{"hopeless", []step{
			{"do", a, "", ""}, {"do", a, "", "2"}, {"do", a, "", "3"}, {"do", a, "", "4"}, {"do", a, "", "5"},
		}, "do: this call has failed 5 times"},
		{"hopeless reads", []step{
			{"read", a, "x", ""}, {"read", a, "x", "2"}, {"read", a, "x", "3"}, {"read", a, "x", "4"}, {"read", a, "x", "5"},
		}, "read: this call has given the same result 5 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			say := ""
			s, g := guarded(t, &say)
			for i, step := range tt.steps {
				say = step.say
				got := s.Call(t.Context(), registry.Request{ID: "1", Turn: i, Name: step.tool, Arguments: step.arguments})
				if (step.notice == "") != (got.Notice == "") || !strings.Contains(got.Notice, step.notice) {
					t.Errorf("step %d: notice = %q, want %q", i, got.Notice, step.notice)
				}
				if strings.Contains(got.Result, "times") {
					t.Errorf("step %d: result = %s", i, got.Result)
				}
			}
			if stop := g.Stopped(); (tt.stop == "") != (stop == "") || !strings.HasPrefix(stop, tt.stop) {
				t.Errorf("stopped = %q, want %q", stop, tt.stop)
			}
		})
	}
}

// What a notice says does not depend on which of several calls ended first.
func TestGuardrailsInOneTurn(t *testing.T) {
	say := ""
	s, _ := guarded(t, &say)
	var reqs []registry.Request
	for i, name := range []string{"a", "b", "c", "d"} {
		reqs = append(reqs, registry.Request{ID: name, Index: i, Name: "read", Arguments: `{"r":"` + name + `"}`})
	}
	for i, got := range s.CallAll(t.Context(), reqs) {
		want := []string{"", "", "read has failed 3 times in a row", "read has failed 4 times in a row"}[i]
		if got.Status != episode.CallError || (want == "") != (got.Notice == "") || !strings.HasPrefix(got.Notice, want) {
			t.Errorf("call %d: notice = %q, want %q", i, got.Notice, want)
		}
	}
	for i, got := range s.Trace() {
		if (i < 2) != (got.Notice == "") {
			t.Errorf("trace %d: notice = %q", i, got.Notice)
		}
	}
}
