package export_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/internal/golden"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// documents are the JSON texts of an export, each of which its schema is for.
var documents = []struct {
	format, name, schema string
	texts                func(t *testing.T, path string) [][]byte
}{
	{"atif", "out", "atif", func(t *testing.T, path string) [][]byte { return filesNamed(t, path, "trajectory.json") }},
	{"atif-lines", "out.jsonl", "atif", linesOf},
	{"inspect", "out.json", "inspect", whole},
	{"nemo-gym", "out.jsonl", "nemo-gym", linesOf},
	{"skyrl", "out.json", "skyrl", whole},
	{"verifiers", "out", "verifiers", func(t *testing.T, path string) [][]byte { return linesOf(t, filepath.Join(path, "traces.jsonl")) }},
	{"verifiers-results", "out", "verifiers-results", func(t *testing.T, path string) [][]byte { return linesOf(t, filepath.Join(path, "results.jsonl")) }},
}

func whole(t *testing.T, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{text}
}

func linesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	return bytes.Split(bytes.TrimSpace(whole(t, path)[0]), []byte("\n"))
}

func filesNamed(t *testing.T, dir, suffix string) (texts [][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, suffix) {
			texts = append(texts, whole(t, path)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// full has every field that an episode can leave empty, and bareEpisode none of them.
func full() *episode.Episode {
	ep := sinktest.Episode(4, 1)
	ep.Task.Verify[0].Name = "tests"
	return ep
}

func bareEpisode() *episode.Episode {
	key := episode.Key{Seed: 1<<63 + 7, Task: "task-0099"}
	return &episode.Episode{
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: 99, Attempt: 1, Task: episode.Task{ID: "task-0099", Row: 99},
		Messages: []episode.Message{{Role: "user", Content: "2+2?"}, {Role: "assistant", Content: "5"}},
		Turns:    []episode.Turn{{Message: 1}}, Outcome: episode.Failure, Stop: episode.StopAnswered, Answer: "5", Reward: new(0.0),
	}
}

// aRun says all that a run can say of itself.
var aRun = export.Run{
	Name: "nightly", Fingerprint: "f1e2d3", Version: "1.2.3", Model: "scripted",
	BaseURL: "http://model.example/v1", Dataset: "tasks.jsonl", Digest: "sha256:00", Tasks: 2, Samples: 2, Seed: 7, RunFile: json.RawMessage(`{"seed":7}`),
}

// Between them the episodes have every outcome, stop and verdict on their tokens.
func TestDocumentsKeepToTheirSchemas(t *testing.T) {
	for _, d := range documents {
		t.Run(d.format, func(t *testing.T) {
			schema, seen := schemaOf(t, d.schema), 0
			for n, run := range map[int]export.Run{8: {}, 48: aRun} {
				path, _ := wrote(t, d.format, d.name, export.Options{Run: run}, append(sinktest.Episodes(n), bareEpisode())...)
				for _, text := range d.texts(t, path) {
					valid(t, schema, text)
					seen++
				}
			}
			if seen == 0 {
				t.Error("no document was seen")
			}
		})
	}
}

func TestDocumentsGolden(t *testing.T) {
	for _, d := range documents {
		t.Run(d.format, func(t *testing.T) {
			path, result := wrote(t, d.format, d.name, export.Options{Run: aRun}, full(), bareEpisode())
			var text bytes.Buffer
			for _, document := range d.texts(t, path) {
				if err := json.Indent(&text, document, "", " "); err != nil {
					t.Fatal(err)
				}
				text.WriteByte('\n')
			}
			for _, note := range result.Notes {
				text.WriteString("# " + note + "\n")
			}
			golden.Check(t, text.Bytes())
		})
	}
}

func TestTrainingTablesGolden(t *testing.T) {
	for _, format := range []string{"verl", "verl-sft", "verl-rollouts", "skyrl-dataset"} {
		t.Run(format, func(t *testing.T) {
			options := export.Options{Run: aRun}
			if format == "verl-sft" {
				options.Set = asTexts // arrow reads the type JSON as bytes
			}
			path, result := wrote(t, format, "out.parquet", options, full(), bareEpisode())
			rows, err := json.MarshalIndent(arrowFile(t, path), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, []byte(string(rows)+"\n# "+strings.Join(result.Notes, "\n# ")+"\n"))
		})
	}
}

// What is not the agent's doing has no reward: a format that demands one gets no row, and never a zero.
func TestNoRewardIsNoZero(t *testing.T) {
	fault := sinktest.Episode(2, 1) // its ids are without drift
	if fault.Reward != nil || fault.Outcome.AgentsDoing() {
		t.Fatalf("the episode has outcome %s", fault.Outcome)
	}
	for _, format := range []string{"skyrl", "nemo-gym", "verifiers-results"} {
		_, result := wrote(t, format, "out.json", export.Options{}, fault)
		if diff := cmp.Diff(map[string]int{"no reward": 1}, result.Dropped); diff != "" || result.Episodes != 0 {
			t.Errorf("%s: %d episodes, dropped (-want +got):\n%s", format, result.Episodes, diff)
		}
	}
	path, result := wrote(t, "verl-rollouts", "out.parquet", export.Options{}, fault)
	if row := arrowFile(t, path)[0]; row["reward_score"] != nil || !noted(result.Notes, "rows whose reward is null") {
		t.Errorf("verl-rollouts: reward %v, notes %q", row["reward_score"], result.Notes)
	}
	path, _ = wrote(t, "atif-lines", "out.jsonl", export.Options{}, fault)
	if extra := jsonLines(t, path)[0]["extra"].(object); extra["reward"] != nil || extra["outcome"] != "sandbox_error" {
		t.Errorf("atif: reward %v, outcome %v", extra["reward"], extra["outcome"])
	}
	path, _ = wrote(t, "verifiers", "out", export.Options{}, fault)
	trace := jsonLines(t, filepath.Join(path, "traces.jsonl"))[0]["traces"].([]any)[0].(object)
	if reward, there := trace["rewards"].(object)["reward"]; !there || reward != nil || trace["ok"] != false {
		t.Errorf("verifiers: reward %v, ok %v", reward, trace["ok"])
	}
	path, _ = wrote(t, "inspect", "out.json", export.Options{}, fault)
	var log struct {
		Results object
		Samples []object
	}
	readJSON(t, path, &log)
	if log.Samples[0]["scores"] != nil || log.Samples[0]["error"] == nil || log.Results["completed_samples"] != json.Number("0") {
		t.Errorf("inspect: scores %v, error %v, results %v", log.Samples[0]["scores"], log.Samples[0]["error"], log.Results)
	}
}
