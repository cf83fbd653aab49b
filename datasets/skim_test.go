package datasets_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// skimmed are rows whose texts a brief decoder has to look at after all, right and wrong ones.
var skimmed = []string{
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

// TestSkim holds a dataset that is skimmed, and one that is decoded as it is asked for, against one that is read.
func TestSkim(t *testing.T) {
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
				sameSkimmed(t, write(t, "rows.jsonl", string(rows)+"\n"+strings.Join(skimmed, "\n")), options)
			}
		})
	}
}

// sameSkimmed reads a dataset in each way.
func sameSkimmed(t *testing.T, path string, options datasets.Options) {
	t.Helper()
	type told struct {
		tasks []*episode.Task
		wrong []string
	}
	var now *told
	options.SkipBadRows, options.OnSkip = true, func(bad *datasets.RowError) { now.wrong = append(now.wrong, bad.Error()) }
	read := func(each func(source datasets.Source) error) *told {
		now = &told{}
		source, err := datasets.Open(path, options)
		if err == nil {
			err = each(source)
		}
		if err != nil {
			now.wrong = append(now.wrong, err.Error())
		}
		return now
	}
	played := read(func(source datasets.Source) error {
		for task, err := range source.Tasks(t.Context()) {
			if err != nil {
				return err
			}
			now.tasks = append(now.tasks, task)
		}
		return nil
	})
	lazy := read(func(source datasets.Source) error {
		tasks, whole := source.Lazy(t.Context())
		for task, err := range tasks {
			if err != nil {
				return err
			}
			id, row := task.ID, task.Row
			if task, err = whole(); err != nil {
				return err
			}
			if task.ID != id || task.Row != row {
				t.Errorf("task %s of row %d was said to be %s of %d", task.ID, task.Row, id, row)
			}
			now.tasks = append(now.tasks, task)
		}
		return nil
	})
	if diff := cmp.Diff(played, lazy, cmp.AllowUnexported(told{})); diff != "" {
		t.Errorf("what is decoded as it is asked for differs (-want +got):\n%s", diff)
	}
	ordered := read(func(source datasets.Source) error {
		for task, err := range source.InOrder(t.Context()) {
			if err != nil {
				return err
			}
			now.tasks = append(now.tasks, needs(task))
		}
		return nil
	})
	skim := read(func(source datasets.Source) error {
		for task, err := range source.Skim(t.Context()) {
			if err != nil {
				return err
			}
			now.tasks = append(now.tasks, needs(task))
		}
		return nil
	})
	if diff := cmp.Diff(ordered, skim, cmp.AllowUnexported(told{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what is skimmed differs (-want +got):\n%s", diff)
	}
}

// needs is a task without its texts, but for whether they say something.
func needs(task *episode.Task) *episode.Task {
	some := func(text string) string {
		if strings.TrimSpace(text) == "" {
			return ""
		}
		return "some"
	}
	names := func(files episode.Files) episode.Files {
		only := episode.Files{}
		for name := range maps.Keys(files) {
			only[name] = nil
		}
		return only
	}
	n := *task
	n.Metadata = nil
	n.System, n.Setup, n.Files = some(n.System), some(n.Setup), names(n.Files)
	n.Prompt, n.Verify, n.Gold = slices.Clone(n.Prompt), slices.Clone(n.Verify), slices.Clone(n.Gold)
	for i := range n.Prompt {
		n.Prompt[i].Content = some(n.Prompt[i].Content)
	}
	for i := range n.Verify {
		check := &n.Verify[i]
		check.Command, check.Tests = some(check.Command), names(check.Tests)
		if check.Exact != nil {
			said := some(*check.Exact)
			check.Exact = &said
		}
	}
	for i := range n.Gold {
		n.Gold[i].Content = some(n.Gold[i].Content)
	}
	return &n
}
