package datasets_test

import (
	"cmp"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// unusual are rows with forms that are rare, right and wrong ones.
var unusual = []string{
	`{"prompt": ""}`, `{"prompt": " \t"}`, `{"prompt": "\n"}`, `{"prompt": "\u0020"}`, `{"prompt": "\u0061"}`, `{"prompt": "a\u0000"}`, `{"prompt": "é"}`, `{"prompt": "!"}`, `{"prompt": 1}`,
	`{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}`, `{"prompt": "[\"a\"]"}`, `{"messages": "a"}`, `{"messages": "[{\"role\": \"user\", \"content\": \"b\"}]"}`,
	`{"messages": [{"role": "user", "content": " "}]}`, `{"messages": [{"role": "assistant", "content": "b"}]}`, `{"messages": [{"role": "user", "content": "a", "name": "b"}]}`,
	`{"prompt": "a", "system": "b"}`, `{"prompt": "a", "system": 1}`, `{"system": "a", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}`,
	`{"system": "c", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}`, `{"messages": [{"role": "user", "content": "b"}, {"role": "system", "content": "a"}]}`,
	`{"prompt": "a", "setup": "b\u0000"}`, `{"prompt": "a", "setup": "\\u0000"}`, `{"prompt": "a", "setup": " "}`, `{"prompt": "a", "setup": []}`,
	`{"prompt": "a", "verify": {"command": " "}}`, `{"prompt": "a", "verify": {"command": "b\u0000"}}`, `{"prompt": "a", "verify": {"exact": " "}}`, `{"prompt": "a", "verify": {"exact": [1]}}`,
	`{"prompt": "a", "verify": [{"command": "b", "exact": "c"}]}`, `{"prompt": "a", "verify": [{"name": "b", "exact": "c"}, {"name": "b", "exact": "d"}, {}]}`, `{"prompt": "a", "verify": {"regex": "("}}`,
	`{"prompt": "a", "verify": {"command": "b", "reward": "file", "tests": {"c": "d", "c/e": "f"}}}`, `{"prompt": "a", "verify": "{\"exact\": \"7\"}"}`,
	`{"prompt": "a", "gold": "b"}`, `{"prompt": "a", "gold": " "}`, `{"prompt": "a", "gold": "[{\"content\": \"b\"}, {\"content\": \"c\"}]"}`, `{"prompt": "a", "gold": "{\"answer\": \" \"}"}`,
	`{"prompt": "a", "gold": [{"content": "b"}, {"content": "c"}]}`, `{"prompt": "a", "gold": [{"tool_calls": [{"name": "b"}]}]}`,
	`{"prompt": "a", "files": {"b": "c", "./b": "d"}}`, `{"prompt": "a", "files": {"b": 1}}`, `{"prompt": "a", "files": {"b": {"base64": "?"}}}`, `{"prompt": "a", "image": "b", "docker_image": "c"}`,
	`{"prompt": "a", "toolsets": ["b"], "distribution": "c"}`, `{"prompt": "a", "network": "b", "allow": "c"}`, `{"prompt": "a", "user": {"model": true, "persona": "b"}, "cwd": "/c", "env": {"D": "e"}}`,
	`{"id": null, "prompt": "a"}`, `{"id": "", "prompt": "a", "b": null}`, `{"id": [], "prompt": "a"}`, `{"id": "\u0061", "prompt": "a"}`, `{"prompt": "a", "prompt": "b"}`, `{"prompt": "a", "b": {"c": 1, "c": 2}}`,
	`{"prompt": "a", "b": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, `{"prompt": "a`, `[]`, "{\"prompt\": \"a\xff\"}", "{\"prompt\": \"a\", \"b\": \"\xed\xa0\x80\"}",
	`{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`, `{"instance_id": "a", "prompt": "b"}`, `{"data_source": "a", "prompt": [{"role": "user", "content": "b"}]}`,
}

// TestInOrder holds a dataset that is read in its own order against one that is read as it is played.
func TestInOrder(t *testing.T) {
	gsm8k, err := datasets.LoadMapping("gsm8k")
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]datasets.Options{
		"plain": {}, "chat": {Shape: "chat"}, "mapping": {Map: gsm8k}, "where": {Choice: datasets.Choice{Where: `prompt != "a"`}}, "shuffled": {Choice: datasets.Choice{Shuffle: true, Seed: 1}},
		"stratified": {MaxTasks: 5, Choice: datasets.Choice{Stratify: "prompt", Slice: "1:"}}, "part": {Choice: datasets.Choice{Parts: map[string]float64{"b": 0.5}, Part: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"forms", "shapes", "gsm8k"} {
				rows, err := os.ReadFile("testdata/" + file + ".jsonl")
				if err != nil {
					t.Fatal(err)
				}
				sameInOrder(t, write(t, "rows.jsonl", string(rows)+"\n"+strings.Join(unusual, "\n")), options)
			}
		})
	}
}

// sameInOrder reads a dataset in each way.
func sameInOrder(t *testing.T, path string, options datasets.Options) {
	t.Helper()
	type told struct {
		tasks []*episode.Task
		wrong []string
	}
	var now *told
	options.SkipBadRows, options.OnSkip = true, func(bad *datasets.RowError) { now.wrong = append(now.wrong, bad.Error()) }
	read := func(tasks func(*datasets.Source) iter.Seq2[*episode.Task, error]) *told {
		now = &told{}
		source, err := datasets.Open(path, options)
		if err != nil {
			now.wrong = append(now.wrong, err.Error())
			return now
		}
		for task, err := range tasks(source) {
			if err != nil {
				now.wrong = append(now.wrong, err.Error())
				break
			}
			now.tasks = append(now.tasks, task)
		}
		return now
	}
	played := read(func(source *datasets.Source) iter.Seq2[*episode.Task, error] { return source.Tasks(t.Context()) })
	slices.SortFunc(played.tasks, func(a, b *episode.Task) int { return cmp.Compare(a.Row, b.Row) })
	ordered := read(func(source *datasets.Source) iter.Seq2[*episode.Task, error] { return source.InOrder(t.Context()) })
	if diff := gocmp.Diff(played, ordered, gocmp.AllowUnexported(told{})); diff != "" {
		t.Errorf("what is read in the order of the dataset differs (-want +got):\n%s", diff)
	}
}
