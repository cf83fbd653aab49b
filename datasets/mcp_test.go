package datasets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
)

// TestMCPServers reads the servers that tasks name and declare. A declaration is part of what identifies a task.
func TestMCPServers(t *testing.T) {
	type has struct {
		Names   []string
		Servers string
	}
	const notes = `{"notes": {"command": ["python3", "n.py"]}}`
	ids := map[string]string{}
	for give, want := range map[string]any{
		`["a", "b"]`:                 has{[]string{"a", "b"}, ""},
		`"a, b"`:                     has{[]string{"a", "b"}, ""},
		`{"servers": ` + notes + `}`: has{nil, notes},
		`{"servers": ` + notes + `, "run": ["a"]}`:   has{[]string{"a"}, notes},
		`"{\"servers\": {\"x\": {\"url\": \"u\"}}}"`: has{nil, `{"x": {"url": "u"}}`},
		`{"run": ["a"]}`:     has{[]string{"a"}, ""},
		`{"server": {}}`:     `mcp.server: unknown key, did you mean "servers"? (have run, servers)`,
		`{"servers": ["x"]}`: "mcp.servers: a list, want an object",
		`5`:                  "mcp: a number, want a list of strings, or an object with run, servers",
	} {
		source := open(t, write(t, "tasks.jsonl", `{"prompt": "a", "mcp": `+give+`}`), datasets.Options{})
		for task, err := range source.Tasks(t.Context()) {
			text, wrong := want.(string)
			if wrong {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v, want %s", give, err, text)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", give, err)
			}
			if diff := cmp.Diff(want, has{task.MCP, string(task.Servers)}); diff != "" {
				t.Errorf("%s: %s", give, diff)
			}
			if other, taken := ids[task.ID]; taken && (strings.Contains(give, "servers") || strings.Contains(other, "servers")) {
				t.Errorf("%s and %s are the same task %s", give, other, task.ID)
			}
			ids[task.ID] = give
		}
	}
}
