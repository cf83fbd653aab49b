package export_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// TestUnsound holds that formats for trainers leave out all samples of a task whose proof failed, also when they were read from
// rows, and that others do not.
func TestUnsound(t *testing.T) {
	proofs := []*episode.Proof{
		nil,
		{Gold: new(1.0), Noop: new(0.5), Attacks: map[string]*float64{"preload": new(0.9), "pty": nil}},
		{Gold: new(0.5), Noop: new(0.0)},
		{Noop: new(0.0), Faults: map[string]string{"gold": "exit_126"}},
		{Gold: new(1.0), Noop: new(1.0)},
		{Attacks: map[string]*float64{"preload": new(1.0), "reward-file": new(1.0), "pty": nil}},
	}
	episodes := samples([]float64{1, 0}, []float64{1, 0}, []float64{1, 0}, []float64{1, 0}, []float64{1, 0}, []float64{1, 0})
	for _, ep := range episodes {
		ep.Proof = proofs[ep.Row]
		ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Content: ep.Answer})
		ep.Turns = []episode.Turn{{Message: 1}}
	}
	dir := runDir(t, episodes)
	writeDataset(t, dir)
	rows, err := export.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	back, err := readAll(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, ep := range back {
		if diff := cmp.Diff(episodes[i].Proof, ep.Proof); diff != "" {
			t.Errorf("proof that was read back (-want +got):\n%s", diff)
		}
	}
	attacks := arrowRows(t, dir, "trajectories")[10]["proof_attacks"]
	if diff := cmp.Diff([]any{"preload", "reward-file"}, attacks); diff != "" {
		t.Errorf("proof_attacks (-want +got):\n%s", diff)
	}

	dropped := map[string]int{
		"the task's reference solution fails": 4, "doing nothing passes the task's verifier": 2, "an attack passes the task's verifier": 2,
	}
	for _, tt := range []struct {
		format  string
		unsound bool
		want    map[string]int
	}{{"nemo-gym", false, dropped}, {"trl", false, dropped}, {"nemo-gym", true, map[string]int{}}, {"jsonl", false, map[string]int{}}, {"openai", false, map[string]int{}}} {
		for name, source := range map[string]export.Source{"episodes": sinktest.Slice(episodes), "rows": rows} {
			sink, err := export.Open(tt.format, filepath.Join(t.TempDir(), "out"), export.Options{Unsound: tt.unsound})
			if err != nil {
				t.Fatal(err)
			}
			result, err := export.Write(t.Context(), source, sink)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, result.Dropped); diff != "" {
				t.Errorf("%s of %s, unsound %v: left out (-want +got):\n%s", tt.format, name, tt.unsound, diff)
			}
		}
	}
}
