package tools

import (
	"bytes"
	"context"
	_ "embed" // for the checks that run in the sandbox
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
)

// lint is the result of a syntax check of a written file. Nil means that the file is not checked.
type lint struct {
	Status  string `json:"status"`            // ok, error or skipped
	Output  string `json:"output,omitempty"`  // the error
	Message string `json:"message,omitempty"` // why it was skipped, or a note on the status
}

const (
	maxLint       = 1 << 20 // bytes; larger files are not checked
	maxLintOutput = 2000    // characters
	lintTimeout   = 20 * time.Second
)

// checker returns the syntax error of a file's content, or "". An error means that it could not check.
type checker func(ctx context.Context, box sandbox.Sandbox, name string, data []byte) (problem string, err error)

var checkers = map[string]checker{
	".json": here(checkJSON), ".yaml": here(checkYAML), ".yml": here(checkYAML), ".toml": here(checkTOML), ".go": here(checkGo),
	".py": byProgram("python3", "-I", "-S", "-c", pythonCheck), ".pyi": byProgram("python3", "-I", "-S", "-c", pythonCheck),
	".js": checkScript, ".mjs": checkScript, ".cjs": checkScript,
	".ts": checkScript, ".tsx": checkScript, ".mts": checkScript, ".cts": checkScript, ".jsx": checkScript,
	".rs": byProgram("rustfmt", "--quiet", "--edition", "2021", "--emit", "stdout", "--color", "never"),
}

// lintFile checks the new content. It does not report an error that the old content had, too.
func lintFile(ctx context.Context, box sandbox.Sandbox, name string, old, data []byte) *lint {
	check := checkers[strings.ToLower(path.Ext(name))]
	if check == nil || len(data) > maxLint || bytes.Equal(old, data) && len(data) == 0 {
		return nil
	}
	problem, err := check(ctx, box, name, data)
	switch {
	case err != nil:
		return &lint{Status: "skipped", Message: err.Error()}
	case problem == "":
		return &lint{Status: "ok"}
	}
	if old != nil && len(old) <= maxLint {
		before, err := check(ctx, box, name, old)
		if err == nil && before != "" && withoutNumbers(before) == withoutNumbers(problem) {
			return &lint{Status: "ok", Message: "nothing new; the file had a syntax error before, and still has: " + problem}
		}
	}
	return &lint{Status: "error", Output: problem}
}

var number = regexp.MustCompile(`\d+`)

// withoutNumbers removes line numbers from an error, as lines move.
func withoutNumbers(problem string) string { return number.ReplaceAllString(problem, "") }

// here makes a checker that needs no sandbox.
func here(check func([]byte) error) checker {
	return func(_ context.Context, _ sandbox.Sandbox, _ string, data []byte) (problem string, err error) {
		defer func() {
			if r := recover(); r != nil { // parsers have panicked on odd input
				err = errors.New("the parser gave up")
			}
		}()
		if err := check(bytes.TrimPrefix(data, []byte(byteOrderMark))); err != nil {
			return chars.First(err.Error(), maxLintOutput, "..."), nil
		}
		return "", nil
	}
}

func checkJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the file is empty")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:max(0, min(int(syntax.Offset)-1, len(data)))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len(before) - bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

// checkYAML reads every document as nodes, which expands no aliases.
func checkYAML(data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func checkTOML(data []byte) error {
	var table map[string]any
	err := toml.Unmarshal(data, &table)
	if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := syntax.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

func checkGo(data []byte) error {
	_, err := parser.ParseFile(token.NewFileSet(), "", data, parser.SkipObjectResolution)
	return err
}

var (
	//go:embed lint.py
	pythonCheck string
	//go:embed lint.js
	scriptCheck string
)

// byProgram makes a checker that passes the content to a program in the sandbox.
func byProgram(args ...string) checker {
	return func(ctx context.Context, box sandbox.Sandbox, _ string, data []byte) (string, error) {
		return inSandbox(ctx, box, data, args...)
	}
}

func checkScript(ctx context.Context, box sandbox.Sandbox, name string, data []byte) (string, error) {
	return inSandbox(ctx, box, data, "node", "-e", scriptCheck, name)
}

// exitUnable is the exit code of our checks when they cannot check; the reason is on standard error.
const exitUnable = 77

// inSandbox passes the content to a program in the sandbox, which prints errors on its standard error.
func inSandbox(ctx context.Context, box sandbox.Sandbox, data []byte, args ...string) (string, error) {
	stderr := newCapture(maxLintOutput, "chars")
	cmd := sandbox.Command{Args: args, Dir: box.Layout().Workdir, Stdin: bytes.NewReader(data), Stderr: stderr, Stdout: io.Discard}
	exit, stopped, err := run(ctx, box, cmd, bounds{timeout: lintTimeout}, nil)
	text := stderr.text()
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return "", fmt.Errorf("%s is not installed", args[0])
	case err != nil, stopped != nil, exit.Signal != 0:
		return "", fmt.Errorf("%s did not end as it should", args[0])
	case exit.Code == exitUnable, exit.Code == 126, exit.Code == 127:
		return "", fmt.Errorf("%s cannot check it: %s", args[0], text)
	case exit.Code == 0:
		return "", nil
	case text == "":
		return "", fmt.Errorf("%s says nothing (exit code %d)", args[0], exit.Code)
	}
	return text, nil
}
