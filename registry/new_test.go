package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

// saying is a tool whose result tells it from others of its name.
func saying(name, toolset, text string) registry.Tool {
	return toolOf(registry.Definition{Name: name, Toolset: toolset, Description: text},
		func(context.Context, *registry.Env) (any, error) { return text, nil })
}

func overriding(tool registry.Tool) registry.Tool {
	tool.Override = true
	return tool
}

func mustNew(t *testing.T, tools ...registry.Tool) *registry.Registry {
	t.Helper()
	r, err := registry.New(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShadowing(t *testing.T) {
	planned := registry.Planned(registry.Definition{Name: "x", Toolset: "one", Description: "planned"})
	tests := []struct {
		name          string
		first, second registry.Tool
		want          string // description of x, "" when it is refused
		// refusedTogether says that it is refused when both come at once, as nobody can say which is meant.
		refusedTogether bool
	}{
		{"another toolset", saying("x", "one", "a"), saying("x", "two", "b"), "", false},
		{"the same toolset", saying("x", "one", "a"), saying("x", "one", "b"), "b", true},
		{"override", saying("x", "one", "a"), overriding(saying("x", "two", "b")), "b", false},
		{"override of the first", overriding(saying("x", "one", "a")), saying("x", "two", "b"), "", false},
		{"dynamic", saying("x", "mcp-one", "a"), saying("x", "mcp-two", "b"), "b", true},
		{"dynamic of two kinds", saying("x", "mcp-one", "a"), saying("x", "plugin-two", "b"), "b", true},
		{"dynamic over built in", saying("x", "one", "a"), saying("x", "mcp-two", "b"), "", false},
		{"built in over dynamic", saying("x", "mcp-one", "a"), saying("x", "two", "b"), "", false},
		{"over planned", planned, saying("x", "plugin-two", "b"), "b", false},
		{"planned over built", saying("x", "two", "b"), planned, "", false},
	}
	for _, tt := range tests {
		after, err := mustNew(t, tt.first).With(tt.second)
		check := func(r *registry.Registry, err error, want string) {
			t.Helper()
			if want == "" {
				if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "override") {
					t.Errorf("%s: error = %v", tt.name, err)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				return
			}
			if tool, _ := r.Tool("x"); tool.Description != want || len(r.Tools()) != 1 {
				t.Errorf("%s: x is %q of %d tools, want %q", tt.name, tool.Description, len(r.Tools()), want)
			}
		}
		check(after, err, tt.want)
		together := tt.want
		if tt.refusedTogether {
			together = ""
		}
		both, err := registry.New(tt.first, tt.second)
		check(both, err, together)
		both, err = mustNew(t).With(tt.first, tt.second)
		check(both, err, together)
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := registry.New(member("x", "one"), member("x", "two"), registry.Tool{Definition: registry.Definition{Name: "bare"}}, member("tool_call", "mine"),
		member("y", "all"), member("z", "file_tools"))
	for _, part := range []string{`"one"`, `"two"`, `"bare"`, `"tool_call"`, `"all"`, `"file_tools"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error does not name %s: %v", part, err)
		}
	}
}

func TestWith(t *testing.T) {
	before := mustNew(t, member("read_file", "file"), member("one", "mcp-a"))
	after, err := before.With(member("two", "mcp-a"), member("three", "mcp-b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r          *registry.Registry
		name, want string
	}{
		{before, "mcp-a", "one"}, {before, "mcp-b", "unknown"}, {after, "mcp-a", "one two"}, {after, "mcp-b", "three"},
	} {
		got := "unknown"
		if names, err := tt.r.Resolve([]string{tt.name}, nil); err == nil {
			got = strings.Join(names, " ")
		}
		if got != tt.want {
			t.Errorf("%s = %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := len(after.Tools()) - len(before.Tools()); got != 2 {
		t.Errorf("%d more tools, want 2", got)
	}
}

// A plugin for a platform has a preset as the built-in platforms have.
func TestPresetOfAPlugin(t *testing.T) {
	r := mustNew(t, member("send", "plugin-pigeon"))
	got, err := r.Resolve([]string{"hermes-pigeon"}, nil)
	if err != nil || len(got) != 50 || !slices.Contains(got, "send") || !slices.Contains(got, "terminal") {
		t.Errorf("Resolve(hermes-pigeon) = %v, %v", got, err)
	}
	if _, err := r.Resolve([]string{"hermes-owl"}, nil); err == nil {
		t.Error("a preset without a plugin")
	}
	if _, err := r.WithToolsets(map[string]registry.ToolsetDef{"hermes-pigeon": {}}); err == nil {
		t.Error("a toolset took the preset's name")
	}
}

func TestPlanned(t *testing.T) {
	r := mustNew(t, member("read_file", "file"),
		registry.Planned(registry.Definition{Name: "web_search", Toolset: "web", Description: "Search.", RequiresEnv: []string{"KEY"}}))
	if tool, ok := r.Tool("web_search"); !ok || !tool.Planned() || tool.Description != "Search." {
		t.Errorf("Tool = %+v, %v", tool, ok)
	}
	set, err := r.Select([]string{"web", "file"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const reason = "outside of what trajgen is for"
	if diff := cmp.Diff([]string{"read_file"}, set.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if missing := set.Missing(); missing["web_search"] != reason || missing["web_extract"] != reason {
		t.Errorf("missing = %v", missing)
	}
	for _, info := range r.Toolsets() {
		if info.Name == "search" && !(info.Outside && info.Count == 0) || info.Name == "file" && info.Outside {
			t.Errorf("the toolset resolves to %v", info.Resolved)
		}
	}
	s := set.Session(registry.SessionConfig{})
	got := call(t, s, "web_search", `{"query":"x"}`)
	if got.Status != "unavailable" || !strings.Contains(got.Result, reason) {
		t.Errorf("call: %s %s", got.Status, got.Result)
	}
}

// A toolset is made once for each choice of tools.
func TestSelectRemembers(t *testing.T) {
	r := mustNew(t, member("read_file", "x"), member("patch", "y"))
	var sets []*registry.Toolset
	for _, names := range [][]string{{"x"}, {"y"}, {"x"}} {
		set, err := r.Select(names, nil)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	if sets[0] != sets[2] || sets[0] == sets[1] {
		t.Error("the toolset was not remembered")
	}
	if _, err := r.Select([]string{`x" "x`}, nil); err == nil {
		t.Error("two names in one were taken for two")
	}
}

func TestSelectForMany(t *testing.T) {
	var tools []registry.Tool
	for i := range 400 {
		tools = append(tools, member(fmt.Sprintf("tool_%d", i), fmt.Sprintf("mcp-%d", i)))
	}
	r := mustNew(t, tools...)
	for i := range 800 {
		set, err := r.Select([]string{fmt.Sprintf("mcp-%d", i%400)}, nil)
		if err != nil || strings.Join(set.Names(), " ") != fmt.Sprintf("tool_%d", i%400) {
			t.Fatalf("Select %d = %v", i, err)
		}
	}
}
