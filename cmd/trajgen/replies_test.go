package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// odd is a server that reads no calls, wants an object in each, and answers each task in a way of its own.
type odd struct {
	mu    sync.Mutex
	asked map[string]int
	hold  func() // before the last task's answer
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role, Content string
			Calls         []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // of the list of models there is none
	task, ran := "", false
	for _, m := range body.Messages {
		if m.Role == "user" && task == "" {
			task = m.Content
		}
		ran = ran || m.Role == "tool"
		for _, call := range m.Calls {
			if err := json.Unmarshal([]byte(call.Function.Arguments), &map[string]any{}); err != nil {
				http.Error(w, `{"error":{"message":"arguments"}}`, http.StatusBadRequest)
				return
			}
		}
	}
	o.mu.Lock()
	o.asked[task]++
	n := o.asked[task]
	o.mu.Unlock()
	message, usage := `{"content":"x"}`, `{"prompt_tokens":9,"completion_tokens":1}`
	switch {
	case task == "unread", task == "unread too":
		message = `{"content":"<start_function_call>call:todo{}<end_function_call>"}`
	case task == "alias" && !ran:
		message = `{"content":"I look.\n\n<minimax:tool_call>\n<invoke name=\"todo\">\n</invoke>\n</minimax:tool_call>"}`
	case task == "broken" && !ran:
		message = `{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"todo","arguments":"{\"todos\": \"unclosed"}}]}`
	case task == "empty", task == "free", task == "once" && n == 1:
		message = `{"content":" \n"}`
	case task == "text":
		usage = `{"prompt_tokens":"9","completion_tokens":"1"}`
	case task == "last":
		o.hold()
	}
	fmt.Fprintf(w, `{"model":"m","data":[{"id":"m"}],"choices":[{"message":%s,"finish_reason":"stop"}],"usage":%s}`, message, usage)
}

// TestRepliesThatAreNoAnswers holds what rows, Parquet files, the report and the terminal say of replies that hide their calls, break
// them or say nothing.
func TestRepliesThatAreNoAnswers(t *testing.T) {
	t.Parallel()
	var said said
	warned := func() bool {
		return strings.Contains(said.String(), "the text of the reply has a call of todo that was not read")
	}
	server := httptest.NewServer(&odd{asked: map[string]int{}, hold: func() {
		for deadline := time.Now().Add(time.Minute); !warned(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("the run said nothing of a call that was not read")
				return
			}
		}
	}})
	t.Cleanup(server.Close)
	var tasks strings.Builder
	for _, task := range []string{"unread", "unread too", "alias", "broken", "empty", "free", "once", "text", "last"} {
		verify := `,"verify":{"exact":"x"}`
		if task == "free" {
			verify = ""
		}
		fmt.Fprintf(&tasks, `{"id":%q,"prompt":%q%s}`+"\n", task, task, verify)
	}
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(build(t), "run", "--dataset", write(t, "d.jsonl", tasks.String()), "--model", "m", "--base-url", server.URL, "--toolsets", "todo", "--sandbox", "local",
		"--seed", "7", "--workers", "9", "--episode-retries", "0", "--json", "--out", dir)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != exitErrors {
		t.Fatalf("exit code %d, want %d (%v): %s", code, exitErrors, err, said.String())
	}
	if n := strings.Count(said.String(), "that was not read"); n != 1 {
		t.Errorf("the run warned %d times:\n%s", n, said.String())
	}
	var told report.Report
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Faults) != 1 || told.Faults[0].Class != model.ClassUnread || told.Faults[0].Count != 2 {
		t.Errorf("faults of the report: %+v", told.Faults)
	}
	if !strings.HasPrefix(told.Digest, "sha256:") || told.Seed != "7" || told.Fingerprint == "" || told.Version == "" || told.Started == nil || told.Ended == nil {
		t.Errorf("the report says of itself: digest %q, seed %q, experiment %q, trajgen %q, %v to %v", told.Digest, told.Seed, told.Fingerprint, told.Version, told.Started, told.Ended)
	}
	want := map[string]struct {
		outcome episode.Outcome
		stop    episode.Stop
		reward  string
		retries int    // of the first turn
		repair  string // among those of the first turn
	}{
		"unread": {episode.ModelError, episode.StopFault, "null", 0, ""}, "unread too": {episode.ModelError, episode.StopFault, "null", 0, ""},
		"alias": {episode.Success, episode.StopAnswered, "1", 0, "parsed:minimax_m2"}, "broken": {episode.Success, episode.StopAnswered, "1", 0, "arguments sent as an object: todo"},
		"empty": {episode.Limit, episode.StopEmpty, "0", 2, ""}, "free": {episode.Limit, episode.StopEmpty, "null", 2, ""}, "once": {episode.Success, episode.StopAnswered, "1", 1, ""},
		"text": {episode.Success, episode.StopAnswered, "1", 0, ""}, "last": {episode.Success, episode.StopAnswered, "1", 0, ""},
	}
	check := func(from string, all []*episode.Episode) {
		for _, ep := range all {
			task := ep.Key.Task
			want, reward := want[task], "null"
			if ep.Reward != nil {
				reward = fmt.Sprint(*ep.Reward)
			}
			var first episode.Turn
			if len(ep.Turns) > 0 {
				first = ep.Turns[0]
			}
			classes := slices.DeleteFunc(slices.Clone(first.Retries), func(fault episode.Fault) bool { return fault.Class != model.ClassEmpty })
			if ep.Outcome != want.outcome || ep.Stop != want.stop || reward != want.reward || len(classes) != want.retries || len(first.Retries) != want.retries {
				t.Errorf("%s, %s: %s, %s, reward %s, retries %+v; want %+v", from, task, ep.Outcome, ep.Stop, reward, first.Retries, want)
			}
			if want.repair != "" && !slices.Contains(first.Repairs, want.repair) {
				t.Errorf("%s, %s: repairs %q", from, task, first.Repairs)
			}
			if known := want.outcome != episode.ModelError && task != "text"; first.Usage.Reported != known || ep.Usage.Reported != known {
				t.Errorf("%s, %s: usage %+v of the turn, %+v of all", from, task, first.Usage, ep.Usage)
			}
			if call := append(ep.Messages, make([]episode.Message, 3)...)[len(ep.Task.Prompt)].Calls; task == "broken" && (len(call) != 1 || call[0].Arguments != `{"todos": "unclosed` || !json.Valid([]byte(call[0].Sent))) {
				t.Errorf("%s: the broken call is %+v", from, call)
			}
			if task == "alias" && !strings.Contains(first.Raw, "minimax:tool_call") {
				t.Errorf("%s: raw is %q", from, first.Raw)
			}
		}
		if len(all) != len(want) {
			t.Errorf("%s: %d episodes, want %d", from, len(all), len(want))
		}
	}
	check("journal", episodes(t, dir))
	check("Parquet", fromParquet(t, dir))
}

// fromParquet are a run's episodes as its Parquet files have them.
func fromParquet(t *testing.T, dir string) []*episode.Episode {
	t.Helper()
	files := t.TempDir() // without the journal
	for _, table := range []string{"trajectories", "tool_calls"} {
		if err := os.Symlink(filepath.Join(dir, table), filepath.Join(files, table)); err != nil {
			t.Fatal(err)
		}
	}
	return lines[*episode.Episode](t, succeed(t, "export", "--from", files, "--to", "jsonl", "--out", "-").out)
}
