package faults

import (
	"encoding/json"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// arguments are the call's arguments.
func (s *strike) arguments() map[string]any {
	var args map[string]any
	_ = json.Unmarshal(s.call.Trace.Arguments, &args) // they fit the schema
	return args
}

// words are what the tool says of the fault's class, as its family words such trouble.
func words(s *strike) (string, error) {
	t, class, args := s.call.Tool, s.fault.class.name, s.arguments()
	server, isMCP := strings.CutPrefix(t.Outside, "mcp ")
	plugin, isPlugin := strings.CutPrefix(t.Outside, "plugin ")
	switch {
	case t.Name == "terminal":
		return shellWords(s, class)
	case t.Toolset == "file":
		return "", fileWords(t.Name, class, args)
	case isMCP:
		return "", mcpWords(server, t.Name, class)
	case isPlugin:
		return "", pluginWords(plugin, class)
	case t.Outside != "":
		return "", webWords(t.Outside, class)
	case class == "rate_limited":
		return "", registry.Failf("error", "%s: too many requests (status 429); retry after 20 s", t.Name)
	case class == "auth_expired":
		return "", registry.Failf("error", "%s: the key is no longer valid (status 401)", t.Name)
	case class == "error_permanent":
		return "", fmt.Errorf("%s", "operation not permitted")
	}
	return "", fmt.Errorf("%s", "resource temporarily unavailable")
}

// shellWords are what bash says when it cannot start a process. Such a command ends with 254.
func shellWords(s *strike, class string) (string, error) {
	output := "bash: fork: Cannot allocate memory"
	if class == "error_transient" {
		output = strings.Repeat("bash: fork: retry: Resource temporarily unavailable\n", 4) + "bash: fork: Resource temporarily unavailable"
	}
	s.env.ExitCode = new(254)
	text, err := json.Marshal(struct {
		Output string  `json:"output"`
		Code   int     `json:"exit_code"`
		Error  *string `json:"error"`
	}{output, 254, nil})
	return string(text), err
}

// fileWords are errno's, as the file tools word it.
func fileWords(tool, class string, args map[string]any) error {
	doing := "read"
	switch tool {
	case "write_file", "patch":
		doing = "write"
	case "search_files":
		doing = "search"
	}
	path, _ := args["path"].(string)
	if path == "" {
		path = "."
	}
	switch {
	case class != "error_permanent":
		return registry.Failf("io", "cannot %s %s: resource temporarily unavailable", doing, path)
	case doing == "write":
		return registry.Failf("io", "cannot %s %s: read-only file system", doing, path)
	}
	return registry.Failf("permission", "cannot %s %s: permission denied", doing, path)
}

func mcpWords(server, tool, class string) error {
	switch class {
	case "rate_limited":
		return registry.Failf("tool_error", "mcp server %s: Too Many Requests; retry after 20 s", server)
	case "auth_expired":
		return registry.Failf("tool_error", "mcp server %s: Unauthorized", server)
	case "error_permanent":
		return registry.Failf("tool_error", "mcp server %s: Internal error", server)
	}
	return &registry.Failure{
		Class: "mcp_down", Status: episode.CallUnavailable,
		Message: fmt.Sprintf("mcp server %s is not there: killed by signal 9 during %s; it is started anew for the next call", server, tool),
	}
}

func pluginWords(plugin, class string) error {
	switch class {
	case "rate_limited":
		return registry.Failf("plugin_error", "429 Too Many Requests; retry after 20 s")
	case "auth_expired":
		return registry.Failf("plugin_error", "401 Unauthorized")
	case "error_permanent":
		return registry.Failf("plugin_error", "500 Internal Server Error")
	}
	return registry.Failf("plugin_crashed", "plugin %s: killed by signal 9 before it answered; it is started anew for the next call", plugin)
}

// webWords are what a provider's client says of a status.
func webWords(of, class string) error {
	failure := &registry.Failure{Class: "unavailable", Status: episode.CallUnavailable, Extra: map[string]any{"success": false}}
	says := "it has too much to do, or failed (status 503): Service Unavailable"
	switch class {
	case "rate_limited":
		says = "it has too much to do, or failed (status 429): Too Many Requests; retry after 20 s"
	case "auth_expired":
		failure.Class, says = "refused", "it refuses the key (status 401): Unauthorized"
	case "error_permanent":
		says = "it has too much to do, or failed (status 500): Internal Server Error"
	}
	failure.Message = of + ": " + says
	return failure
}

// tooLate is what the tool says when its time is up. The terminal has a limit of its own, in its arguments.
func tooLate(t *registry.Tool, args map[string]any) *registry.Failure {
	if t.Name != "terminal" {
		return t.Late()
	}
	seconds, ok := args["timeout"].(float64)
	if !ok {
		seconds = 180
	}
	return &registry.Failure{
		Class: "timeout", Status: episode.CallTimeout,
		Message: fmt.Sprintf("the command did not end within %.0f s and was killed; give it a longer timeout (at most 600) or background=true", seconds),
		Extra:   map[string]any{"output": fmt.Sprintf("[Command timed out after %.0fs]", seconds), "exit_code": 124},
	}
}
