package rollout_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
)

// picky is a server that takes no pattern in a schema.
func picky(complaint string) func(model.Request) (model.Reply, error) {
	return func(req model.Request) (model.Reply, error) {
		for _, tool := range req.Tools {
			if strings.Contains(string(tool), `"pattern"`) {
				return model.Reply{}, &model.Error{Class: model.ClassBadRequest, Status: 400, Message: complaint}
			}
		}
		return say("done")(req)
	}
}

// TestRefusedSchema has a server refuse the schema of a tool: the first episode learns it, and the others know.
func TestRefusedSchema(t *testing.T) {
	tool, err := registry.DefineSchema(registry.Definition{Name: "look", Toolset: "file", NoSandbox: true},
		[]byte(`{"type":"object","properties":{"x":{"type":"string","pattern":"^a+$"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.New(tool)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	var log bytes.Buffer
	player := &rollout.Player{Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now}
	for i := range 2 {
		s := &script{steps: []func(model.Request) (model.Reply, error){picky("Failed to parse grammar")}}
		player.Model = s
		ep := &episode.Episode{Key: episode.Key{Task: "t", Sample: i}, Toolsets: []string{"file"}, Attempt: 1}
		ep.ID = ep.Key.ID()
		if err := player.Play(t.Context(), &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "go"}}}, ep); err != nil {
			t.Fatal(err)
		}
		if ep.Outcome != episode.Success || len(s.asked) != 2-i || strings.Contains(string(ep.Tools[0]), `"pattern"`) {
			t.Errorf("play %d: %s (%v) after %d requests, shown %s", i, ep.Outcome, ep.Fault, len(s.asked), ep.Tools)
		}
		if refused := slices.ContainsFunc(ep.Turns[0].Retries, func(f episode.Fault) bool { return f.Class == "schema_refused" }); refused != (i == 0) {
			t.Errorf("play %d: retries %+v", i, ep.Turns[0].Retries)
		}
	}
	if strings.Count(log.String(), "schema_quirks=") != 1 {
		t.Errorf("log: %s", log.String())
	}
}

// TestRefusedForAnotherReason ends as it did: asking again would not help.
func TestRefusedForAnotherReason(t *testing.T) {
	for _, complaint := range []string{"temperature must be below 2", "Failed to parse grammar"} {
		s := &script{steps: []func(model.Request) (model.Reply, error){
			fail(&model.Error{Class: model.ClassBadRequest, Status: 400, Message: complaint}),
		}}
		ep, err := play(t, s, episode.Task{})
		if err != nil || ep.Outcome != episode.ModelError || ep.Fault.Class != model.ClassBadRequest || len(s.asked) > 2 {
			t.Errorf("%s: %v, %s, %+v after %d requests", complaint, err, ep.Outcome, ep.Fault, len(s.asked))
		}
	}
}
