package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

type issueArgs struct {
	Repository string `json:"repository" doc:"Owner and name."`
	Limit      int    `json:"limit,omitempty" default:"5"`
}

// remote is a registry with core tools and some of a server and a plugin.
func remote(t *testing.T) *registry.Registry {
	t.Helper()
	issue := func(name, toolset, description string) registry.Tool {
		return registry.Define(registry.Definition{Name: name, Toolset: toolset, Description: description},
			func(_ context.Context, env *registry.Env, args issueArgs) (any, error) {
				return map[string]any{"tool": name, "args": args}, nil
			})
	}
	return mustNew(t, member("read_file", "file"), member("terminal", "terminal"),
		issue("mcp_hub_list_issues", "mcp-hub", "List the issues of a repository, newest first."),
		issue("mcp_hub_createIssue", "mcp-hub", "Write down a new bug or wish."),
		issue("weather", "plugin-sky", "The forecast for a place. "+strings.Repeat("long ", 200)))
}

func bridgedSession(t *testing.T, bridge registry.Bridge) *registry.Session {
	t.Helper()
	if err := bridge.Validate(); err != nil {
		t.Fatal(err)
	}
	set, err := remote(t).WithBridge(bridge).Select(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set.Session(registry.SessionConfig{})
}

func TestBridgeActivation(t *testing.T) {
	share := func(pct float64) *float64 { return &pct }
	direct := "mcp_hub_createIssue mcp_hub_list_issues read_file terminal weather"
	bridge := "read_file terminal tool_call tool_describe tool_search"
	tests := []struct {
		name    string
		give    registry.Bridge
		without []string
		want    string
	}{
		{"auto with few", registry.Bridge{}, nil, direct},
		{"off", registry.Bridge{Enabled: "off", ContextWindow: 1, ThresholdPct: share(0)}, nil, direct},
		{"false", registry.Bridge{Enabled: "false"}, nil, direct},
		{"on", registry.Bridge{Enabled: "on"}, nil, bridge},
		{"a small context", registry.Bridge{ContextWindow: 4000}, nil, bridge},
		{"a large one", registry.Bridge{Enabled: "true", ContextWindow: 400_000}, nil, direct},
		{"no threshold", registry.Bridge{Enabled: "auto", ContextWindow: 400_000, ThresholdPct: share(0)}, nil, bridge},
		{"nothing to hide", registry.Bridge{Enabled: "on"}, []string{"mcp-hub", "plugin-sky"}, "read_file terminal"},
		{"one to hide", registry.Bridge{Enabled: "on"}, []string{"mcp-hub"}, bridge},
	}
	for _, tt := range tests {
		set, err := remote(t).WithBridge(tt.give).Select(nil, tt.without)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(set.Names(), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if len(set.Schemas()) != len(set.Names()) {
			t.Errorf("%s: %d schemas of %d tools", tt.name, len(set.Schemas()), len(set.Names()))
		}
	}
}

func TestBridgeValidate(t *testing.T) {
	pct := 101.0
	err := registry.Bridge{Enabled: "maybe", ThresholdPct: &pct, MaxLimit: 51, DefaultLimit: 60, ContextWindow: -1}.Validate()
	for _, part := range []string{"enabled", "threshold_pct", "max_search_limit", "search_default_limit", "context_window"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error does not name %s: %v", part, err)
		}
	}
	for _, good := range []registry.Bridge{{}, {Enabled: "true"}, {MaxLimit: 1}, {MaxLimit: 50, DefaultLimit: 50}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

func TestBridgeSearch(t *testing.T) {
	s := bridgedSession(t, registry.Bridge{Enabled: "on", MaxLimit: 2, DefaultLimit: 1})
	tests := []struct{ args, want string }{
		{`{"query":"issues of a repository","limit":2}`, "mcp_hub_list_issues mcp_hub_createIssue"},
		{`{"query":"issues of a repository"}`, "mcp_hub_list_issues"}, // the default
		{`{"query":"new bug"}`, "mcp_hub_createIssue"},
		{`{"query":"create"}`, "mcp_hub_createIssue"}, // a word of a camelCase name
		{`{"query":"FORECAST"}`, "weather"},
		{`{"query":"weath"}`, "weather"}, // part of a name
		{`{"query":"repository","limit":"2"}`, "mcp_hub_list_issues mcp_hub_createIssue"},
		{`{"query":"sandwich"}`, ""},
	}
	for _, tt := range tests {
		got := call(t, s, "tool_search", tt.args)
		var result struct {
			Query   string
			Total   int `json:"total_available"`
			Matches []struct {
				Name, Source, Description string
				SourceName                string `json:"source_name"`
			}
		}
		if err := json.Unmarshal([]byte(got.Result), &result); err != nil || result.Total != 3 || result.Matches == nil {
			t.Fatalf("%s: %v: %s", tt.args, err, got.Result)
		}
		var names []string
		for _, m := range result.Matches {
			names = append(names, m.Name)
			if len(m.Description) > 404 {
				t.Errorf("%s: a description of %d bytes", tt.args, len(m.Description))
			}
			if source := m.Source + " " + m.SourceName; m.Name == "weather" && source != "plugin sky" || m.Name != "weather" && source != "mcp hub" {
				t.Errorf("%s is of %s", m.Name, source)
			}
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
	for args, class := range map[string]string{
		`{"query":" "}`: "empty_query", `{"query":""}`: "invalid_arguments", `{}`: "invalid_arguments", `{"query":"x","limit":3}`: "invalid_arguments",
	} {
		if got := call(t, s, "tool_search", args); got.ErrorClass != class {
			t.Errorf("%s: class %s, want %s: %s", args, got.ErrorClass, class, got.Result)
		}
	}
}

func TestBridgeDescribe(t *testing.T) {
	s := bridgedSession(t, registry.Bridge{Enabled: "on"})
	want := `{"name":"mcp_hub_createIssue","description":"Write down a new bug or wish.","parameters":{"type":"object",` +
		`"properties":{"repository":{"type":"string","description":"Owner and name."},"limit":{"type":"integer","default":5}},` +
		`"required":["repository"]}}`
	for _, name := range []string{"mcp_hub_createIssue", "mcp_hub_create_issue"} {
		if got := call(t, s, "tool_describe", `{"name":"`+name+`"}`); got.Result != want {
			t.Errorf("%s: %s", name, got.Result)
		}
	}
	for _, name := range []string{"read_file", "tool_call", "nosuch"} {
		if got := call(t, s, "tool_describe", `{"name":"`+name+`"}`); got.Status != episode.CallError || got.ErrorClass != "unknown_tool" {
			t.Errorf("%s: %s %s", name, got.Status, got.Result)
		}
	}
}

func TestBridgedCallsAreUnwrapped(t *testing.T) {
	tests := []struct {
		name, args               string
		tool, raw, given, result string
		status                   episode.CallStatus
		coerced                  []string
		repaired                 bool
	}{
		{name: "an object", args: `{"name":"weather","arguments":{"repository":"a/b", "limit": 7}}`,
			tool: "weather", raw: `{"repository":"a/b","limit":7}`, given: `{"repository":"a/b","limit":7}`, result: `"limit":7`, status: "ok"},
		{name: "a string", args: `{"name":"weather","arguments":"{\"repository\": \"a/b\"}"}`,
			tool: "weather", raw: `{"repository": "a/b"}`, given: `{"repository":"a/b"}`, status: "ok"},
		{name: "coerced", args: `{"name":"weather","arguments":{"repository":"a/b","limit":"7"}}`,
			tool: "weather", raw: `{"repository":"a/b","limit":"7"}`, given: `{"repository":"a/b","limit":7}`, status: "ok", coerced: []string{"limit"}},
		{name: "repaired inside", args: `{"name":"weather","arguments":"{\"repository\":\"a/b\",}"}`,
			tool: "weather", raw: `{"repository":"a/b",}`, given: `{"repository":"a/b"}`, status: "ok", repaired: true},
		{name: "repaired outside", args: `{"name":"weather","arguments":{"repository":"a/b"},}`,
			tool: "weather", raw: `{"repository":"a/b"}`, given: `{"repository":"a/b"}`, status: "ok", repaired: true},
		{name: "invalid inside", args: `{"name":"weather","arguments":{"limit":7}}`,
			tool: "weather", raw: `{"limit":7}`, given: `{"limit":7}`, status: "invalid_arguments", result: "repository"},
		{name: "no arguments", args: `{"name":"weather"}`, tool: "weather", raw: `{}`, given: `{}`, status: "invalid_arguments", result: "repository"},
		{name: "another spelling", args: `{"name":"Weather","arguments":{"repository":"a/b"}}`, tool: "weather",
			raw: `{"repository":"a/b"}`, given: `{"repository":"a/b"}`, status: "ok"},
		{name: "coerced outside", args: `"{\"name\":\"weather\",\"arguments\":{\"repository\":\"a/b\"}}"`, tool: "weather",
			raw: `{"repository":"a/b"}`, given: `{"repository":"a/b"}`, status: "ok", coerced: []string{"tool_call:$"}},
		{name: "unknown", args: `{"name":"nosuch","arguments":{}}`, tool: "nosuch", raw: `{}`, status: "unknown_tool"},
	}
	for _, tt := range tests {
		s := bridgedSession(t, registry.Bridge{Enabled: "on"})
		got := call(t, s, "tool_call", tt.args)
		if got.Name != tt.tool || got.Via != "tool_call" || got.Status != tt.status || got.RawArguments != tt.raw ||
			string(got.Arguments) != tt.given || got.Repaired != tt.repaired || !strings.Contains(got.Result, tt.result) {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if tt.coerced != nil && !slices.Equal(got.Coerced, tt.coerced) {
			t.Errorf("%s: coerced %v", tt.name, got.Coerced)
		}
		if got.Status == "ok" && got.Toolset != "plugin-sky" {
			t.Errorf("%s: toolset %s", tt.name, got.Toolset)
		}
		if diff := cmp.Diff([]episode.ToolCall{got}, s.Trace()); diff != "" {
			t.Errorf("%s: trace (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBridgeRefuses(t *testing.T) {
	s := bridgedSession(t, registry.Bridge{Enabled: "on"})
	for args, class := range map[string]string{
		`{"name":"read_file","arguments":{}}`:   "not_hidden",
		`{"name":"tool_call","arguments":{}}`:   "not_hidden",
		`{"name":"tool_search","arguments":{}}`: "not_hidden",
		`{"arguments":{}}`:                      "invalid_arguments",
		`{"name":["weather"]}`:                  "invalid_arguments",
		`{"name":"weather","repository":"a/b"}`: "invalid_arguments",
		`nonsense`:                              "invalid_arguments",
	} {
		got := call(t, s, "tool_call", args)
		if got.ErrorClass != class || got.Name != "tool_call" || got.Via != "" || got.Status != episode.CallInvalidArguments {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := call(t, s, "weather", `{"repository":"x"}`); got.Status != episode.CallOK || got.Via != "" {
		t.Errorf("a hidden tool that is called by its name: %+v", got)
	}
	set, err := remote(t).WithBridge(registry.Bridge{Enabled: "on"}).Select([]string{"file", "mcp-hub"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s = set.Session(registry.SessionConfig{})
	if got := call(t, s, "tool_call", `{"name":"weather","arguments":{"repository":"x"}}`); got.Status != episode.CallUnknownTool {
		t.Errorf("a tool of another toolset: %+v", got)
	}
	s = bridgedSession(t, registry.Bridge{})
	if got := call(t, s, "tool_call", `{"name":"weather","arguments":{}}`); got.Status != episode.CallUnknownTool || got.Name != "tool_call" {
		t.Errorf("without a bridge: %+v", got)
	}
}

// Bridged calls of one turn keep their order, as they have the access of the tool that they lead to.
func TestBridgeInParallel(t *testing.T) {
	s := bridgedSession(t, registry.Bridge{Enabled: "on"})
	var reqs []registry.Request
	for i := range 10 {
		reqs = append(reqs, registry.Request{ID: fmt.Sprint("call_", i), Index: i, Name: "tool_call",
			Arguments: fmt.Sprintf(`{"name":"weather","arguments":{"repository":"%d"}}`, i)})
	}
	for i, got := range s.CallAll(t.Context(), reqs) {
		if got.Status != episode.CallOK || !strings.Contains(got.Result, fmt.Sprintf(`"repository":"%d"`, i)) {
			t.Errorf("call %d: %+v", i, got)
		}
	}
}

func FuzzBridge(f *testing.F) {
	f.Add(`{"name":"weather","arguments":{"repository":"x"}}`)
	f.Add(`{"name":"weather","arguments":"{\"repository\":1,}"}`)
	f.Add(`{"name":"tool_call","arguments":{"name":"tool_call"}}`)
	tool := registry.Define(registry.Definition{Name: "weather", Toolset: "plugin-sky"},
		func(_ context.Context, _ *registry.Env, args issueArgs) (any, error) { return args, nil })
	r, err := registry.New(tool)
	if err != nil {
		f.Fatal(err)
	}
	set, err := r.WithBridge(registry.Bridge{Enabled: "on"}).Select(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := set.Session(registry.SessionConfig{})
		for _, name := range []string{"tool_call", "tool_search", "tool_describe"} {
			got := s.Call(t.Context(), registry.Request{ID: "x", Name: name, Arguments: text})
			if !json.Valid([]byte(got.Result)) || s.Fault() != nil {
				t.Errorf("%s(%q): %s, fault %v", name, text, got.Result, s.Fault())
			}
		}
	})
}
