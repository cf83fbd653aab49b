package world_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

func questions(t *testing.T) []*episode.Task {
	t.Helper()
	source, err := datasets.Open(datasets.BundledResearch, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var tasks []*episode.Task
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func answer(task *episode.Task) string { return task.Gold[len(task.Gold)-1].Content }

// TestQuestions holds what the set promises: twelve questions for each number of pages, and all kinds.
func TestQuestions(t *testing.T) {
	tasks := questions(t)
	tags := map[string]int{}
	for _, task := range tasks {
		for _, tag := range task.Tags {
			tags[tag]++
		}
		if !slices.Equal(task.Toolsets, []string{"corpus"}) || len(task.Verify) != 1 || len(task.Tags) != 3 {
			t.Errorf("%s: toolsets %v, %d checks, tags %v", task.ID, task.Toolsets, len(task.Verify), task.Tags)
		}
		if task.Metadata != nil {
			t.Errorf("%s: unknown keys: %s", task.ID, task.Metadata)
		}
	}
	wants := map[string]int{"research": 60, "steps-1": 12, "steps-2": 12, "steps-3": 12, "steps-4": 12, "steps-5": 12}
	for tag, want := range wants {
		if tags[tag] != want {
			t.Errorf("%d tasks have the tag %s, want %d", tags[tag], tag, want)
		}
	}
	for _, kind := range []string{
		"lookup", "table", "date-arithmetic", "comparison", "chain-of-links", "contradiction", "disambiguation", "counting",
	} {
		if tags[kind] < 3 {
			t.Errorf("%d questions of the kind %s, want at least three", tags[kind], kind)
		}
	}
}

// TestVerifiers holds that a question is passed by its own answer and by no other question's, so that no fixed answer passes two.
func TestVerifiers(t *testing.T) {
	tasks := questions(t)
	passes := func(task *episode.Task, answer string) bool {
		_, mean, err := reward.Verify(t.Context(), task.Verify, reward.Subject{Answer: answer})
		if err != nil {
			t.Fatal(err)
		}
		return mean == 1
	}
	for _, task := range tasks {
		if !passes(task, answer(task)) {
			t.Errorf("%s refuses its own answer %q", task.ID, answer(task))
		}
		dressed, hedged := "**"+strings.ToUpper(answer(task))+"**.", "It is "+answer(task)+" or another."
		if task.Verify[0].Regex != "" && (!passes(task, dressed) || passes(task, hedged)) {
			t.Errorf("%s: the form of the answer decides wrongly", task.ID)
		}
		for _, wrong := range []string{"", " ", "I do not know.", "0", "1", "Corvash", "all of them", "1 Thaw 600"} {
			if passes(task, wrong) {
				t.Errorf("%s accepts %q", task.ID, wrong)
			}
		}
		for _, other := range tasks {
			if other != task && passes(task, answer(other)) {
				t.Errorf("%s accepts the answer of %s, %q", task.ID, other.ID, answer(other))
			}
		}
	}
}

// TestGold plays what can be played without the tools: what a solution opens is there, what it looks for is in it, and a page
// that it opens without a search was linked from one that it had read.
func TestGold(t *testing.T) {
	all := pages(t)
	for _, task := range questions(t) {
		seen, opened, searched := "", 0, false
		for _, step := range task.Gold[:len(task.Gold)-1] {
			for _, call := range step.Calls {
				var arguments struct{ Query, ID, Pattern string }
				if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
					t.Fatal(err)
				}
				page := all[arguments.ID]
				switch call.Name {
				case "search":
					searched = arguments.Query != ""
				case "open":
					if page.ID == "" || !searched && !strings.Contains(seen, "("+page.URL+")") {
						t.Errorf("%s opens %q, which it cannot know", task.ID, arguments.ID)
					}
					opened, searched = opened+1, false
					seen += page.Text
				case "find":
					if !regexp.MustCompile(arguments.Pattern).MatchString(page.Text) {
						t.Errorf("%s: %q finds nothing in %s", task.ID, arguments.Pattern, arguments.ID)
					}
				default:
					t.Errorf("%s calls %s", task.ID, call.Name)
				}
			}
		}
		if want := "steps-" + string(rune('0'+opened)); !slices.Contains(task.Tags, want) {
			t.Errorf("%s opens %d pages, and has the tags %v", task.ID, opened, task.Tags)
		}
	}
}
