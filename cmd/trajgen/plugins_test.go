package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// example is the path of one of the plugins that the manual shows.
func example(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples/plugins", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPluginsOfRunFile plays tasks whose solutions call plugins: one in the sandbox, one on the runner.
func TestPluginsOfRunFile(t *testing.T) {
	t.Setenv("LICENCE_KEY", "licence-1234567890")
	secret := write(t, "secret.sh", `#!/bin/sh
while IFS= read -r request; do
	id=${request#*:}; id=${id%%,*}
	case $request in
	*'"method":"describe"'*) echo '{"id":'$id',"tools":[{"name":"licence","description":"Says whether there is a licence."}]}' ;;
	*) echo "asked with $LICENCE_KEY" >&2; echo '{"id":'$id',"result":{"licensed":'$([ -n "$LICENCE_KEY" ] && echo true || echo false)'}}' ;;
	esac
done
`)
	dataset := write(t, "tasks.jsonl", `{"id":"size","prompt":"How many bytes?","files":{"a.txt":"12345"},"verify":{"exact":"5"},"gold":[{"tool_calls":[{"name":"workspace_size","arguments":{}}]},{"content":"5"}]}
{"id":"licence","prompt":"Is there a licence?","verify":{"exact":"yes"},"gold":[{"tool_calls":[{"name":"licence","arguments":{}}]},{"content":"yes"}]}`)
	file := write(t, "run.yaml", fmt.Sprintf(`dataset: {path: %s}
scripted: {policy: oracle}
tools:
  plugins:
    - name: workspace
      command: [./workspace.sh]
      files: [%s]
    - name: licence
      command: [sh, secret.sh]
      files: [%s]
      where: runner
      env_from: [LICENCE_KEY]
`, dataset, example(t, "workspace.sh"), secret))
	dir := filepath.Join(t.TempDir(), "run")
	run := succeed(t, "run", "-f", file, "--out", dir)
	if !strings.Contains(run.errOut, "plugin licence runs on this machine") {
		t.Errorf("no word of the plugin outside of the sandboxes: %s", run.errOut)
	}
	for _, ep := range episodes(t, dir) {
		want := map[string]string{"size": `{"files":1,"bytes":5}`, "licence": `{"licensed":true}`}[ep.Key.Task]
		if ep.Outcome != episode.Success || len(ep.Calls) != 1 || ep.Calls[0].Result != want {
			t.Errorf("%s: %s, calls %+v", ep.Key.Task, ep.Outcome, ep.Calls)
		}
		if onRunner := ep.Key.Task == "licence"; len(ep.Calls) == 1 && (ep.Calls[0].Runner != onRunner || ep.Sandbox.Opened == onRunner) {
			t.Errorf("%s: on the runner %v, sandbox opened %v", ep.Key.Task, ep.Calls[0].Runner, ep.Sandbox.Opened)
		}
	}
	keyless(t, dir, "licence-1234567890")
	succeed(t, "check", "-f", file, "--quiet")

	succeed(t, "run", "--resume", "--out", dir, "--samples", "2", "--quiet")
	text, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, append(text, "# changed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := trajgen(t, "run", "--resume", "--out", dir, "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "plugins: was") {
		t.Errorf("resumed with another plugin: exit code %d: %s", got.code, got.errOut)
	}
}

// TestPluginFlag tries plugins without a run file.
func TestPluginFlag(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.csv"), []byte("n\n1\n3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	declared := write(t, "csv.yaml", fmt.Sprintf("name: csv\ncommand: [python3, csv_tools.py]\nfiles: [%s]\ntoolset: tables\n", example(t, "csv_tools.py")))
	flags := []string{"--plugin", example(t, "workspace.sh"), "--plugin", declared}
	for _, backend := range []string{"native", "local"} {
		got := succeed(t, append([]string{"tools", "call", "csv_summary", `{"path":"a.csv","column":"n"}`, "--workspace", workspace, "--sandbox", backend}, flags...)...)
		result := lines[resultLine](t, got.out)[0]
		if result.Status != episode.CallOK || result.Toolset != "tables" || !strings.Contains(result.Result, `"mean":2.0`) || result.SandboxUS == 0 {
			t.Errorf("%s: %+v", backend, result)
		}
	}
	if got := succeed(t, append([]string{"toolsets", "resolve", "tables", "plugin-workspace"}, flags...)...).out; got != "csv_columns\ncsv_summary\nworkspace_size\n" {
		t.Errorf("resolve: %q", got)
	}
	var schemas []struct{ Function struct{ Name string } }
	if err := json.Unmarshal([]byte(succeed(t, append([]string{"tools", "schema", "workspace_size", "csv_columns"}, flags...)...).out), &schemas); err != nil || len(schemas) != 2 {
		t.Errorf("schemas %+v, %v", schemas, err)
	}
	for _, line := range []string{"tools list", "toolsets list"} {
		if got := succeed(t, append(strings.Fields(line), flags...)...).out; !strings.Contains(got, "workspace_size") {
			t.Errorf("%s: %s", line, got)
		}
	}
	dataset := write(t, "d.jsonl", `{"prompt":"x","gold":[{"tool_calls":[{"name":"workspace_size","arguments":{}}]},{"content":"x"}],"verify":{"exact":"x"}}`)
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--policy", "oracle", "--toolsets", "plugin-workspace", "--out", dir, "--quiet", "--plugin", example(t, "workspace.sh")}
	succeed(t, args...)
	succeed(t, append(args, "--resume", "--samples", "2")...)
	if all := episodes(t, dir); len(all) != 2 || all[1].Calls[0].Status != episode.CallOK {
		t.Errorf("episodes %+v", all)
	}
}

// TestBadPlugins holds what a user is told before anything is started.
func TestBadPlugins(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"key", "tools: {plugins: [{name: a, commnd: [a]}]}", "commnd is not a key of tools.plugins[0] (did you mean \"command\"?)"},
		{"no command", "tools: {plugins: [{name: a}]}", "no command"},
		{"no file", "tools: {plugins: [{name: a, command: [sh], files: [/no/such]}]}", "/no/such"},
		{"where", "tools: {plugins: [{name: a, command: [sh], where: host}]}", "sandbox or runner"},
		{"quits", "tools: {plugins: [{name: a, command: [sh, -c, 'echo no licence >&2; exit 4']}]}", "no licence"},
		{"hides a tool", "tools: {plugins: [{name: a, command: [sh, -c, 'read r; echo \"$0\"', '{\"id\":1,\"tools\":[{\"name\":\"read_file\",\"description\":\"x\"}]}']}]}", "read_file"},
		{"no variable", "tools: {plugins: [{name: a, command: [sh], where: runner, env_from: [NO_SUCH_VARIABLE]}]}", "NO_SUCH_VARIABLE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, "run.yaml", tt.give)
			for _, args := range [][]string{
				{"run", "--dataset", "bundled", "--policy", "oracle", "--max-tasks", "1", "-f", file, "--out", filepath.Join(t.TempDir(), "run")},
				{"tools", "list", "-f", file},
			} {
				if got := here(t, args...); got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
					t.Errorf("%v: exit code %d: %s, want %q", args, got.code, got.errOut, tt.want)
				}
			}
		})
	}
}
