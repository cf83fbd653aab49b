package desk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Requests reads the calls of a script, from stdin if that is -, or without one the call that arguments name.
func Requests(stdin io.Reader, script string, args []string) ([]registry.Request, error) {
	if script == "" {
		if len(args) != 2 {
			return nil, errors.New("want NAME and JSON, or --script FILE")
		}
		return []registry.Request{{ID: "call_0", Name: args[0], Arguments: rawArguments([]byte(args[1]))}}, nil
	}
	if len(args) > 0 {
		return nil, errors.New("with --script the calls come from the file alone")
	}
	in := stdin
	if script != "-" {
		file, err := os.Open(script)
		if err != nil {
			return nil, fmt.Errorf("open script: %w", err)
		}
		defer file.Close()
		in = file
	}
	var requests []registry.Request
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var line struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("script line %d: %w", n, err)
		}
		requests = append(requests, registry.Request{
			ID: fmt.Sprintf("call_%d", len(requests)), Turn: len(requests), Name: line.Name, Arguments: rawArguments(line.Arguments),
		})
	}
	return requests, lines.Err()
}

// rawArguments is the text that a model would have sent: an object unchanged, a JSON string unwrapped.
func rawArguments(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// Line is a call's result, as it is printed.
type Line struct {
	Name         string             `json:"name"`
	Toolset      string             `json:"toolset"`
	Status       episode.CallStatus `json:"status"`
	RawArguments string             `json:"raw_arguments"`
	Arguments    json.RawMessage    `json:"arguments"`
	Coerced      []string           `json:"coerced"`
	Repaired     bool               `json:"repaired"`
	Result       string             `json:"result"`
	ErrorClass   string             `json:"error_class"`
	Truncated    bool               `json:"truncated"`
	DurationUS   int64              `json:"duration_us"`
	SandboxUS    int64              `json:"sandbox_us"`
	ExitCode     *int               `json:"exit_code,omitempty"`

	Rewritten []string         `json:"rewritten,omitempty"`
	Via       string           `json:"via,omitempty"`
	Verdict   *episode.Verdict `json:"verdict,omitempty"`
	Stored    string           `json:"stored,omitempty"`
	Untrusted string           `json:"untrusted,omitempty"`
	Source    json.RawMessage  `json:"source,omitempty"`
	Runner    bool             `json:"runner,omitempty"`
	Masked    []string         `json:"masked,omitempty"`
	SameAs    string           `json:"same_as,omitempty"`
	Notice    string           `json:"notice,omitempty"`
}

// NewLine is the line of a call.
func NewLine(call episode.ToolCall) Line {
	return Line{
		Name: call.Name, Toolset: call.Toolset, Status: call.Status, RawArguments: call.RawArguments, Arguments: call.Arguments,
		Coerced: append([]string{}, call.Coerced...), Repaired: call.Repaired, Result: call.Result, ErrorClass: call.ErrorClass,
		Truncated: call.Truncated, DurationUS: call.Elapsed.Microseconds(), SandboxUS: call.SandboxTime.Microseconds(),
		Rewritten: call.Rewritten, Via: call.Via, Verdict: call.Verdict, Stored: call.Stored, Untrusted: call.Untrusted, Source: call.Source, Runner: call.Runner,
		Masked: call.Masked, SameAs: call.SameAs, Notice: call.Notice, ExitCode: call.ExitCode,
	}
}
