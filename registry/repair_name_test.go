package registry_test

import (
	"context"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// TestNameOfMissingTool is about a slip in the name of a tool that cannot be had: that is what the model is told.
func TestNameOfMissingTool(t *testing.T) {
	s := session(t, registry.SessionConfig{}, member("read_file", "file"))
	for give, want := range map[string]string{"web_serch": "web_search", "vision_analyse": "vision_analyze", "compute": "", "web": ""} {
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: give, Arguments: "{}"})
		if want == "" && got.Status != episode.CallUnknownTool || want != "" && (got.Status != episode.CallUnavailable || got.Name != want) {
			t.Errorf("%q is %s: %s", give, got.Name, got.Status)
		}
	}
}

func TestNameRepair(t *testing.T) {
	var tools []registry.Tool
	for _, name := range []string{
		"read_file", "write_file", "patch", "search_files", "terminal", "process", "web_search", "web_extract", "todo",
		"session_search", "execute_code", "memory", "clarify", "browser_click",
	} {
		tools = append(tools, toolOf(registry.Definition{Name: name, Toolset: "test"},
			func(context.Context, *registry.Env) (any, error) { return none{}, nil }))
	}
	s := session(t, registry.SessionConfig{}, tools...)
	tests := map[string]string{ // as written → tool, "" for none
		"Read_File": "read_file", "read-file": "read_file", "read file": "read_file", "readFile": "read_file",
		"functions.web_search": "web_search", "web-search": "web_search", "WebSearchTool": "web_search",
		"WebSearch_tool": "web_search", "TodoTool_tool": "todo", "web_serch": "web_search", "websearchh": "web_search",
		`read_file">`: "read_file", "terminal<|channel|>commentary": "terminal", "`todo`": "todo",
		"read_file\n{\"path\"": "read_file", "terminal({": "terminal", "execute_cod": "execute_code", "brower_click": "browser_click", "searchFile": "search_files",

		"execute_command": "", "exec_code": "", "search": "", "write_file_dry_run": "", "run_terminal": "", "read_dile": "",
		"bash": "", "grep": "", "web_searchweb_search": "", "edit_file": "", "create_file": "", "delete_file": "",
		"remove_file": "", "": "", "x": "", "tool": "", "<>": "", "ls": "", "str_replace_editor": "", "python": "", "web": "",
		"file": "", strings.Repeat("read_file", 1000): "", "finish": "", "submit": "",
	}
	for give, want := range tests {
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: give, Arguments: "{}"})
		if want == "" {
			if got.Status != episode.CallUnknownTool || !strings.Contains(got.Result, "available tools: browser_click, ") {
				t.Errorf("%q is %s: %s %s", give, got.Name, got.Status, got.Result)
			}
			continue
		}
		if got.Name != want || got.Status != episode.CallOK || len(got.Coerced) != 1 || got.Coerced[0] != "name:"+give {
			t.Errorf("%q is %s, want %s: %s, coerced %q", give, got.Name, want, got.Status, got.Coerced)
		}
	}
}

// TestLikeNameIsSuggested is about names of other tools: nothing else runs in their place.
func TestLikeNameIsSuggested(t *testing.T) {
	s := session(t, registry.SessionConfig{}, member("execute_code", "x"), member("search_files", "x"), member("write_file", "x"),
		member("read_file", "x"))
	for give, want := range map[string]string{
		"execute_command": "execute_code", "search": "search_files", "write_file_dry_run": "write_file", "read_dile": "read_file", "bash": "",
	} {
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: give, Arguments: "{}"})
		if hint := `(did you mean \"` + want + `\"?)`; got.Status != episode.CallUnknownTool || strings.Contains(got.Result, "did you mean") != (want != "") ||
			want != "" && !strings.Contains(got.Result, hint) {
			t.Errorf("%q is %s: %s %s", give, got.Name, got.Status, got.Result)
		}
	}
}
