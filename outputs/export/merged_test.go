package export_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// seeds are samples 0 and 1 of a task as two runs of different seeds had them, merged.
func seeds() (episodes []*episode.Episode) {
	for _, sample := range []int{0, 1} {
		for _, seed := range []uint64{1, 2} {
			ep := full()
			ep.Key, ep.Row, ep.Reward = episode.Key{Seed: seed, Task: "task", Sample: sample}, 0, new(1.0)
			ep.ID = ep.Key.ID()
			episodes = append(episodes, ep)
		}
	}
	return episodes
}

// Formats that know an episode by its task and a number keep all samples of merged runs apart, and say so.
func TestSamplesOfSeveralSeedsStayApart(t *testing.T) {
	numbers := func(path, pattern string) (names []string) {
		paths, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			names = append(names, filepath.Base(p))
		}
		return names
	}
	tests := []struct {
		format string
		set    map[string]string
		read   func(path string) []string
		want   []string
	}{
		{"atif", nil, func(path string) []string { return numbers(path, "task/*") }, []string{"0", "1", "2", "3"}},
		{"nemo-gym", nil, func(path string) (got []string) {
			for _, line := range linesOf(t, path) {
				var row struct{ Rollout_index int }
				decode(t, line, &row)
				got = append(got, fmt.Sprint(row.Rollout_index))
			}
			return got
		}, []string{"0", "1", "2", "3"}},
		{"skyrl", nil, func(path string) (got []string) {
			var document struct {
				IDs []struct{ Repetition_id int } `json:"trajectory_ids"`
			}
			decode(t, whole(t, path)[0], &document)
			for _, id := range document.IDs {
				got = append(got, fmt.Sprint(id.Repetition_id))
			}
			return got
		}, []string{"0", "1", "2", "3"}},
		{"inspect", map[string]string{"file": "json"}, func(path string) (got []string) {
			var log struct {
				Eval    struct{ Config struct{ Epochs int } }
				Samples []struct{ Epoch int }
			}
			decode(t, whole(t, path)[0], &log)
			for _, sample := range log.Samples {
				got = append(got, fmt.Sprint(sample.Epoch))
			}
			return append(got, fmt.Sprint("of ", log.Eval.Config.Epochs))
		}, []string{"1", "2", "3", "4", "of 4"}},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			path := exported(t, tt.format, seeds(), export.Options{Set: tt.set})
			if diff := cmp.Diff(tt.want, tt.read(path)); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			result := write(t, tt.format, tt.set, seeds()...)
			const note = "episodes with another number than their sample's, which one of the same task had already (of another seed): 3"
			if result.Episodes != 4 || !slices.Contains(result.Notes, note) {
				t.Errorf("%d episodes, notes %q; want 4 and %q", result.Episodes, result.Notes, note)
			}
		})
	}
}

// turns are two tasks at one row, as runs of two splits of a dataset have them: their samples stand in turns.
func turns() []*episode.Episode {
	a, b := rewarded("a", 0, 1, 0), rewarded("b", 0, 0, 1)
	return []*episode.Episode{a[0], b[0], a[1], b[1]}
}

func TestSeveralTasksAtARow(t *testing.T) {
	t.Run("verl", func(t *testing.T) {
		rows, err := parquet.ReadFile[struct {
			ID string `parquet:"id"`
		}](exported(t, "verl", turns(), export.Options{}))
		if err != nil || len(rows) != 2 || rows[0].ID != "a" || rows[1].ID != "b" {
			t.Errorf("%v, %v; want a row for each task", rows, err)
		}
	})
	t.Run("trl-preference", func(t *testing.T) {
		var got []string
		for _, row := range readRows(t, exported(t, "trl-preference", turns(), export.Options{})) {
			got = append(got, row.ChosenID+" "+row.RejectedID)
		}
		if diff := cmp.Diff([]string{"a0 a1", "b1 b0"}, got); diff != "" {
			t.Errorf("pairs (-want +got):\n%s", diff)
		}
	})
	t.Run("verifiers-results", func(t *testing.T) {
		var metadata struct {
			NumExamples int                `json:"num_examples"`
			Rollouts    int                `json:"rollouts_per_example"`
			PassAtK     map[string]float64 `json:"pass_at_k"`
		}
		text, err := os.ReadFile(filepath.Join(exported(t, "verifiers-results", turns(), export.Options{}), "metadata.json"))
		if err == nil {
			err = json.Unmarshal(text, &metadata)
		}
		if err != nil || metadata.NumExamples != 2 || metadata.Rollouts != 2 || metadata.PassAtK["2"] != 1 {
			t.Errorf("%+v, %v; want 2 examples of 2 rollouts, of which one is solved", metadata, err)
		}
	})
	t.Run("inspect", func(t *testing.T) {
		var log struct {
			Reductions []struct {
				Samples []struct {
					Value float64
					ID    string `json:"sample_id"`
				}
			}
		}
		decode(t, whole(t, exported(t, "inspect", turns(), export.Options{Set: map[string]string{"file": "json"}}))[0], &log)
		if got := fmt.Sprint(log.Reductions); got != "[{[{0.5 a} {0.5 b}]}]" {
			t.Errorf("reductions are %s, want a mean of 0.5 for each task", got)
		}
	})
}
