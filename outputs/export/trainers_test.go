package export_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// These formats are for trainers and for readers of evaluations; TestSinks holds them to the contract with the others.
func init() {
	for name, format := range map[string]sinktest.Format{
		"atif":              {Path: "data/trajectories", IDs: atifIDs, Carries: hasMessages},
		"atif-lines":        {Path: "data/trajectories.jsonl", IDs: idField("session_id"), Carries: hasMessages},
		"inspect":           {Path: "data/log.eval", IDs: evalIDs},
		"nemo-gym":          {Path: "data/rollouts.jsonl", IDs: idField("rollout_id"), Carries: func(ep *episode.Episode) bool { return hasMessages(ep) && ep.Reward != nil }},
		"verifiers":         {Path: "data/eval", IDs: inFolder("traces.jsonl", idField("id")), Carries: hasMessages},
		"verifiers-results": {Path: "data/eval", IDs: inFolder("results.jsonl", idField("episode_id")), Carries: func(ep *episode.Episode) bool { return hasMessages(ep) && ep.Reward != nil }},
		"skyrl":             {Path: "data/rollouts.json", IDs: skyrlIDs, Carries: func(ep *episode.Episode) bool { return undrifted(ep) && ep.Reward != nil }},
		"skyrl-dataset":     {Path: "data/train.parquet", IDs: taskIDs, Carries: firstSample},
		"verl":              {Path: "data/train.parquet", IDs: taskIDs, Carries: firstSample},
		"verl-rollouts":     {Path: "data/rollouts.parquet", IDs: idColumn("id"), Carries: undrifted},
		"verl-sft":          {Path: "data/sft.parquet", Set: asTexts, IDs: idColumn("id"), Carries: hasMessages},
	} {
		formats[name] = format
	}
}

func hasMessages(ep *episode.Episode) bool { return len(ep.Messages) > 0 }

func undrifted(ep *episode.Episode) bool {
	return ep.Drift != nil && ep.Drift.Verdict == episode.DriftNone
}

// firstSample tells the episodes whose task is written: the first of its samples that has a prompt.
func firstSample(ep *episode.Episode) bool {
	if !hasMessages(ep) {
		return false
	}
	return ep.Key.Sample == 0 || !hasMessages(sinktest.Episode(ep.Row, 0))
}

// idOf is the id of an episode of sinktest's.
func idOf(task string, sample int) string {
	return episode.Key{Seed: 1<<63 + 7, Task: task, Sample: sample}.ID()
}

func atifIDs(t *testing.T, path string) (ids []string) {
	for _, line := range jsonLines(t, filepath.Join(path, "index.jsonl")) {
		var trajectory object
		readJSON(t, filepath.Join(path, line["path"].(string)), &trajectory)
		ids = append(ids, trajectory["session_id"].(string))
	}
	return ids
}

// evalIDs reads the zip file of an Inspect log.
func evalIDs(t *testing.T, path string) (ids []string) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, member := range archive.File {
		if !strings.HasPrefix(member.Name, "samples/") {
			continue
		}
		var sample object
		readMember(t, member, &sample)
		ids = append(ids, sample["uuid"].(string))
	}
	return ids
}

func readMember(t *testing.T, member *zip.File, to any) {
	t.Helper()
	f, err := member.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, to)
}

func inFolder(name string, ids func(*testing.T, string) []string) func(*testing.T, string) []string {
	return func(t *testing.T, path string) []string { return ids(t, filepath.Join(path, name)) }
}

func skyrlIDs(t *testing.T, path string) (ids []string) {
	var output struct {
		TrajectoryIDs []struct {
			Instance   string `json:"instance_id"`
			Repetition int    `json:"repetition_id"`
		} `json:"trajectory_ids"`
	}
	readJSON(t, path, &output)
	for _, id := range output.TrajectoryIDs {
		ids = append(ids, idOf(id.Instance, id.Repetition))
	}
	return ids
}

func idField(key string) func(*testing.T, string) []string {
	return func(t *testing.T, path string) (ids []string) {
		for _, line := range jsonLines(t, path) {
			ids = append(ids, line[key].(string))
		}
		return ids
	}
}

func idColumn(column string) func(*testing.T, string) []string {
	return func(t *testing.T, path string) (ids []string) {
		for _, row := range arrowFile(t, path) {
			ids = append(ids, row[column].(string))
		}
		return ids
	}
}

// taskIDs are those of the samples that stand for their tasks.
func taskIDs(t *testing.T, path string) (ids []string) {
	for _, row := range arrowFile(t, path) {
		index, err := row["extra_info"].(object)["index"].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		for sample := range 2 {
			if ep := sinktest.Episode(int(index), sample); firstSample(ep) {
				ids = append(ids, ep.ID)
			}
		}
	}
	return ids
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, to)
}

func jsonLines(t *testing.T, path string) (rows []object) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var row object
		decode(t, lines.Bytes(), &row)
		rows = append(rows, row)
	}
	return rows
}

// wrote writes episodes in a format and returns where, and what came of it.
func wrote(t *testing.T, format, name string, options export.Options, episodes ...*episode.Episode) (string, export.Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	sink, err := export.Open(format, path, options)
	if err != nil {
		t.Fatal(err)
	}
	result, err := export.Write(t.Context(), sinktest.Slice(episodes), sink)
	if err != nil {
		t.Fatal(err)
	}
	return path, result
}

// schemaOf compiles a schema that was written from the format's description.
func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "schemas", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// valid holds a JSON text to a schema.
func valid(t *testing.T, schema *jsonschema.Schema, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%.2000s", err, text)
	}
}

// noted finds a note that begins with the words.
func noted(notes []string, words string) bool {
	for _, note := range notes {
		if strings.HasPrefix(note, words) {
			return true
		}
	}
	return false
}
