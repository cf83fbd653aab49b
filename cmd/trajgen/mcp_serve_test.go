package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/pipeline/episode"
)

// mcpClient connects a client of the SDK.
func mcpClient(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// callMCP calls a tool, and returns its text.
func callMCP(t *testing.T, session *mcp.ClientSession, name string, arguments any) (text string, failed bool) {
	t.Helper()
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return "", true
	}
	for _, each := range got.Content {
		if content, ok := each.(*mcp.TextContent); ok {
			text += content.Text
		}
	}
	return text, got.IsError
}

// wantNoSandboxes holds that processes whose command has a mark have ended.
func wantNoSandboxes(t *testing.T, mark string) {
	t.Helper()
	for range 100 {
		if out, _ := exec.Command("pgrep", "-f", mark).Output(); len(out) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes with %s are left", mark)
}

// TestMCPServeStdio serves one session on standard streams.
func TestMCPServeStdio(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(build(t), "mcp", "serve", "--toolsets", "terminal,file", "--workspace", dir, "--out", out)
	cmd.Stderr = t.Output()
	session := mcpClient(t, &mcp.CommandTransport{Command: cmd})
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var schemas []struct {
		Function struct{ Name, Description string }
	}
	if err := json.Unmarshal([]byte(succeed(t, "tools", "schema", "--toolsets", "terminal,file").out), &schemas); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, tool := range listed.Tools {
		got = append(got, tool.Name+" "+tool.Description)
	}
	for _, schema := range schemas {
		want = append(want, schema.Function.Name+" "+schema.Function.Description)
	}
	sameRows(t, want, got)
	if text, failed := callMCP(t, session, "read_file", map[string]any{"path": "a.txt", "limit": "5"}); failed || !strings.Contains(text, "hello") {
		t.Errorf("read_file: failed %v, %s", failed, text)
	}
	if text, failed := callMCP(t, session, "read_file", map[string]any{"path": "none.txt"}); !failed || !strings.Contains(text, `"error"`) {
		t.Errorf("no file: failed %v, %s", failed, text)
	}
	if text, failed := callMCP(t, session, "read_file", map[string]any{"paht": 1}); !failed || !strings.Contains(text, "invalid arguments") {
		t.Errorf("wrong arguments: failed %v, %s", failed, text)
	}

	// A call that its client gives up ends, and the next one is made.
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := session.CallTool(short, &mcp.CallToolParams{Name: "terminal", Arguments: map[string]any{"command": "sleep 71"}}); err == nil {
		t.Error("a cancelled call has a result")
	}
	began := time.Now()
	if text, failed := callMCP(t, session, "terminal", map[string]any{"command": "cat a.txt"}); failed || !strings.Contains(text, "hello") {
		t.Errorf("terminal: failed %v, %s", failed, text)
	}
	callMCP(t, session, "terminal", map[string]any{"command": "sleep 7213", "background": true})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the call waited %s for the one that was given up", took)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	wantNoSandboxes(t, "sleep 7213")
	data, err := os.ReadFile(filepath.Join(out, "session-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	calls := lines[resultLine](t, string(data))
	if len(calls) != 6 || calls[0].Status != episode.CallOK || len(calls[0].Coerced) != 1 || calls[2].Status != episode.CallInvalidArguments {
		t.Errorf("calls: %+v", calls)
	}
}

// TestMCPServeDies holds that no sandbox is left, however the session ends: its client is gone in a call, or the server is asked to end.
func TestMCPServeDies(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, input interface{ Close() error }){
		"client":    func(_ *exec.Cmd, input interface{ Close() error }) { input.Close() },
		"interrupt": func(cmd *exec.Cmd, _ interface{ Close() error }) { _ = cmd.Process.Signal(os.Interrupt) },
		"kill":      func(cmd *exec.Cmd, _ interface{ Close() error }) { _ = cmd.Process.Signal(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seconds := map[string]string{"client": "8101", "interrupt": "8102", "kill": "8103"}[name]
			cmd := exec.Command(build(t), "mcp", "serve", "--toolsets", "terminal")
			cmd.Stderr = t.Output()
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			session := mcpClient(t, &mcp.IOTransport{Reader: output, Writer: input})
			if _, failed := callMCP(t, session, "terminal", map[string]any{"command": "true"}); failed {
				t.Error("the first call failed")
			}
			called := make(chan struct{})
			go func() {
				defer close(called)
				_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "terminal", Arguments: map[string]any{"command": "sleep " + seconds}})
			}()
			for range 200 {
				if out, _ := exec.Command("pgrep", "-f", "^sleep "+seconds).Output(); len(out) > 0 {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			end(cmd, input)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Error("the server does not end")
				_ = cmd.Process.Kill()
			}
			<-called
			wantNoSandboxes(t, "sleep "+seconds)
		})
	}
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestMCPServeHTTP serves 20 sessions side by side, which see nothing of each other.
func TestMCPServeHTTP(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cmd := exec.Command(build(t), "mcp", "serve", "--toolsets", "terminal,file,todo", "--http", "127.0.0.1:0", "--sessions", "20", "--out", out)
	cmd.Env = append(os.Environ(), "TRAJGEN_MCP_TOKEN=open-sesame")
	url := serving(t, cmd)
	for name, tt := range map[string]struct {
		token, origin string
		want          int
	}{
		"no token":     {"", "", 401},
		"wrong token":  {"open", "", 401},
		"other origin": {"open-sesame", "http://evil.test", 403},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("{}"))
		r.Header.Set("Origin", tt.origin)
		if tt.origin == "" {
			r.Header.Del("Origin")
		}
		resp, err := bearer(tt.token).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, tt.want)
		}
	}
	connect := func() (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: bearer("open-sesame")},
		}, nil)
	}
	sessions := make([]*mcp.ClientSession, 20)
	for i := range sessions {
		var err error
		if sessions[i], err = connect(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connect(); err == nil {
		t.Error("there is a session more than the server has room for")
	}
	var all sync.WaitGroup
	for i, session := range sessions {
		all.Go(func() {
			word := fmt.Sprintf("word-%d", i)
			if text, failed := callMCP(t, session, "write_file", map[string]any{"path": "mine.txt", "content": word}); failed {
				t.Errorf("write_file: %s", text)
			}
			callMCP(t, session, "terminal", map[string]any{"command": "touch " + word + "; echo " + word + " >> /tmp/all"})
			text, failed := callMCP(t, session, "terminal", map[string]any{"command": "cat mine.txt /tmp/all; ls"})
			if failed || strings.Count(text, word) != 3 || strings.Count(text, "word-") != 3 {
				t.Errorf("session %d sees %s", i, text)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	kept, err := filepath.Glob(filepath.Join(out, "session-*.jsonl"))
	if err != nil || len(kept) != 20 {
		t.Errorf("%d files of sessions, %v", len(kept), err)
	}
	again, err := connect() // there is room as soon as the server has taken leave of one
	for range 100 {
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
		again, err = connect()
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := callMCP(t, again, "terminal", map[string]any{"command": "ls"}); failed || strings.Contains(text, "mine.txt") {
		t.Errorf("the session after them: %s", text)
	}
	callMCP(t, again, "terminal", map[string]any{"command": "sleep 8204", "background": true})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wantNoSandboxes(t, "sleep 8204")
}

// TestMCPServeWrong holds what a user is told before anything is served.
func TestMCPServeWrong(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--http 0.0.0.0:0", "want an address of this machine alone"},
		{"--http nonsense", "want an address of this machine alone"},
		{"--sessions 0", "at least 1"},
		{"--toolsets terminl", "terminl"},
		{"--twin record", "need a run"},
	} {
		if got := here(t, append([]string{"mcp", "serve"}, strings.Fields(tt.flags)...)...); got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
			t.Errorf("%s: exit code %d: %s", tt.flags, got.code, got.errOut)
		}
	}
}

// TestMCPServeTask serves sessions about a task, and judges each at its end.
func TestMCPServeTask(t *testing.T) {
	t.Parallel()
	dataset := write(t, "tasks.jsonl", `{"id":"count","prompt":"Write the number of lines of a.txt to n.txt.","files":{"a.txt":"1\n2\n"},`+
		`"setup":"echo 3 >> a.txt","verify":{"command":"test \"$(cat n.txt)\" = 3"}}
{"id":"say","prompt":"Say it.","verify":{"exact":"it"}}
{"id":"built","prompt":"x","build":{"dir":"/x"}}
`)
	for _, tt := range []struct{ task, command, want string }{
		{"count", "wc -l < a.txt > n.txt", "1"},
		{"count", "echo 2 > n.txt; sleep 8301 &", "0"},
		{"say", "true", "null"},
	} {
		out := t.TempDir()
		cmd := exec.Command(build(t), "mcp", "serve", "--toolsets", "terminal", "--task", tt.task, "--dataset", dataset, "--out", out)
		cmd.Stderr = t.Output()
		session := mcpClient(t, &mcp.CommandTransport{Command: cmd})
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "trajgen://task/prompt"})
		if err != nil || len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, map[string]string{"count": "a.txt", "say": "Say it."}[tt.task]) {
			t.Errorf("prompt: %+v, %v", read, err)
		}
		callMCP(t, session, "terminal", map[string]any{"command": tt.command})
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(filepath.Join(out, "session-1.json"))
		if err != nil || !strings.Contains(string(data), `"reward": `+tt.want+",") {
			t.Errorf("%s: %s %v, want a reward of %s", tt.command, data, err, tt.want)
		}
	}
	for _, wrong := range [][]string{{"--task", "count"}, {"--task", "none", "--dataset", dataset, "--out", t.TempDir()}, {"--task", "count", "--dataset", dataset},
		{"--task", "built", "--dataset", dataset, "--out", t.TempDir()}} {
		if got := here(t, append([]string{"mcp", "serve"}, wrong...)...); got.code != exitUsage {
			t.Errorf("%v: exit code %d: %s", wrong, got.code, got.errOut)
		}
	}
}

// TestMCPServePolicy holds that an agent's commands are refused where the sandbox is this machine.
func TestMCPServePolicy(t *testing.T) {
	cmd := exec.Command(build(t), "mcp", "serve", "--toolsets", "terminal", "--sandbox", "local")
	cmd.Stderr = t.Output()
	session := mcpClient(t, &mcp.CommandTransport{Command: cmd})
	if text, failed := callMCP(t, session, "terminal", map[string]any{"command": "mkdir build; chmod -R 777 build"}); !failed {
		t.Errorf("the command was run: %s", text)
	}
	if text, failed := callMCP(t, session, "terminal", map[string]any{"command": "echo fine"}); failed || !strings.Contains(text, "fine") {
		t.Errorf("a harmless command: %s", text)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
