package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// TestTreesComeBack: whatever format has the columns of a row, a tree is read from it as it was written, between others.
func TestTreesComeBack(t *testing.T) {
	episodes := []*episode.Episode{sinktest.Episode(0, 0), sinktest.Tree(1), sinktest.Tree(2), sinktest.Episode(3, 0)}
	for _, format := range []string{"parquet", "arrow", "hf", "jsonl"} {
		got, err := readFiles(t, exported(t, format, episodes, export.Options{}))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if diff := cmp.Diff(episodes, got, sameAsRow); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	files, err := export.OpenFiles(exported(t, "parquet", episodes, export.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if n := files.Len(); n != len(episodes) {
		t.Errorf("the files have %d episodes, want %d", n, len(episodes))
	}
	// A subagent whose parent is missing does not belong to the run.
	orphan := sinktest.Tree(1).Children[1]
	if _, err := readFiles(t, exported(t, "parquet", []*episode.Episode{orphan}, export.Options{})); err == nil || !strings.Contains(err.Error(), "does not stand behind its parent") {
		t.Errorf("an orphan: %v", err)
	}
}

// TestSubagentsElsewhere: formats that know subagents nest them, and others have rows for them, unless they are left out.
func TestSubagentsElsewhere(t *testing.T) {
	tree := sinktest.Tree(1)
	ids := func(ep *episode.Episode) (ids []string) {
		for each := range ep.Tree() {
			ids = append(ids, each.ID)
		}
		return ids
	}(tree)
	decode := func(data []byte, to any) {
		t.Helper()
		if err := json.Unmarshal(data, to); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(format, name string, set map[string]string) (string, export.Result) {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		sink, err := export.Open(format, path, export.Options{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		result, err := export.Write(t.Context(), sinktest.Slice{tree}, sink)
		if err != nil {
			t.Fatal(err)
		}
		return path, result
	}

	type trajectory struct {
		ID    string       `json:"trajectory_id"`
		Subs  []trajectory `json:"subagent_trajectories"`
		Steps []struct {
			Observation struct {
				Results []struct {
					Subs []struct {
						ID string `json:"trajectory_id"`
					} `json:"subagent_trajectory_ref"`
				}
			}
		}
	}
	path, _ := write("atif-lines", "out.jsonl", nil)
	var atif trajectory
	decode(read(path), &atif)
	if atif.ID != ids[0] || len(atif.Subs) != 2 || atif.Subs[0].ID != ids[1] || len(atif.Subs[0].Subs) != 1 || atif.Subs[0].Subs[0].ID != ids[2] || atif.Subs[1].ID != ids[3] {
		t.Errorf("atif nests %+v", atif)
	}
	var pointed []string
	for _, step := range atif.Steps {
		for _, result := range step.Observation.Results {
			for _, sub := range result.Subs {
				pointed = append(pointed, sub.ID)
			}
		}
	}
	if diff := cmp.Diff([]string{ids[1], ids[3]}, pointed); diff != "" {
		t.Errorf("atif points to (-want +got):\n%s", diff)
	}

	path, _ = write("inspect", "out.json", nil)
	var log struct {
		Samples []struct {
			Events []struct {
				Event  string
				ID     string
				Parent string   `json:"parent_id"`
				Span   string   `json:"span_id"`
				Refs   [][2]int `json:"input_refs"`
			}
			Data struct {
				Messages []struct{ ID string }
			} `json:"events_data"`
			Usage map[string]struct {
				Output int `json:"output_tokens"`
			} `json:"model_usage"`
		}
	}
	decode(read(path), &log)
	var spans []string
	for _, event := range log.Samples[0].Events {
		switch event.Event {
		case "span_begin":
			spans = append(spans, event.ID+" in "+event.Parent)
		case "model": // is sent its own conversation
			if first := log.Samples[0].Data.Messages[event.Refs[0][0]].ID; !strings.HasPrefix(first, max(event.Span, ids[0])+"-m") {
				t.Errorf("a model event of %q begins with message %s", event.Span, first)
			}
		}
	}
	if diff := cmp.Diff([]string{ids[1] + " in ", ids[2] + " in " + ids[1], ids[3] + " in "}, spans); len(log.Samples) != 1 || diff != "" {
		t.Errorf("%d samples, spans (-want +got):\n%s", len(log.Samples), diff)
	}

	path, _ = write("verifiers", "v", nil)
	var whole struct {
		Traces []struct {
			ID    string
			Agent struct{ Name string }
		}
	}
	decode(read(filepath.Join(path, "traces.jsonl")), &whole)
	var names []string
	for i, trace := range whole.Traces {
		if names = append(names, trace.Agent.Name); trace.ID != ids[i]+"-agent" {
			t.Errorf("trace %d is %s", i, trace.ID)
		}
	}
	if diff := cmp.Diff([]string{"agent", "subagent", "subagent", "subagent"}, names); diff != "" {
		t.Errorf("verifiers (-want +got):\n%s", diff)
	}

	for _, tt := range []struct {
		set  map[string]string
		want int
	}{{nil, 4}, {map[string]string{"children": "skip"}, 1}} {
		path, result := write("openai", "out.jsonl", tt.set)
		if lines := strings.Count(string(read(path)), "\n"); lines != tt.want || result.Episodes != tt.want {
			t.Errorf("openai %v: %d lines, %d episodes, want %d", tt.set, lines, result.Episodes, tt.want)
		}
	}
	if _, result := write("nemo-gym", "out.jsonl", nil); result.Dropped["no reward"] != 3 || result.Episodes != 1 {
		t.Errorf("nemo-gym: %+v", result)
	}
}
