package export_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// hostileIDs are ids of tasks, as a stranger's dataset may have them.
var hostileIDs = []string{
	"..", ".", "", "/etc/passwd", "../../out", `a\b`, "a/b", "a_b", "Task", "task", "TASK", "index.jsonl", "preds.json", "INDEX.JSONL", "con\x00", "line\nbreak",
	strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("ä", 200), "~", "-rf", ".trajgen-export", "trajectory.json", "ends.", "django__django-1",
	"sample-0", "🙂",
}

func hostile() (episodes []*episode.Episode) {
	for row, id := range hostileIDs {
		ep := talk(false)
		ep.Row, ep.Key.Task, ep.Task.ID, ep.Task.Row = row, id, id, row
		ep.ID = ep.Key.ID()
		episodes = append(episodes, ep)
	}
	return episodes
}

// Whatever tasks are called, each has files of its own below the export's directory, also where upper and lower case are
// the same.
func TestHostileTaskIDs(t *testing.T) {
	for format, set := range map[string]map[string]string{
		"atif": nil,
	} {
		path, result := wrote(t, format, "out", export.Options{Set: set}, hostile()...)
		if result.Episodes != len(hostileIDs) {
			t.Errorf("%s: %d episodes, want %d", format, result.Episodes, len(hostileIDs))
		}
		outside, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if err != nil || len(outside) != 1 {
			t.Errorf("%s: beside the export stands %v", format, outside)
		}
		seen := map[string]bool{}
		for _, f := range result.Files {
			name, err := filepath.Rel(path, f.Path)
			if lower := strings.ToLower(name); err != nil || !filepath.IsLocal(name) || seen[lower] {
				t.Errorf("%s: a file %q, seen before: %v", format, name, seen[strings.ToLower(name)])
			} else {
				seen[lower] = true
			}
			if info, err := os.Stat(f.Path); err != nil || info.Size() != f.Bytes {
				t.Errorf("%s: %s: %v", format, f.Path, err)
			}
		}
	}
	path, _ := wrote(t, "atif", "out", export.Options{}, hostile()...)
	var tasks []string
	for _, line := range jsonLines(t, filepath.Join(path, "index.jsonl")) {
		tasks = append(tasks, line["task"].(string))
		var trajectory object
		readJSON(t, filepath.Join(path, line["path"].(string)), &trajectory)
		if trajectory["session_id"] != line["id"] {
			t.Errorf("%s holds episode %v, want %v", line["path"], trajectory["session_id"], line["id"])
		}
	}
	if diff := cmp.Diff(hostileIDs, tasks); diff != "" {
		t.Errorf("tasks of the index (-want +got):\n%s", diff)
	}
}

func TestHostileMembers(t *testing.T) {
	path, _ := wrote(t, "inspect", "out.eval", export.Options{}, hostile()...)
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	seen, tasks := map[string]bool{}, map[string]bool{}
	for _, member := range archive.File {
		if !fs.ValidPath(member.Name) || seen[member.Name] || strings.ContainsAny(member.Name, "\\\x00\n") {
			t.Errorf("member %q, seen before: %v", member.Name, seen[member.Name])
		}
		seen[member.Name] = true
		if !strings.HasPrefix(member.Name, "samples/") {
			continue
		}
		var sample object
		readMember(t, member, &sample)
		if want := fmt.Sprintf("samples/%s_epoch_%v.json", sample["id"], sample["epoch"]); member.Name != want {
			t.Errorf("member %q, want %q, by which it is looked up", member.Name, want)
		}
		tasks[sample["metadata"].(object)["task_id"].(string)] = true
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(hostileIDs)), slices.Sorted(maps.Keys(tasks))); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	for _, name := range []string{"_journal/start.json", "_journal/summaries/1.json", "summaries.json", "reductions.json", "header.json"} {
		if !seen[name] {
			t.Errorf("there is no member %s", name)
		}
	}
}

// Both forms of a log say the same.
func TestEvalAndJSONAreOneLog(t *testing.T) {
	episodes := []*episode.Episode{talk(false), talk(true), full(), bareEpisode()}
	asJSON, _ := wrote(t, "inspect", "log.json", export.Options{Run: aRun}, episodes...)
	asEval, _ := wrote(t, "inspect", "log", export.Options{Run: aRun, Set: map[string]string{"file": "eval"}}, episodes...)
	var document object
	readJSON(t, asJSON, &document)
	archive, err := zip.OpenReader(asEval)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var samples []any
	for _, member := range archive.File {
		var value any
		readMember(t, member, &value)
		switch {
		case strings.HasPrefix(member.Name, "samples/"):
			samples = append(samples, value)
		case member.Name == "reductions.json":
			if diff := cmp.Diff(document["reductions"], value); diff != "" {
				t.Errorf("reductions (-json +eval):\n%s", diff)
			}
		case member.Name == "header.json":
			header := maps.Clone(document)
			delete(header, "samples")
			delete(header, "reductions")
			if diff := cmp.Diff(any(header), value); diff != "" {
				t.Errorf("header (-json +eval):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff(document["samples"], any(samples)); diff != "" {
		t.Errorf("samples (-json +eval):\n%s", diff)
	}
}

// The mean is over tasks, as Inspect has it, and its error of that.
func TestInspectMetrics(t *testing.T) {
	var episodes []*episode.Episode
	for i, reward := range []float64{1, 0, 1, 1} { // two tasks with two samples each
		ep := talk(false)
		ep.Row, ep.Key.Task, ep.Key.Sample = i/2, fmt.Sprint("task-", i/2), i%2
		ep.ID, ep.Reward, ep.Rewards = ep.Key.ID(), &reward, nil
		episodes = append(episodes, ep)
	}
	path, _ := wrote(t, "inspect", "log.json", export.Options{}, episodes...)
	var log struct {
		Results struct {
			Scores []struct {
				Metrics map[string]struct{ Value float64 }
			}
		}
		Reductions []struct{ Samples []object }
	}
	readJSON(t, path, &log)
	metrics := log.Results.Scores[0].Metrics
	if metrics["mean"].Value != 0.75 || metrics["stderr"].Value != 0.25 {
		t.Errorf("metrics %v, want mean 0.75 and stderr 0.25", metrics)
	}
	if got := compact(t, log.Reductions[0].Samples); got != `[{"sample_id":"task-0","value":0.5},{"sample_id":"task-1","value":1}]` {
		t.Errorf("reductions %s", got)
	}
}

func TestPassAtK(t *testing.T) {
	var episodes []*episode.Episode
	for i, reward := range []float64{1, 0, 0, 1, 0, 0, 0, 0} { // two tasks with four samples each
		ep := talk(false)
		ep.Row, ep.Key.Task, ep.Key.Sample = i/4, fmt.Sprint("task-", i/4), i%4
		ep.ID, ep.Reward, ep.Rewards = ep.Key.ID(), &reward, nil
		episodes = append(episodes, ep)
	}
	path, _ := wrote(t, "verifiers-results", "out", export.Options{}, episodes...)
	var metadata struct {
		Any  map[string]float64 `json:"pass_at_k"`
		All  map[string]float64 `json:"pass_all_k"`
		Mean float64            `json:"avg_reward"`
	}
	readJSON(t, filepath.Join(path, "metadata.json"), &metadata)
	// Of four samples two are solved: one of two drawn is with 1 - 1/6, both are with 1/6; the other task never is.
	for k, want := range map[string][2]float64{"1": {0.25, 0.25}, "2": {5.0 / 12, 1.0 / 12}, "4": {0.5, 0}} {
		if got := [2]float64{metadata.Any[k], metadata.All[k]}; max(got[0]-want[0], want[0]-got[0], got[1]-want[1], want[1]-got[1]) > 1e-12 {
			t.Errorf("k=%s: %v, want %v", k, got, want)
		}
	}
	if metadata.Mean != 0.25 {
		t.Errorf("mean reward %v, want 0.25", metadata.Mean)
	}
}

// A row has what each tool of the whole dataset is created with, and a name that can be no column takes nothing down.
func TestVerlTools(t *testing.T) {
	tool := func(name string) json.RawMessage {
		text, _ := json.Marshal(map[string]any{"type": "function", "function": map[string]any{"name": name}})
		return text
	}
	one, two := talk(false), bareEpisode()
	one.Tools = []json.RawMessage{tool("terminal"), tool("read_file"), tool(`a,b" optional`), json.RawMessage(`[]`)}
	one.Task.Verify = []episode.Check{{Number: new(42.5)}}
	two.Tools = []json.RawMessage{tool("web_search")}
	path, result := wrote(t, "verl", "train.parquet", export.Options{Set: map[string]string{"interaction": "user"}}, one, two)
	rows := arrowFile(t, path)
	for i, row := range rows {
		extra := row["extra_info"].(object)
		kwargs := extra["tools_kwargs"].(object)
		if diff := cmp.Diff([]string{"read_file", "terminal", "web_search"}, slices.Sorted(maps.Keys(kwargs))); diff != "" {
			t.Errorf("row %d: tools (-want +got):\n%s", i, diff)
		}
		if got := kwargs["web_search"].(object)["create_kwargs"].(object)["task_id"]; got != row["id"] {
			t.Errorf("row %d: created for task %v, want %v", i, got, row["id"])
		}
	}
	extra := rows[0]["extra_info"].(object)
	if extra["answer"] != "42.5" || rows[0]["reward_model"].(object)["ground_truth"] != "42.5" || extra["interaction_kwargs"].(object)["name"] != "user" {
		t.Errorf("row 0: %v", rows[0])
	}
	if !noted(result.Notes, "rows with a tool whose name no column can have") {
		t.Errorf("notes %q", result.Notes)
	}
}

func TestTrainerSettingsSayWhatWouldBeRight(t *testing.T) {
	for _, tt := range []struct{ format, name, setting, value, want string }{
		{"inspect", "log.txt", "task", "x", "ends in neither .eval nor .json"},
		{"inspect", "log.eval", "file", "zip", "have eval, json"},
		{"verl", "a.parquet", "split", "dev", "have train, test"},
		{"skyrl", "a.json", "steps", "all", "have episode, turn"},
		{"atif", "a", "ids", "all", "have completion, prompt, none"},
		{"nemo-gym", "a", "agents", "x", "have agent"},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		_, err := export.Open(tt.format, path, export.Options{Set: map[string]string{tt.setting: tt.value}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s=%s: %v, want %q", tt.format, tt.setting, tt.value, err, tt.want)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
			t.Errorf("%s left %v behind", tt.format, left)
		}
	}
}

// What is written goes to disk also where it has to stand behind what is not known yet.
func TestJoinedFormatsHoldLittle(t *testing.T) {
	for format, name := range map[string]string{"skyrl": "out.json", "inspect": "out.json", "verl": "out.parquet"} {
		sink, err := export.Open(format, filepath.Join(t.TempDir(), name), export.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Close()
		live := func() uint64 {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc
		}
		before := live()
		for row := range 40 {
			ep := talk(false)
			ep.Row, ep.Key.Task = row, fmt.Sprint("task-", row)
			ep.Messages[1].Content = strings.Repeat(fmt.Sprint(row, " "), 30_000)
			ep.Turns[2].Tokens.Prompt = make(episode.IDs, 20_000)
			if err := sink.Write(t.Context(), ep); err != nil {
				t.Fatal(err)
			}
		}
		if now := live(); now > before+2<<20 {
			t.Errorf("%s holds %d KB after 40 episodes of 80 KB", format, (now-before)>>10)
		}
	}
}

// A conversation that was shortened before every turn repeats itself in formats of what was sent, up to a bound.
func TestManyShortenings(t *testing.T) {
	ep := talk(false)
	ep.Messages, ep.Turns, ep.Calls, ep.Drift = ep.Messages[:2], nil, nil, nil
	for i := range 700 {
		ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Content: "on"}, episode.Message{Role: "user", Content: "and on"})
		ep.Turns = append(ep.Turns, episode.Turn{Index: i, Message: 2 + 2*i})
		ep.Compactions = append(ep.Compactions, episode.Compaction{
			Turn: i, Strategy: episode.CompactDrop, Replaced: []episode.Replacement{{Message: 1, Content: fmt.Sprint("shorter ", i)}, {Message: 2 * i, Content: "[left out]"}},
		})
	}
	_, result := wrote(t, "verifiers", "out", export.Options{}, ep)
	if result.Dropped["a conversation that was shortened so often that its branches are too many"] != 1 {
		t.Errorf("verifiers dropped %v", result.Dropped)
	}
	path, result := wrote(t, "inspect", "out.json", export.Options{}, ep)
	if !noted(result.Notes, "samples that were shortened so often") {
		t.Errorf("inspect: notes %q", result.Notes)
	}
	if size := result.Files[0].Bytes; size > 8<<20 {
		t.Errorf("%s has %d bytes", path, size)
	}
}

// What the harness said can be left out in front of every format, also where it was all that stood behind a turn.
func TestTrainersWithoutHarness(t *testing.T) {
	for name, format := range formats {
		sink, err := export.Open(name, filepath.Join(t.TempDir(), filepath.Base(format.Path)), export.Options{Set: format.Set})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.Write(t.Context(), export.WithoutHarness(sinktest.Slice(sinktest.Episodes(24))), sink); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
