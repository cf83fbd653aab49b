package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"trajgen/tools/mcp"
)

// TestOfTask holds what a task may declare: a stranger wrote it, so it has nothing of the runner's.
func TestOfTask(t *testing.T) {
	run := mcp.Settings{Servers: map[string]mcp.Server{"ours": {Command: []string{"x"}}}, TaskHosts: []string{"tickets.example", "localhost:8000"}}
	const limits = "only for servers of the run file"
	for give, want := range map[string]string{
		`{"notes": {"command": ["python3", "n.py"], "env": {"LEVEL": "1"}, "timeout": "20s", "tools": {"include": ["read_*"]}, "max_result": 100}}`: "",
		`{"notes": {"url": "https://tickets.example/mcp"}}`:                                                            "",
		`{"notes": {"url": "http://localhost:8000/sse", "transport": "sse"}}`:                                          "",
		`{"notes": {"command": ["x"], "elicitation": {"by": "user"}, "parallel": false}}`:                              "",
		`{"notes": {"url": "http://localhost/mcp"}}`:                                                                   "its host is localhost, and the run file allows tasks no server there (mcp: {task_hosts: [localhost]})",
		`{"notes": {"url": "https://tickets.example.evil/mcp"}}`:                                                       "its host is tickets.example.evil",
		`{"notes": {"url": "http://169.254.169.254/latest"}}`:                                                          "its host is 169.254.169.254",
		`{"ours": {"command": ["x"]}}`:                                                                                 "mcp server ours: the run file declares one of this name",
		`{"notes": {"command": ["x"], "files": ["/etc/passwd"]}}`:                                                      limits,
		`{"notes": {"command": ["x"], "env_allow": ["HOME"]}}`:                                                         limits,
		`{"notes": {"command": ["x"], "shared": true}}`:                                                                limits,
		`{"notes": {"command": ["x"], "sampling": {"max_tokens": 1}}}`:                                                 limits,
		`{"notes": {"command": ["x"], "packages": ["npm:a@1.0.0"]}}`:                                                   limits,
		`{"notes": {"url": "https://tickets.example/mcp", "header_env": {"A": "KEY"}}}`:                                limits,
		`{"notes": {"url": "https://tickets.example/mcp", "oauth": {"client_id_env": "A", "client_secret_env": "B"}}}`: limits,
		`{"notes": {"command": ["npx", "x"]}}`:                                                                         "mcp server notes: [npx x] would fetch a package",
		`{"Notes": {"command": ["x"]}}`:                                                                                `mcp server "Notes": a name is`,
		`{"notes": {"comand": ["x"]}}`:                                                                                 "mcp: servers: ",
		`{"notes": {}}`:                                                                                                "mcp server notes: want a command",
		`{"notes": ["x"]}`:                                                                                             "mcp: servers: ",
		`{` + strings.Repeat(`"a": {"command": ["x"]}, `, 2) + `"b": {"command": ["x"]}}`:                              "mcp: servers: ",
		`{"a": {"command": ["x"]}, "b": {"command": ["x"]}, "c": {"command": ["x"]}, "d": {"command": ["x"]}, "e": {"command": ["x"]}, "f": {"command": ["x"]}, ` +
			`"g": {"command": ["x"]}, "h": {"command": ["x"]}, "i": {"command": ["x"]}, "j": {"command": ["x"]}, "k": {"command": ["x"]}}`: "mcp: 11 servers; at most 10",
	} {
		own, err := run.OfTask(json.RawMessage(give))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", give, err, want)
		}
		if strings.Contains(give, "20s") && own.Servers["notes"].Timeout != 20*time.Second {
			t.Errorf("%s: timeout %s", give, own.Servers["notes"].Timeout)
		}
	}
}
