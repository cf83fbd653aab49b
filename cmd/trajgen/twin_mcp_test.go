package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// notesServer has a state in its process, and never says the same twice.
const notesServer = `n=0
answer() { echo '{"jsonrpc":"2.0","id":'$id',"result":'"$1"'}'; }
while IFS= read -r request; do
	case $request in *'"id":'*) ;; *) continue ;; esac
	id=${request#*'"id":'}; id=${id%%,*}
	case $request in
	*'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}' ;;
	*'"method":"tools/list"'*) answer '{"tools":[{"name":"add","description":"Adds <a note>.","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What & why"}}}},{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
	*'"name":"add"'*) n=$((n+1)); answer '{"content":[{"type":"text","text":"note '$n' at '$(date +%s%N)'"}],"structuredContent":{"via":"post"}}' ;;
	*'"name":"count"'*) answer '{"content":[{"type":"text","text":"'$n' at '$(date +%s%N)'"}]}' ;;
	*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
	esac
done
`

// deskServer answers over HTTP, each call with another number, if it is asked with the right key.
func deskServer(t *testing.T, calls *atomic.Int64) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		text, _ := io.ReadAll(req.Body)
		_ = json.Unmarshal(text, &asked)
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"file","inputSchema":{"type":"object"}}]}`,
		}[asked.Method]
		if asked.Method == "tools/call" {
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"filed as %d with %s"}]}`, calls.Add(1), req.Header.Get("X-Key"))
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case req.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.Header.Get("X-Key") != "desk-1234567890":
			w.WriteHeader(http.StatusForbidden)
		case asked.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, asked.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// TestTwinMCP records 500 calls of MCP servers, and replays them with 64 workers and without the servers, their files and keys.
func TestTwinMCP(t *testing.T) {
	t.Setenv("DESK_KEY", "desk-1234567890")
	var calls atomic.Int64
	dir, notes, desk := t.TempDir(), write(t, "notes.sh", notesServer), deskServer(t, &calls)
	var tasks strings.Builder
	for i := range 50 {
		fmt.Fprintf(&tasks, `{"id":"note-%d","prompt":"Do %d.","verify":{"exact":"done"},"gold":[`, i, i)
		for range 2 {
			fmt.Fprintf(&tasks, `{"tool_calls":[{"name":"mcp_notes_add","arguments":{"text":"note %d"}},{"name":"mcp_notes_count","arguments":{}},`+
				`{"name":"mcp_desk_file","arguments":{"n":%d}}]},`, i%7, i)
		}
		tasks.WriteString(`{"tool_calls":[{"name":"mcp_notes_add","arguments":{}},{"name":"mcp_notes_count","arguments":{}},` +
			`{"name":"mcp_desk_file","arguments":{"n":true}},{"name":"mcp_desk_file","arguments":{"last":1}}]},{"content":"done"}]}` + "\n")
	}
	dataset := write(t, "notes.jsonl", tasks.String())
	settings := fmt.Sprintf(`mcp:
  servers:
    notes: {command: [sh, notes.sh], files: [%s]}
    desk: {url: %q, header_env: {X-Key: DESK_KEY}}
tools: {toolsets: [notes, desk]}
play: {durable_turns: true}
`, notes, desk.URL)
	file := write(t, "run.yaml", settings)
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--sandbox", "local")
	recorded := play("recorded", "--twin", "record")
	if len(recorded) != 50 || calls.Load() != 200 || !strings.Contains(recorded[0], "[secret DESK_KEY]") || !strings.Contains(recorded[0], `"via":"record"`) {
		t.Fatalf("%d rows, %d calls of the desk, such as %s", len(recorded), calls.Load(), cut(recorded[0]))
	}
	desk.Close()
	if err := os.Remove(notes); err != nil {
		t.Fatal(err)
	}
	os.Unsetenv("DESK_KEY")
	from := filepath.Join(dir, "recorded")
	replay := []string{"--twin", "replay", "--twin-recording", from}
	one := play("one", append(replay, "--workers", "1")...)
	sameRows(t, one, play("many", append(replay, "--workers", "64")...))
	sameRows(t, unconnected(t, twins(t, recorded)), unconnected(t, twins(t, one)))
	if !strings.Contains(one[0], `"calls":6,"connect":0,"declared":"notes"`) {
		t.Errorf("row %s", one[0])
	}
	wantMCP := func(what string, args ...string) {
		t.Helper()
		if text := succeed(t, append([]string{"twin", "report"}, args...)...).out; strings.Count(text, "100.0%") < 3 || !strings.Contains(text, "mcp_desk_file") {
			t.Errorf("%s: %s", what, text)
		}
	}
	wantMCP("of the replay", "--run", filepath.Join(dir, "many"))
	wantMCP("against its own", "--recording", from, "--against", from)
	wantMCP("against a replay", "--recording", from, "--against", filepath.Join(dir, "one"))
	if text := succeed(t, "twin", "info", from).out; !strings.Contains(text, "500 calls of 50 episodes") || !strings.Contains(text, "mcp desk, mcp notes") {
		t.Errorf("info: %s", text)
	}
	call := succeed(t, append([]string{"tools", "call", "mcp_desk_file", `{"n":3}`, "-f", file, "--sandbox", "local"}, replay...)...)
	if line := lines[resultLine](t, call.out)[0]; line.Status != "ok" || !strings.Contains(string(line.Source), `"via":"replay"`) {
		t.Errorf("tools call: %+v", line)
	}
	// A tool that the recording is not to answer for needs its server.
	got := trajgen(t, "run", "-f", write(t, "patterns.yaml", settings+"twin: {tools: [mcp_notes_*]}\n"), "--dataset", dataset, "--policy", "oracle",
		"--sandbox", "local", "--quiet", "--twin", "replay", "--twin-recording", from, "--out", filepath.Join(dir, "patterns"))
	if got.code != exitUsage || !strings.Contains(got.errOut, "mcp server desk") || strings.Contains(got.errOut, "mcp server notes") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
}

// TestTwinMCPKilled kills a run that records after each of its turns: the server is not called again, and the recording answers
// what the episode came to.
func TestTwinMCPKilled(t *testing.T) {
	t.Setenv("DESK_KEY", "desk-1234567890")
	var calls atomic.Int64
	desk := deskServer(t, &calls)
	turn := `{"tool_calls":[{"name":"mcp_desk_file","arguments":{}}]},`
	dataset := write(t, "notes.jsonl", `{"id":"note","prompt":"Do.","verify":{"exact":"done"},"gold":[`+turn+turn+`{"content":"done"}]}`+"\n")
	file := write(t, "run.yaml", fmt.Sprintf("mcp: {servers: {desk: {url: %q, header_env: {X-Key: DESK_KEY}}}}\n"+
		"tools: {toolsets: [desk]}\nplay: {durable_turns: true}\n", desk.URL))
	s, url := openTurnstile(t, dataset)
	dir := t.TempDir()
	args := []string{"run", "-f", file, "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "1", "--quiet", "--sandbox", "local"}
	cut, replayed := filepath.Join(dir, "cut"), filepath.Join(dir, "replayed")
	record := append(args, "--twin", "record", "--out", cut)
	killed(t, s, 1, 1, record...)
	killed(t, s, 1, 1, append(record, "--resume")...)
	succeed(t, append(record, "--resume")...)
	if calls.Load() != 2 {
		t.Errorf("the desk was called %d times", calls.Load())
	}
	desk.Close()
	succeed(t, append(args, "--twin", "replay", "--twin-recording", cut, "--out", replayed)...)
	want, marked := unmarked(t, cut)
	got, _ := unmarked(t, replayed)
	if sameRows(t, unconnected(t, twins(t, want)), unconnected(t, twins(t, got))); marked != 1 {
		t.Errorf("%d episodes were resumed", marked)
	}
}

// unconnected are rows without how long connecting to servers took.
func unconnected(t *testing.T, rows []string) (all []string) {
	t.Helper()
	for _, row := range rows {
		var fields map[string]any
		if err := json.Unmarshal([]byte(row), &fields); err != nil {
			t.Fatal(err)
		}
		for _, server := range fields["mcp_servers"].([]any) {
			delete(server.(map[string]any), "connect")
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}
