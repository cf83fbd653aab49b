package export_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// samples makes episodes of one task a row, with the rewards of the samples; -1 is none.
func samples(rewards ...[]float64) (episodes []*episode.Episode) {
	for row, list := range rewards {
		for sample, reward := range list {
			ep := &episode.Episode{
				Key: episode.Key{Task: fmt.Sprint("t", row), Sample: sample}, Row: row, Outcome: episode.Failure,
				Answer: fmt.Sprint(reward), Usage: episode.Usage{Prompt: 100 - sample, Reported: true},
				Messages: []episode.Message{{Role: "user", Content: fmt.Sprint(reward, sample/2)}},
			}
			if ep.ID = ep.Key.ID(); reward >= 0 {
				ep.Reward = &reward
			}
			episodes = append(episodes, ep)
		}
	}
	return episodes
}

func TestChoose(t *testing.T) {
	episodes := samples([]float64{0, 1, 1}, []float64{-1, 0}, []float64{-1, -1}, []float64{0.5, 0.5, 0.5, 0.5})
	tests := []struct {
		give    export.Choice
		want    string // row.sample
		dropped map[string]int
	}{
		{export.Choice{}, "0.0 0.1 0.2 1.0 1.1 2.0 2.1 3.0 3.1 3.2 3.3", nil},
		{export.Choice{PerTask: "all", Dedupe: "none"}, "0.0 0.1 0.2 1.0 1.1 2.0 2.1 3.0 3.1 3.2 3.3", nil},
		{export.Choice{PerTask: "best"}, "0.2 1.1 2.1 3.3", map[string]int{"other samples of the task are better": 7}},
		{export.Choice{PerTask: "2"}, "0.1 0.2 1.0 1.1 2.0 2.1 3.2 3.3", map[string]int{"other samples of the task are better": 3}},
		{export.Choice{Where: "reward > 0.4 and sample != 1"}, "0.2 3.0 3.2 3.3", map[string]int{"the condition does not hold": 7}},
		{export.Choice{Where: "reward == nil"}, "1.0 2.0 2.1", map[string]int{"the condition does not hold": 8}},
		{export.Choice{Dedupe: "answer"}, "0.0 0.1 1.0 1.1 2.0 3.0", map[string]int{"the same answer as an earlier sample": 5}},
		{export.Choice{Dedupe: "exact"}, "0.0 0.1 0.2 1.0 1.1 2.0 3.0 3.2", map[string]int{"the same messages as an earlier sample": 3}},
		{export.Choice{Max: 4}, "0.0 0.1 0.2 1.0", nil},
		{export.Choice{Where: "row > 0", Dedupe: "answer", PerTask: "best", Max: 2}, "1.1 2.0",
			map[string]int{"the condition does not hold": 3, "the same answer as an earlier sample": 4, "other samples of the task are better": 1}},
	}
	for _, tt := range tests {
		source, err := export.Choose(sinktest.Slice(episodes), tt.give)
		if err != nil {
			t.Errorf("%+v: %v", tt.give, err)
			continue
		}
		sink, err := export.Open("jsonl", filepath.Join(t.TempDir(), "out.jsonl"), export.Options{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := export.Write(t.Context(), source, sink)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ep := range readJSONL(t, result.Files[0].Path) {
			got = append(got, fmt.Sprintf("%d.%d", ep.Row, ep.Key.Sample))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %v", tt.give, got, tt.want)
		}
		if len(result.Dropped) > 0 || len(tt.dropped) > 0 {
			if diff := cmp.Diff(tt.dropped, result.Dropped); diff != "" {
				t.Errorf("%+v: dropped (-want +got):\n%s", tt.give, diff)
			}
		}
		if ended := len(result.Notes) > 0; ended != (tt.give.Max > 0) {
			t.Errorf("%+v: notes %q", tt.give, result.Notes)
		}
	}
}

// A condition about what no episode has would hold for all of them or for none: nothing is written.
func TestChooseUnknownNames(t *testing.T) {
	episodes := samples([]float64{0, 1}, []float64{-1, -1})
	for _, ep := range episodes {
		ep.Task.Metadata = []byte(`{"level": 3}`)
	}
	last := episodes[len(episodes)-1]
	last.Task.Metadata = []byte(`{"level": 3, "rare": true}`)
	tests := []struct {
		give export.Choice
		want string // in the error; empty is none
		n    int
	}{
		{export.Choice{Where: "meta.rare == nil"}, "", 3},
		{export.Choice{Where: "meta.rare == nil", Max: 1}, "", 1},
		{export.Choice{Where: "meta.rare == nil", PerTask: "best", Max: 1}, "", 1},
		{export.Choice{Where: "meta?.lvl == nil", Max: 1}, "", 1},
		{export.Choice{Where: "meta.lvl == nil"}, `no row has meta.lvl (did you mean "meta.level"?) (have`, 0},
		{export.Choice{Where: "meta.lvl == nil", Max: 1}, `no row has meta.lvl (did you mean "meta.level"?) (have`, 0},
		{export.Choice{Where: "meta.lvl > 2", PerTask: "best"}, `no row has meta.lvl (did you mean "meta.level"?) (have`, 0},
	}
	for _, tt := range tests {
		source, err := export.Choose(sinktest.Slice(episodes), tt.give)
		if err != nil {
			t.Fatal(err)
		}
		sink, err := export.Open("jsonl", filepath.Join(t.TempDir(), "out.jsonl"), export.Options{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := export.Write(t.Context(), source, sink)
		if tt.want == "" && (err != nil || result.Episodes != tt.n) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %d episodes, %v; want %d, %q", tt.give, result.Episodes, err, tt.n, tt.want)
		}
	}
}

// TestGroups holds that a missing reward is not a zero, and that every sample knows its group's numbers.
func TestGroups(t *testing.T) {
	episodes := samples([]float64{0, 1, -1, 1}, []float64{1, 1}, []float64{0, 0}, []float64{-1, -1}, []float64{0, 0, 0, 0.4})
	for _, ep := range episodes {
		if ep.Reward != nil && *ep.Reward == 1 {
			ep.Outcome = episode.Success
		}
	}
	for condition, want := range map[string]string{
		"group.mean >= 0.2 and group.mean <= 0.8":      "0.0 0.1 0.2 0.3",
		"group.passed / group.n > 0.6 and group.n > 2": "0.0 0.1 0.2 0.3",
		"group.missing > 0 and group.mean == nil":      "3.0 3.1",
		"advantage > 0":    "0.1 0.3 4.3",
		"advantage == nil": "0.2 3.0 3.1",
		"group.passed == 0 and group.n == 4 and advantage == 0": "",
	} {
		source, err := export.Choose(sinktest.Slice(episodes), export.Choice{Where: condition})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ep := range all(t, source) {
			got = append(got, fmt.Sprintf("%d.%d", ep.Row, ep.Key.Sample))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", condition, got, want)
		}
	}
	if _, err := export.Choose(sinktest.Slice(episodes), export.Choice{Where: "group.maen > 0"}); err == nil || !strings.Contains(err.Error(), `did you mean "group.mean"?`) {
		t.Errorf("group.maen: %v", err)
	}
}

// A sample that was not judged does not make one that was a repetition of it.
func TestDedupeKeepsWhatWasJudged(t *testing.T) {
	for _, dedupe := range []string{"exact", "answer"} {
		episodes := samples([]float64{-1, 1, 1})
		for _, ep := range episodes {
			ep.Messages, ep.Answer = nil, "same"
		}
		source, err := export.Choose(sinktest.Slice(episodes), export.Choice{Dedupe: dedupe, PerTask: "best"})
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, source); len(got) != 1 || got[0].Key.Sample != 1 {
			t.Errorf("%s: %d episodes, the first is sample %d; want sample 1 alone", dedupe, len(got), got[0].Key.Sample)
		}
	}
}

func TestChooseSaysWhatIsWrong(t *testing.T) {
	_, err := export.Choose(sinktest.Slice(nil), export.Choice{Where: "rewrd > 1", PerTask: "worst", Dedupe: "all", Max: -1})
	for _, want := range []string{`unknown name rewrd (did you mean "reward"?) (have advantage,`, `"worst" (want all, best or a number`, `"all" (want none, exact or answer)`, "max: -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for _, misspelt := range []string{"sampling.temprature > 1", `turns == "three"`, "outcome > 3", "tools == 3"} {
		if _, err := export.Choose(sinktest.Slice(nil), export.Choice{Where: misspelt}); err == nil {
			t.Errorf("%s was taken", misspelt)
		}
	}
}

// Every variable has the type that its example promised, whatever the episode lacks.
func TestVariables(t *testing.T) {
	every := map[string]string{
		"episode_id": `episode_id == id`, "nonzero_exits": "nonzero_exits == 1 and failed_calls == 2", "id": `id != ""`, "task": `task startsWith "task-"`, "row": "row >= 0", "sample": "sample >= 0", "attempt": "attempt >= 1",
		"outcome": `outcome in ["success", "failure", "limit"]`, "stop": `stop == "answered"`, "reward": "reward >= 1", "rewards": "rewards.tests == 1",
		"subagents": "subagents == 0", "turns": "turns == 2", "calls": "calls == 3", "failed_calls": "failed_calls == 2", "tools": `"terminal" in tools`,
		"toolsets": `"files" in toolsets`, "model": `model == "scripted"`, "prompt_tokens": "prompt_tokens > 99", "completion_tokens": "completion_tokens == 20",
		"cost_usd": "cost_usd < 1", "elapsed": "elapsed > 1.4", "drift": `drift == "unknown"`, "safe_to_train": "not safe_to_train", "tags": `"python" in tags`,
		"difficulty": `difficulty == "hard"`, "meta": `meta.c == "é"`, "answer": `answer contains "answer"`, "fault_class": `fault_class == ""`,
		"advantage": "advantage >= 0", "group": "group.n >= 1 and group.missing >= 0 and group.passed >= 1 and group.mean <= reward",
		"proof":    "proof.gold == nil and proof.noop == nil and len(proof.attacks) == 0",
		"sampling": `sampling.temperature == 0 and sampling.model == "scripted" and sampling.max_tokens == 512`,
	}
	episodes := sinktest.Episodes(16)
	for i := range episodes[0].Calls {
		if call := &episodes[0].Calls[i]; call.ExitCode != nil {
			call.ExitCode = new(3) // which is not a failure
		}
	}
	for _, v := range export.Variables() {
		condition, ok := every[v.Name]
		if !ok {
			t.Errorf("no condition asks about %s", v.Name)
			continue
		}
		source, err := export.Choose(sinktest.Slice(episodes), export.Choice{Where: condition})
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		got, err := readAll(t.Context(), source)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
		}
		if !slices.ContainsFunc(got, func(ep *episode.Episode) bool { return ep.Row == 0 && ep.Key.Sample == 0 }) {
			t.Errorf("%s does not hold for the first episode", condition)
		}
	}
}
