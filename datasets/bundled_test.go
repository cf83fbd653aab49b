package datasets_test

import (
	"encoding/json"
	"testing"

	"trajgen/datasets"
)

// TestBundled holds what the bundled tasks promise as a set; that each gold scores is checked where sandboxes are.
func TestBundled(t *testing.T) {
	tasks := read(t, datasets.Bundled, datasets.Options{})
	if len(tasks) < 60 {
		t.Errorf("%d bundled tasks, want at least 60", len(tasks))
	}
	golds, long, ids := map[string]int{}, 0, map[string]bool{}
	for _, task := range tasks {
		if ids[task.ID] {
			t.Errorf("%s: the id is there twice", task.ID)
		}
		ids[task.ID] = true
		switch {
		case len(task.ID) < 5 || task.ID[:4] == "sha-":
			t.Errorf("row %d (%q) has no id of its own", task.Row, task.ID)
		case len(task.Gold) < 2 || len(task.Verify) == 0 || len(task.Tags) == 0:
			t.Errorf("%s: %d gold steps, %d checks, %d tags", task.ID, len(task.Gold), len(task.Verify), len(task.Tags))
		case task.Difficulty != "easy" && task.Difficulty != "medium" && task.Difficulty != "hard":
			t.Errorf("%s: difficulty %q, want easy, medium or hard", task.ID, task.Difficulty)
		}
		if task.Metadata != nil {
			t.Errorf("%s: unknown keys: %s", task.ID, task.Metadata)
		}
		if len(task.Gold) > 6 {
			long++
		}
		used := map[string]bool{}
		for _, step := range task.Gold {
			for _, call := range step.Calls {
				used[call.Name] = true
			}
		}
		for tool := range used {
			golds[tool]++
		}
	}
	if long < 5 {
		t.Errorf("%d golds have more than six turns, want several", long)
	}
	for _, tool := range []string{"terminal", "process", "read_file", "write_file", "patch", "search_files", "execute_code", "todo"} {
		if golds[tool] < 3 {
			t.Errorf("%d golds use %s, want at least three", golds[tool], tool)
		}
	}
}

func decodeJSON(t *testing.T, data []byte, target any) {
	t.Helper()
	if err := json.Unmarshal(data, target); err != nil {
		t.Error(err)
	}
}
