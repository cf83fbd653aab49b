package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Bounds of a script.
const (
	codeOutput   = 50_000 // bytes of stdout
	codeErrors   = 10_000 // bytes of stderr
	maxToolCalls = 50
)

// The time limit of a script, and the time between SIGTERM and SIGKILL. They are variables for the tests, which cannot wait
// that long.
var (
	codeTimeout = 300 * time.Second
	codeGrace   = 5 * time.Second
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "execute_code", Toolset: codeToolset,
		Description: describeScripts(scriptTools),
		Describe:    func(have []registry.Tool) string { return describeScripts(allowedIn(have)) },
		Timeout:     codeTimeout + codeGrace + 30*time.Second,
		MaxResult:   8 * codeOutput,
	}, executeCode))
}

type codeArgs struct {
	_ struct{} `idle:"language=python,language=python3"`

	Code string `json:"code" alias:"script,source,source_code,python,python_code" doc:"The Python 3 script." example:"print(1 + 1)"`
}

type codeResult struct {
	Status        string `json:"status"` // always success: a failed script returns a failure
	Output        string `json:"output"`
	ToolCallsMade int    `json:"tool_calls_made"`
}

// codeTool is a tool as a Python function for scripts.
type codeTool struct {
	name   string
	params string // of the function; the call leaves out parameters that are None
	doc    string
}

// python returns the function's name.
func (t codeTool) python() string { return strings.ReplaceAll(t.name, "-", "_") }

var scriptTools = []codeTool{
	{"read_file", "path, offset=None, limit=None", "-> content (NUMBER|TEXT lines), total_lines, file_size, truncated"},
	{"write_file", "path, content, append=None", "-> bytes_written, resolved_path, dirs_created"},
	{"search_files", "pattern, target=None, path=None, file_glob=None, limit=None, offset=None, output_mode=None, context=None, ignore_case=None",
		"-> total_count, matches | files | counts, truncated"},
	{"patch", "path=None, old_string=None, new_string=None, replace_all=None, mode=None, patch=None, expected_replacements=None, dry_run=None", "-> success, diff"},
	{"terminal", "command, timeout=None, workdir=None", "-> output, exit_code, error (foreground only)"},
	{"web_search", "query, limit=None", "-> data.web: title, url, description"},
	{"web_extract", "urls, offset=None", "-> results: url, title, content, next_offset"},
}

// pythonNames returns the names of the functions.
func pythonNames(tools []codeTool) []string {
	names := []string{}
	for _, tool := range tools {
		names = append(names, tool.python())
	}
	return names
}

// allowedIn keeps the script tools that an episode has, and those that allow calls from scripts. An episode without the former
// gives scripts no tools.
func allowedIn(have []registry.Tool) []codeTool {
	var allowed []codeTool
	for _, tool := range scriptTools {
		if slices.ContainsFunc(have, func(t registry.Tool) bool { return t.Name == tool.name }) {
			allowed = append(allowed, tool)
		}
	}
	for _, tool := range have {
		if function, ok := functionOf(tool); ok && !slices.Contains(pythonNames(allowed), function.python()) {
			allowed = append(allowed, function)
		}
	}
	return allowed
}

func describeScripts(allowed []codeTool) string {
	text := "Run a Python 3 script (a fresh process each time) in the terminal's current directory and get " +
		"what it prints. Use it for computations, for processing data, and where many tool calls need loops or conditions " +
		"between them. Limits: 5 minutes, 50,000 bytes of output (cut in the middle). Standard input is empty."
	if len(allowed) == 0 {
		return text
	}
	text += fmt.Sprintf(" At most %d tool calls.\nTools are functions: `from trajgen_tools import %s`. Each returns the "+
		"tool's result as a dict, with \"error\" when it failed:", maxToolCalls, strings.Join(pythonNames(allowed), ", "))
	for _, tool := range allowed {
		text += strings.TrimRight("\n"+tool.python()+"("+tool.params+") "+tool.doc, " ")
	}
	return text + "\nAlso: json_parse(text), shell_quote(text), retry(function, max_attempts=3, delay=2)."
}

func executeCode(ctx context.Context, env *registry.Env, args codeArgs) (any, error) {
	if strings.TrimSpace(args.Code) == "" {
		return nil, registry.Failf("no_code", "No code provided.")
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	allowed := allowedIn(env.Session.Toolset().Tools())
	// Scripts are numbered, so that their paths, which appear in tracebacks, are the same in every run.
	scripts := registry.State(env.Session, "tools.code", func() *atomic.Int64 { return new(atomic.Int64) })
	dir := path.Join(box.Layout().Tmp, fmt.Sprintf("execute_code_%d", scripts.Add(1)))
	defer removeDir(ctx, env, box, dir)
	script := path.Join(dir, "script.py")
	err = box.Files().Write(ctx,
		sandbox.FileWrite{Path: script, Data: []byte(args.Code), Replace: true},
		sandbox.FileWrite{Path: path.Join(dir, "trajgen_tools.py"), Data: pythonModule(allowed), Replace: true})
	if err != nil {
		return nil, fileFailure(err, "write", dir)
	}
	shell := shellOf(env.Session)
	cwd, err := existingDir(ctx, box, shell.directory(box.Layout()))
	if err != nil {
		return nil, err
	}
	stdout, stderr := newCapture(codeOutput, "bytes"), newHead(codeErrors, "bytes")
	command := sandbox.Command{
		Args: []string{"python3", script}, Dir: cwd, Env: codeEnv(shell.exported(), dir, cwd), Socket: true,
		Stdout: stdout, Stderr: stderr,
	}
	server := &toolServer{env: env, allowed: allowed}
	exit, stopped, err := run(ctx, box, command, bounds{codeTimeout, codeGrace}, server.serve)
	failure := &registry.Failure{Extra: map[string]any{"status": "error", "output": stdout.text(), "tool_calls_made": server.calls}}
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil, registry.Failf("no_python", "python3 is not available in this sandbox")
	case err != nil && ctx.Err() != nil && !errors.Is(err, sandbox.ErrGone):
		failure.Extra["status"] = "interrupted"
		return nil, interrupted(ctx, "the script", failure.Extra)
	case err != nil:
		return nil, err
	case errors.Is(stopped, errFlood):
		failure.Class, failure.Message = "output_flood", "the script was killed because it printed more than 64 MiB"
		return nil, failure
	case stopped != nil:
		failure.Class, failure.Status, failure.Extra["status"] = "timeout", episode.CallTimeout, "timeout"
		failure.Message = fmt.Sprintf("the script did not end within %s and was killed", codeTimeout)
		return nil, failure
	}
	env.ExitCode = new(exit.Code)
	if exit.Code == 0 {
		return codeResult{Status: "success", Output: stdout.text(), ToolCallsMade: server.calls}, nil
	}
	failure.Class, failure.Message = "script_failed", cmp.Or(stderr.text(), fmt.Sprintf("Script exited with code %d", exit.Code))
	if meaning := limitsMeaning(exit); meaning != "" {
		failure.Message += "\n(" + meaning + ")"
	}
	return nil, failure
}

// existingDir returns the directory, or its nearest existing parent: the terminal's directory may have been removed.
func existingDir(ctx context.Context, box sandbox.Sandbox, dir string) (string, error) {
	for dir != box.Layout().Workdir && dir != "/" {
		info, err := box.Files().Stat(ctx, dir)
		switch {
		case err == nil && info.Mode.IsDir():
			return dir, nil
		case err != nil && (errors.Is(err, sandbox.ErrGone) || ctx.Err() != nil):
			return "", err
		}
		dir = path.Dir(dir)
	}
	return dir, nil
}

func removeDir(ctx context.Context, env *registry.Env, box sandbox.Sandbox, dir string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	if err := box.Files().Remove(ctx, dir); err != nil {
		env.Logger.Debug("remove a script's directory", "dir", dir, "error", err)
	}
}
