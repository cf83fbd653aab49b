package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

func TestToolsetsResolve(t *testing.T) {
	const files = "patch read_file search_files write_file"
	tests := []struct{ args, want string }{
		{"file", files},
		{"web vision web", "vision_analyze web_extract web_search"},
		{"debugging --disable file", "process terminal web_extract web_search"},
		{"debugging --disable file,web", "process terminal"},
		{"hermes-webhook", "clarify vision_analyze web_extract web_search"},
		{"file_tools --disable patch", "read_file search_files write_file"},
		{"context_engine", ""},
		{"spotify", ""},
		{"terminal", "process terminal"},
		{"all --disable *", ""},
	}
	for _, tt := range tests {
		args := append([]string{"toolsets", "resolve"}, strings.Fields(tt.args)...)
		if got := succeed(t, args...).out; strings.Join(strings.Fields(got), " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
		var names []string
		if err := json.Unmarshal([]byte(succeed(t, append(args, "--json")...).out), &names); err != nil || names == nil ||
			strings.Join(names, " ") != tt.want {
			t.Errorf("%s --json: %v, %v", tt.args, names, err)
		}
	}
	for _, all := range []string{"all", "*"} {
		if got := strings.Fields(succeed(t, "toolsets", "resolve", all).out); len(got) < 40 || !slices.IsSorted(got) || slices.Contains(got, "spotify_search") {
			t.Errorf("%s: %d tools", all, len(got))
		}
	}
	got := trajgen(t, "toolsets", "resolve", "Web", "file", "terminl", "--disable", "nosuch", "--json")
	if got.code != exitUsage || got.out != "" {
		t.Errorf("exit code %d, stdout %q", got.code, got.out)
	}
	for _, part := range []string{`"Web" (did you mean "web"?)`, `"terminl" (did you mean "terminal"?)`, `"nosuch"`} {
		if !strings.Contains(got.errOut, part) {
			t.Errorf("stderr does not say %s: %s", part, got.errOut)
		}
	}
}

func TestToolsetsOfARunFile(t *testing.T) {
	path := writeRunFile(t, `
tools:
  custom_toolsets:
    mine: {tools: [read_file, web_search], includes: [todo, yours]}
    yours: {tools: [terminal], includes: [mine]}
`)
	if got := succeed(t, "toolsets", "resolve", "mine", "--disable", "todo", "-f", path).out; got != "read_file\nterminal\nweb_search\n" {
		t.Errorf("mine: %q", got)
	}
	path = writeRunFile(t, "tools: {custom_toolsets: {mine: {tools: [read_fil], includes: [fil]}, file: {}}}\n")
	got := trajgen(t, "toolsets", "resolve", "mine", "-f", path)
	for _, part := range []string{`"read_fil" (did you mean "read_file"?)`, `"fil" (did you mean "file"?)`, `"file" exists already`} {
		if got.code != exitUsage || !strings.Contains(got.errOut, part) {
			t.Errorf("exit code %d, stderr does not say %s: %s", got.code, part, got.errOut)
		}
	}
}

func writeRunFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestListsSayWhatIsUnavailable(t *testing.T) {
	var tools []struct {
		Name, Toolset, Description, Reason string
		Available, Planned                 bool
		RequiresEnv                        []string `json:"requires_env"`
		MaxResultBytes                     int      `json:"max_result_bytes"`
	}
	if short, long := succeed(t, "tools", "list").out, succeed(t, "tools", "list", "--all").out; strings.Contains(short, "outside of what") || !strings.Contains(short, "unavailable: it needs models, in the run file as moa: {") || !strings.Contains(short, "terminal ") || !strings.Contains(long, "outside of what") {
		t.Errorf("tools list:\n%s\nwith --all:\n%s", short, long)
	}
	if err := json.Unmarshal([]byte(succeed(t, "tools", "list", "--json").out), &tools); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, tool := range tools {
		if tool.Available != (tool.Reason == "") || tool.Toolset == "" || tool.Description == "" || tool.RequiresEnv == nil || tool.MaxResultBytes < 1000 {
			t.Errorf("%+v", tool)
		}
		switch {
		case tool.Name == "x_search" && (!tool.Planned || tool.Reason != "outside of what trajgen is for"),
			tool.Name == "mixture_of_agents" && !strings.Contains(tool.Reason, "moa: {references"),
			tool.Name == "video_generate" && !strings.Contains(tool.Reason, "media: {video: fal}"),
			(tool.Name == "read_file" || tool.Name == "ha_get_state" || tool.Name == "send_message") && !tool.Available:
			t.Errorf("%+v", tool)
		}
		if !tool.Planned {
			seen = append(seen, tool.Name)
		}
	}
	if want := strings.Fields(succeed(t, "toolsets", "resolve", "all").out); !slices.Equal(seen, want) {
		t.Errorf("tools list (-resolve all +list):\n%s", cmp.Diff(want, seen))
	}
	var sets []struct {
		Name           string
		Available      bool
		Outside        bool
		ResolvedTools  []string          `json:"resolved_tools"`
		AvailableTools []string          `json:"available_tools"`
		Unavailable    map[string]string `json:"unavailable_tools"`
		Count          int               `json:"tool_count"`
		Composite      bool              `json:"is_composite"`
	}
	if err := json.Unmarshal([]byte(succeed(t, "toolsets", "list", "--json").out), &sets); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		if set.Count != len(set.ResolvedTools) || set.Count != len(set.AvailableTools)+len(set.Unavailable) || set.Available != (len(set.AvailableTools) > 0) {
			t.Errorf("%+v", set)
		}
		if set.Name == "moa" && set.Available || set.Name == "spotify" && !set.Outside || set.Name == "coding" && !set.Available || set.Name == "safe" && !(set.Composite && len(set.Unavailable) == 0) {
			t.Errorf("%+v", set)
		}
	}
	if got := succeed(t, "tools", "call", "x_search", `{"query":"x"}`, "--sandbox", "local").out; !strings.Contains(got, `"status":"unavailable"`) ||
		!strings.Contains(got, "outside of what trajgen is for") {
		t.Errorf("call: %s", got)
	}
	if got := trajgen(t, "tools", "schema", "x_search"); got.code != exitUsage || !strings.Contains(got.errOut, "outside of what trajgen is for") {
		t.Errorf("schema: exit code %d: %s", got.code, got.errOut)
	}
}

func TestSchemasOfAModel(t *testing.T) {
	plain := succeed(t, "tools", "schema", "read_file").out
	if got := succeed(t, "tools", "schema", "read_file", "--model", "google/gemini-3-pro").out; got == plain || strings.Contains(got, `"default"`) {
		t.Errorf("for a model with quirks: %s", got)
	}
	path := writeRunFile(t, "model: {name: gemini-3-pro}\ntools: {schema_quirks: [none]}\n")
	if got := succeed(t, "tools", "schema", "read_file", "-f", path).out; got != plain {
		t.Errorf("without quirks: %s", got)
	}
	path = writeRunFile(t, "tools: {schema_quirks: [keywords]}\n")
	if got := succeed(t, "tools", "schema", "read_file", "-f", path, "--model", "gpt-5").out; strings.Contains(got, `"default"`) {
		t.Errorf("with quirks of the run file: %s", got)
	}
}

// A call that came through the bridge is in the trace as a call of the tool that ran.
func TestBridgeInARun(t *testing.T) {
	dataset := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(dataset, []byte(`{"id":"size","prompt":"How many bytes?","files":{"a.txt":"12345"},"verify":{"exact":"5"},`+
		`"gold":[{"tool_calls":[{"name":"tool_search","arguments":{"query":"bytes"}}]},`+
		`{"tool_calls":[{"name":"tool_call","arguments":{"name":"workspace_size","arguments":{}}}]},{"content":"5"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	succeed(t, "run", "-f", writeRunFile(t, "tools: {tool_search: on}\n"), "--plugin", example(t, "workspace.sh"), "--dataset", dataset,
		"--policy", "oracle", "--sandbox", "local", "--out", dir, "--quiet")
	ep := episodes(t, dir)[0]
	if len(ep.Calls) != 2 || ep.Outcome != "success" {
		t.Fatalf("%s with %d calls: %+v", ep.Outcome, len(ep.Calls), ep.Calls)
	}
	if c := ep.Calls[0]; c.Name != "tool_search" || c.Toolset != "bridge" || !strings.Contains(c.Result, `"workspace_size"`) {
		t.Errorf("search: %+v", c)
	}
	if c := ep.Calls[1]; c.Name != "workspace_size" || c.Toolset != "plugin-workspace" || c.Via != "tool_call" || c.RawArguments != "{}" ||
		!strings.Contains(c.Result, `"bytes":5`) {
		t.Errorf("call: %+v", c)
	}
	shown := string(slices.Concat(ep.Tools...))
	if strings.Contains(shown, "workspace_size") || !strings.Contains(shown, `"tool_call"`) {
		t.Errorf("the model was shown %s", shown)
	}
	if m := ep.Messages[len(ep.Messages)-3]; len(m.Calls) != 1 || m.Calls[0].Name != "tool_call" {
		t.Errorf("the model's message became %+v", m)
	}
}

func TestRunFileOfTheBridge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tool_search: on":                                     "",
		"tool_search: true":                                   "",
		"tool_search: {enabled: off}":                         "",
		"tool_search: {enabled: true, threshold_pct: 0}":      "",
		"tool_search: maybe":                                  "auto, on or off",
		"tool_search: {enabld: on}":                           "is not a key of tools.tool_search",
		"tool_search: {threshold_pct: 200}":                   "from 0 to 100",
		"tool_search: {max_search_limit: 51}":                 "from 1 to 50",
		"tool_search: {search_default_limit: 30}":             "max_search_limit, which is 20",
		"schema_quirks: [patern]":                             `did you mean "pattern"?`,
		"toolsets: [x_search, spotify]":                       "x_search: outside of what trajgen is for",
		"toolsets: [terminal], disabled_toolsets: [terminal]": "leave no tool",
	} {
		path := writeRunFile(t, "dataset: {path: bundled, max_tasks: 1}\nscripted: {policy: oracle}\nsandbox: {backend: local}\ntools: {"+text+"}\n")
		got := trajgen(t, "run", "-f", path, "--out", filepath.Join(t.TempDir(), "out"), "--quiet")
		if want == "" && got.code != 0 || want != "" && (got.code != exitUsage || !strings.Contains(got.errOut, want)) {
			t.Errorf("%s: exit code %d, want %q: %s", text, got.code, want, got.errOut)
		}
	}
}

// TestWithoutTools is about an empty list of toolsets, which is a choice and not the lack of one.
func TestWithoutTools(t *testing.T) {
	for name, tt := range map[string]struct{ row, file, flag string }{
		"run file": {file: "tools: {toolsets: []}\n"}, "row": {row: `, "toolsets": []`}, "flag": {flag: "none"},
		"row beside a run's": {row: `, "toolsets": "none"`, file: "tools: {toolsets: [terminal]}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dataset := write(t, "tasks.jsonl", `{"prompt": "2 + 2?", "gold": "4", "verify": {"exact": "4"}`+tt.row+"}\n")
			file := writeRunFile(t, "dataset: {path: "+dataset+"}\nscripted: {policy: oracle}\nsandbox: {backend: local}\n"+tt.file)
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"run", "-f", file, "--out", out, "--quiet"}
			if tt.flag != "" {
				args = append(args, "--toolsets", tt.flag)
			}
			succeed(t, args...)
			all := episodes(t, out)
			if len(all) != 1 || len(all[0].Tools) != 0 || all[0].Outcome != episode.Success {
				t.Errorf("%d episodes, the first with tools %s: %s", len(all), all[0].Tools, all[0].Outcome)
			}
			succeed(t, "run", "--resume", "--out", out, "--quiet")
		})
	}
}

func TestDoctorKnowsWhatToolsNeed(t *testing.T) {
	said := map[string]string{}
	survey, err := setup.Examine(run.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range survey.Findings() {
		said[f.What] = f.Detail
	}
	if !strings.Contains(said["toolset moa"], "moa: {references") || !strings.Contains(said["toolset video_gen"], "media: {video: fal}") {
		t.Errorf("%v", said)
	}
}
