package datasets_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// numbered is a dataset of tasks t0, t1, ... of which every fourth is hard, with its number as metadata.
func numbered(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		level := []string{"hard", "easy", "easy", "middling"}[i%4]
		fmt.Fprintf(&text, "{\"id\": \"t%d\", \"prompt\": \"p%d\", \"difficulty\": %q, \"n\": %d, \"tags\": [\"mod%d\"], \"deep\": {\"er\": %d}}\n", i, i, level, i, i%3, i%2)
	}
	return write(t, "a.jsonl", text.String())
}

func names(t *testing.T, path string, options datasets.Options) string {
	t.Helper()
	var ids []string
	for _, task := range read(t, path, options) {
		ids = append(ids, strings.TrimPrefix(task.ID, "t"))
	}
	return strings.Join(ids, " ")
}

func TestChoice(t *testing.T) {
	path := numbered(t, 12)
	tests := []struct {
		name string
		give datasets.Options
		want string
	}{
		{"all", datasets.Options{}, "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"where", datasets.Options{Choice: datasets.Choice{Where: `difficulty == "hard" and n > 0`}}, "4 8"},
		{"where deep", datasets.Options{Choice: datasets.Choice{Where: `"mod1" in tags and deep.er == 0 and metadata.n < 9 and row >= 1 and id != "x" and prompt startsWith "p"`}}, "4"},
		{"where nothing", datasets.Options{Choice: datasets.Choice{Where: `metadata?.absent == nil and n in [1, 2]`}}, "1 2"},
		{"slice", datasets.Options{Choice: datasets.Choice{Slice: "2:9:3"}}, "2 5 8"},
		{"slice from", datasets.Options{Choice: datasets.Choice{Slice: "10:"}}, "10 11"},
		{"slice step", datasets.Options{Choice: datasets.Choice{Slice: "::5"}, MaxTasks: 2}, "0 5"},
		{"slice of where", datasets.Options{Choice: datasets.Choice{Where: `difficulty == "easy"`, Slice: "1:3"}}, "2 5"},
		{"shuffle", datasets.Options{Choice: datasets.Choice{Shuffle: true, Seed: 1}}, "5 6 8 1 2 9 3 4 10 11 0 7"},
		{"shuffle and slice", datasets.Options{Choice: datasets.Choice{Shuffle: true, Seed: 1, Slice: "1::2"}, MaxTasks: 3}, "6 1 9"},
		{"per stratum", datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", PerStratum: 1, Seed: 1}}, "0 2 7"},
		{"stratify", datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", Seed: 1}, MaxTasks: 4}, "0 1 2 7"},
		{"stratify unevenly", datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", Seed: 2}, MaxTasks: 5}, "2 3 4 5 10"},
		{"everything", datasets.Options{Choice: datasets.Choice{Where: "n > 1", Parts: map[string]float64{"a": 0.7}, Part: "a", Shuffle: true, Stratify: "deep.er", Slice: "1:"}, MaxTasks: 4}, "9 8 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := names(t, path, tt.give); got != tt.want {
				t.Errorf("tasks %s, want %s", got, tt.want)
			}
		})
	}
}

// TestOrders holds that a shuffle and a sample keep the tasks as they are, in memory or in scratch, and that the pass in
// the dataset's order has the same ones.
func TestOrders(t *testing.T) {
	want := read(t, "testdata/forms.jsonl", datasets.Options{})
	for _, scratch := range []string{"", t.TempDir()} {
		source := open(t, "testdata/forms.jsonl", datasets.Options{Choice: datasets.Choice{Shuffle: true, Seed: 7, Scratch: scratch}})
		first, second := collect(t, source), collect(t, source)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("the second pass differs (-first +second):\n%s", diff)
		}
		if first[0].Row == 0 && first[1].Row == 1 && first[2].Row == 2 {
			t.Error("the order is that of the dataset")
		}
		byRow := slices.Clone(first)
		slices.SortFunc(byRow, func(a, b *episode.Task) int { return a.Row - b.Row })
		if diff := cmp.Diff(want, byRow); diff != "" {
			t.Errorf("shuffled tasks differ (-want +got):\n%s", diff)
		}
		var inOrder []*episode.Task
		for task, err := range source.InOrder(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			inOrder = append(inOrder, task)
		}
		if diff := cmp.Diff(want, inOrder); diff != "" {
			t.Errorf("InOrder differs (-want +got):\n%s", diff)
		}
	}
}

// TestLaidAside shuffles more than is held in memory: the rest goes to a file that is nowhere to be seen.
func TestLaidAside(t *testing.T) {
	path, scratch := t.TempDir()+"/a.jsonl", t.TempDir()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const rows, size = 20, 1000
	for i := range rows {
		fmt.Fprintf(file, "{\"id\":\"t%d\",\"prompt\":\"%s\"}\n", i, strings.Repeat(string(rune('a'+i)), size))
	}
	source := open(t, path, datasets.Options{Choice: datasets.Choice{Shuffle: true, Scratch: scratch}})
	n := 0
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := task.Prompt[0].Content; len(got) != size || got[size-1] != byte('a'+task.Row) {
			t.Errorf("task %s of row %d has another's prompt, or not all of it", task.ID, task.Row)
		}
		if entries, err := os.ReadDir(scratch); err != nil || len(entries) > 0 {
			t.Errorf("scratch holds %v, %v", entries, err)
		}
	}
	if n != rows {
		t.Errorf("%d tasks, want %d", n, rows)
	}
	source = open(t, path, datasets.Options{Choice: datasets.Choice{Shuffle: true, Scratch: scratch + "/none"}})
	for _, err := range source.Tasks(t.Context()) {
		if err != nil {
			wantError(t, err, "keep rows in scratch")
			return
		}
	}
	t.Error("the source kept rows in a file without a directory for it")
}

// TestParts holds that the parts of a dataset are disjoint, have about their shares, and that a task stays in its part
// when rows are added, whatever the seed; and that duplicates stay together.
func TestParts(t *testing.T) {
	shares := map[string]float64{"train": 0.8, "test": 0.1, "validation": 0.1}
	part := func(path, name string, seed uint64) []string {
		return strings.Fields(names(t, path, datasets.Options{Choice: datasets.Choice{Parts: shares, Part: name, Seed: seed}}))
	}
	few, many := numbered(t, 500), numbered(t, 2000)
	seen := map[string]string{}
	for name, share := range shares {
		all := part(many, name, 1)
		if n := float64(len(all)); n < 2000*share*0.8 || n > 2000*share*1.2 {
			t.Errorf("part %s has %v of 2000 tasks, want about %v", name, n, 2000*share)
		}
		for _, id := range all {
			if seen[id] != "" {
				t.Errorf("%s is in %s and %s", id, seen[id], name)
			}
			seen[id] = name
		}
		for _, id := range part(few, name, 2) {
			if seen[id] != name {
				t.Errorf("%s is in %s, and was in %s with fewer rows", id, seen[id], name)
			}
		}
	}
	if len(seen) != 2000 {
		t.Errorf("%d of 2000 tasks are in a part", len(seen))
	}
	twins := write(t, "a.jsonl", strings.Repeat("{\"id\": \"x\", \"prompt\": \"a\"}\n", 40)+"{\"id\": \"t3\", \"prompt\": \"a\"}\n{\"id\": \"t5\", \"prompt\": \"a\"}\n")
	halves := map[string]float64{"a": 0.5, "b": 0.5}
	for _, name := range []string{"a", "b"} {
		n := 0
		for _, id := range strings.Fields(names(t, twins, datasets.Options{Choice: datasets.Choice{Parts: halves, Part: name}})) {
			if strings.HasPrefix(id, "x") {
				n++
			}
		}
		if n != 0 && n != 40 {
			t.Errorf("%d of 40 duplicates are in part %s", n, name)
		}
	}
}

// TestStratified holds that a sample has the dataset's proportions.
func TestStratified(t *testing.T) {
	path := numbered(t, 400)
	for _, n := range []int{4, 10, 99, 399, 400, 1000} {
		counts := map[string]int{}
		all := read(t, path, datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", Shuffle: true}, MaxTasks: n})
		for _, task := range all {
			counts[task.Difficulty]++
		}
		want := min(n, 400)
		if len(all) != want || counts["easy"] < want/2 || counts["easy"] > want/2+1 || counts["hard"]-counts["middling"] > 1 || counts["hard"] < want/4 {
			t.Errorf("%d of %d tasks: %v", len(all), want, counts)
		}
	}
	// Another row changes little of the sample.
	first := strings.Fields(names(t, path, datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", PerStratum: 20}}))
	second := strings.Fields(names(t, numbered(t, 404), datasets.Options{Choice: datasets.Choice{Stratify: "difficulty", PerStratum: 20}}))
	same := 0
	for _, id := range first {
		if slices.Contains(second, id) {
			same++
		}
	}
	if same < 55 {
		t.Errorf("%d of 60 are still in the sample after four rows were added", same)
	}
}

// TestSkippedOnce holds that a broken row is told of once, however often the rows are read for their order.
func TestSkippedOnce(t *testing.T) {
	path := write(t, "a.jsonl", `{"id": "same", "prompt": "a", "n": 1}`+"\n{}\n"+`{"prompt": "b", "n": "x"}`+"\n"+`{"id": "same", "prompt": "a", "n": 0}`+"\n")
	for _, shuffle := range []bool{false, true} {
		var lines []int
		var repeated []string
		again := func(id string) { repeated = append(repeated, id) }
		options := datasets.Options{SkipBadRows: true, OnRepeat: again, OnSkip: func(bad *datasets.RowError) { lines = append(lines, bad.Line) }, Choice: datasets.Choice{Where: "n > 0", Shuffle: shuffle}}
		if tasks := read(t, path, options); len(tasks) != 1 || fmt.Sprint(lines) != "[2 3]" {
			t.Errorf("shuffle %t: %d tasks, skipped lines %v, want 1 and [2 3]", shuffle, len(tasks), lines)
		}
		if fmt.Sprint(repeated) != "[same]" {
			t.Errorf("shuffle %t: repeated ids %v", shuffle, repeated)
		}
	}
}

func TestChosenSteps(t *testing.T) {
	path := numbered(t, 100)
	steps := func(options datasets.Options) string {
		var told [][]datasets.Step
		options.OnChosen = func(steps []datasets.Step) { told = append(told, steps) }
		read(t, path, options)
		if len(told) != 1 {
			t.Fatalf("%d reports of a pass", len(told))
		}
		var text []string
		for _, step := range told[0] {
			text = append(text, fmt.Sprintf("%s %d", step.Name, step.Left))
		}
		return strings.Join(text, ", ")
	}
	for want, options := range map[string]datasets.Options{
		"read 100": {},
		"read 100, where 25, shuffle 25, stratify 10, slice 5": {Choice: datasets.Choice{Where: `difficulty == "hard"`, Shuffle: true, Stratify: "tags", PerStratum: 4, Slice: "5:"}},
		"read 13, where 4, max_tasks 4":                        {Choice: datasets.Choice{Where: `difficulty == "hard"`}, MaxTasks: 4},
	} {
		if got := steps(options); !strings.HasPrefix(got, strings.Split(want, ", stratify")[0]) {
			t.Errorf("steps %s, want %s", got, want)
		}
	}
}

func TestChoiceRefuses(t *testing.T) {
	path := numbered(t, 8)
	tests := []struct {
		name string
		give datasets.Options
		want []string
	}{
		{"everything at once", datasets.Options{Choice: datasets.Choice{Where: "n >", Slice: "1", Part: "x", PerStratum: 2}},
			[]string{"where: condition", "slice is \"1\"; want START:END", `use_part is "x", and there are no parts`, "per_stratum goes with stratify"}},
		{"slice", datasets.Options{Choice: datasets.Choice{Slice: "-1:"}}, []string{"slice is \"-1:\""}},
		{"slice step", datasets.Options{Choice: datasets.Choice{Slice: "::0"}}, []string{"slice is"}},
		{"slice of nothing", datasets.Options{Choice: datasets.Choice{Slice: "5:5"}}, []string{`slice is "5:5", which is empty`}},
		{"part", datasets.Options{Choice: datasets.Choice{Parts: map[string]float64{"a": 0.5}}}, []string{"use_part says which one is played (have a)"}},
		{"no such part", datasets.Options{Choice: datasets.Choice{Parts: map[string]float64{"a": 0.5}, Part: "b"}}, []string{`no part "b" (have a)`}},
		{"shares", datasets.Options{Choice: datasets.Choice{Parts: map[string]float64{"a": 0.6, "b": 0.6, "c": 0}, Part: "a"}}, []string{"1.2 together", `"c" has the share 0`}},
		{"stratify how many", datasets.Options{Choice: datasets.Choice{Stratify: "n"}}, []string{"max_tasks for all together, or per_stratum"}},
		{"stratify both", datasets.Options{Choice: datasets.Choice{Stratify: "n", PerStratum: 1}, MaxTasks: 3}, []string{"not with both"}},
		{"where took it", datasets.Options{Choice: datasets.Choice{Where: "n > 100"}}, []string{"no task is left: where n > 100 took the last 8 of 8"}},
		{"slice took it", datasets.Options{Choice: datasets.Choice{Where: "n > 3", Slice: "7:"}}, []string{"no task is left: slice 7: took the last 4 of 8"}},
		{"shuffled slice", datasets.Options{Choice: datasets.Choice{Shuffle: true, Slice: "8:"}}, []string{"slice 8: took the last 8 of 8"}},
		{"no field", datasets.Options{Choice: datasets.Choice{Stratify: "leval"}, MaxTasks: 3}, []string{`no row has a field "leval"`, "difficulty", "n,"}},
		{"no such name", datasets.Options{Choice: datasets.Choice{Where: "leval == nil or metadata.depp > 3"}, MaxTasks: 1},
			[]string{"where: condition", "no row has leval, metadata.depp (have cwd, deep, deep.er, difficulty"}},
		{"a text as a number", datasets.Options{Choice: datasets.Choice{Where: "deep > 3"}}, []string{"a.jsonl:1: condition"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source, err := datasets.Open(path, tt.give)
			if err == nil {
				for _, each := range source.Tasks(t.Context()) {
					err = errors.Join(err, each)
				}
			}
			wantError(t, err, tt.want...)
		})
	}
}
