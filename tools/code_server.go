package tools

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
)

// toolServer answers a script's tool calls: one JSON object a line, {"tool", "args"} in and the tool's result out. They come
// over a Unix socket, which the script has as descriptor 3. The socket has no name, so no other process in the sandbox can
// connect to it, and it needs no file, no credentials and no polling with a backend on another machine. The input is untrusted,
// as the script can write anything to the descriptor.
type toolServer struct {
	env     *registry.Env
	allowed []codeTool
	calls   int // made so far; to be read when serve has returned
}

// maxCall bounds a request, which may have the content for write_file.
const maxCall = 2 * maxFile

func (s *toolServer) serve(ctx context.Context, proc sandbox.Process) {
	conn := proc.Socket()
	defer conn.Close() // a script that still writes must not block
	lines := bufio.NewReaderSize(conn, 64<<10)
	for ctx.Err() == nil {
		line, err := readCall(lines)
		var reply string
		switch {
		case err == nil:
			reply = s.answer(ctx, line)
		case errors.Is(err, bufio.ErrTooLong):
			reply = failed(fmt.Sprintf("the call is larger than %s bytes; write large files with open(), in the script", thousands(maxCall)))
		default:
			return // the script has ended
		}
		if _, err := conn.Write(append([]byte(reply), '\n')); err != nil {
			return
		}
	}
}

// readCall reads a line. It drops a line that is too long, but reads to its end, because the script still writes it.
func readCall(lines *bufio.Reader) ([]byte, error) {
	var line []byte
	for size := 0; ; {
		part, err := lines.ReadSlice('\n')
		if size += len(part); size > maxCall {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err == nil && size > maxCall:
			return nil, bufio.ErrTooLong
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (s *toolServer) answer(ctx context.Context, line []byte) string {
	var call struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(line, &call); err != nil {
		return failed("the call is not a JSON object")
	}
	if !slices.ContainsFunc(s.allowed, func(t codeTool) bool { return t.name == call.Tool }) {
		return failed(notInCode(call.Tool, s.allowed))
	}
	if s.calls >= maxToolCalls {
		return failed(fmt.Sprintf("Tool call limit reached (%d). No more tool calls allowed in this execution.", maxToolCalls))
	}
	s.calls++
	made := s.env.Session.Call(ctx, registry.Request{
		ID: fmt.Sprintf("%s.%d", s.env.CallID, s.calls), Parent: s.env.CallID, Turn: s.env.Turn, Index: s.calls - 1,
		Name: call.Tool, Arguments: string(call.Args),
	})
	return strings.ReplaceAll(made.Result, "\n", " ") // in JSON, line ends outside of strings are white space
}

func notInCode(name string, allowed []codeTool) string {
	have := ": this episode has no tools for scripts."
	if len(allowed) > 0 {
		have = ". Available: " + strings.Join(pythonNames(allowed), ", ")
	}
	return fmt.Sprintf("Tool %q is not available in execute_code%s", chars.First(name, 100, "..."), have)
}

func failed(message string) string {
	text, _ := json.Marshal(map[string]string{"error": message}) // a map of strings always encodes
	return string(text)
}

//go:embed trajgen_tools.py
var pythonBase string

// pythonModule returns the module that scripts import: a fixed part and one function for each tool.
func pythonModule(allowed []codeTool) []byte {
	b := bytes.NewBufferString(pythonBase)
	for _, tool := range allowed {
		fmt.Fprintf(b, "\n\ndef %s(%s):\n    return _call(%q, locals())\n", tool.python(), tool.params, tool.name)
	}
	have, _ := json.Marshal(pythonNames(allowed)) // strings always encode
	known, _ := json.Marshal(pythonNames(scriptTools))
	fmt.Fprintf(b, "\n\n_AVAILABLE = %s\n_KNOWN = %s\n__all__ = _AVAILABLE + [\"json_parse\", \"shell_quote\", \"retry\"]\n", have, known)
	return b.Bytes()
}
