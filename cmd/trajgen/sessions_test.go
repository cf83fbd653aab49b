package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

func writeTasks(t *testing.T, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSessionsAcrossEpisodes plays tasks whose solutions look for earlier ones.
func TestSessionsAcrossEpisodes(t *testing.T) {
	data := writeTasks(t,
		`{"id":"first","prompt":"Name the harbour pilot.","gold":{"answer":"Her name is Ines."}}`,
		`{"id":"second","prompt":"Who was the pilot?","gold":[{"tool_calls":[{"name":"session_search","arguments":{"query":"harbor OR Ines"}}]},{"content":"Ines."}]}`,
		`{"id":"third","prompt":"Who was she again?","gold":[{"tool_calls":[{"name":"session_search","arguments":{}}]},{"content":"Ines."}]}`)
	found := func(ep *episode.Episode) (ids []string) {
		var result struct {
			Results []struct {
				ID string `json:"session_id"`
			}
		}
		if err := json.Unmarshal([]byte(ep.Calls[0].Result), &result); err != nil {
			t.Fatal(err)
		}
		for _, r := range result.Results {
			ids = append(ids, r.ID)
		}
		return ids
	}
	id := func(task string, sample int) string { return episode.Key{Task: task, Sample: sample}.ID() }

	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", data, "--policy", "oracle", "--sandbox", "local", "--workers", "1", "--out", dir, "--quiet"}
	succeed(t, args...)
	all := episodes(t, dir)
	if diff := cmp.Diff([]string{id("first", 0)}, found(all[1])); diff != "" {
		t.Errorf("second found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{id("second", 0), id("first", 0)}, found(all[2])); diff != "" {
		t.Errorf("third found (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "search.db")); err != nil {
		t.Errorf("no index was left: %v", err)
	}

	// Another sample sees what the run did before, but nothing of its own task; also when the index was lost.
	if err := os.Remove(filepath.Join(dir, "search.db")); err != nil {
		t.Fatal(err)
	}
	succeed(t, append(args, "--resume", "--samples", "2")...)
	for _, ep := range episodes(t, dir) {
		if ep.Key.Sample != 1 || len(ep.Calls) == 0 {
			continue
		}
		ids := found(ep)
		if len(ids) == 0 || cmp.Equal(ids[0], id(ep.Key.Task, 0)) || len(ids) > 1 && ids[1] == id(ep.Key.Task, 0) {
			t.Errorf("%s, sample 1, found %v: nothing, or its own task", ep.Key.Task, ids)
		}
	}

	plain := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", data, "--max-tasks", "1", "--policy", "oracle", "--sandbox", "local", "--out", plain, "--quiet")
	if _, err := os.Stat(filepath.Join(plain, "search.db")); err == nil {
		t.Error("a run without a search made an index")
	}
}

// TestMemoryAndUserOfATask plays a task with a memory and a user, scripted and played by a model.
func TestMemoryAndUserOfATask(t *testing.T) {
	gold := `"gold":[{"tool_calls":[{"name":"clarify","arguments":{"question":"Which color?"}}]},` +
		`{"tool_calls":[{"name":"memory","arguments":{"action":"add","target":"user","content":"likes blue"}}]},{"content":"Painted."}]`
	scripts := writeTasks(t, `{"id":"a","prompt":"Paint.","memory":{"memory":["paint is in the shed"]},"user":{"answers":[{"match":"color","answer":"Blue."}]},`+gold+`}`)
	models := writeTasks(t, `{"id":"a","prompt":"Paint.","user":{"model":true,"persona":"You like the sea."},`+gold+`}`)

	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", scripts, "--policy", "oracle", "--sandbox", "local", "--out", dir, "--quiet")
	ep := episodes(t, dir)[0]
	if ep.Memory == nil || len(ep.Memory.User) != 1 || !strings.Contains(ep.Messages[0].Content, "paint is in the shed") || ep.User.Questions != 1 {
		t.Errorf("memory %+v, user %+v, first message %q", ep.Memory, ep.User, ep.Messages[0].Content)
	}
	succeed(t, "check", "--dataset", models, "--sandbox", "local", "--quiet") // nothing to prove, and no model is asked

	got := trajgen(t, "run", "--dataset", models, "--policy", "oracle", "--sandbox", "local", "--out", filepath.Join(t.TempDir(), "run"))
	if got.code != exitUsage || !strings.Contains(got.errOut, "user: {model: NAME}") {
		t.Errorf("without a user model: exit code %d, %s", got.code, got.errOut)
	}
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: "person"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Learn(&episode.Task{ID: "q", Prompt: []episode.Message{{Role: "user", Content: "Which color?"}}, Gold: []episode.Step{{Content: "As the sea."}}})
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", models, "--policy", "oracle", "--sandbox", "local", "--out", dir, "--quiet", "--user-model", "person", "--user-base-url", url)
	ep = episodes(t, dir)[0]
	if !strings.Contains(ep.Calls[0].Result, "As the sea.") || ep.User.Model != "person" || ep.User.Usage.Prompt == 0 {
		t.Errorf("call %s, user %+v", ep.Calls[0].Result, ep.User)
	}
}
