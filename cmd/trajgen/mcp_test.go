package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// wordServer copies the server that the manual shows, so that a test can change it.
func wordServer(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/mcp/words.py")
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "words.py", string(text))
}

const poem = `{"id":"poem","prompt":"How many words?",%s"files":{"poem.txt":"so much depends"},"verify":{"exact":"3"},` +
	`"gold":[{"tool_calls":[{"name":"mcp_words_count_words","arguments":{"path":"poem.txt"}}]},{"content":"3"}]}`

// TestMCP plays a task with a server in its sandbox: the call, its row, the lock, and a resume with another server.
func TestMCP(t *testing.T) {
	t.Parallel()
	server := wordServer(t)
	lock := filepath.Join(t.TempDir(), "mcp.lock")
	settings := func(tools, task string) string {
		dataset := write(t, "tasks.jsonl", fmt.Sprintf(poem, task))
		return write(t, "run.yaml", fmt.Sprintf(`dataset: {path: %s}
scripted: {policy: oracle}
tools: %s
mcp:
  servers:
    words: {command: [python3, words.py], files: [%s]}
  lock: %s
`, dataset, tools, server, lock))
	}
	file := settings("{toolsets: [words]}", "")
	if got := trajgen(t, "run", "-f", file, "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "trajgen mcp lock writes it") {
		t.Errorf("without a lock: exit code %d: %s", got.code, got.errOut)
	}
	succeed(t, "mcp", "lock", "-f", file)
	var all map[string]struct{ Tools []struct{ Shown string } }
	if err := json.Unmarshal([]byte(succeed(t, "mcp", "list", "--json", "-f", file).out), &all); err != nil || len(all["words"].Tools) != 1 {
		t.Errorf("list: %v, %v", all, err)
	}
	if got := succeed(t, "mcp", "probe", "-f", file).out; !strings.Contains(got, "1 tools, 0 lines") || strings.Contains(got, "second time") {
		t.Errorf("probe: %s", got)
	}
	call := lines[resultLine](t, succeed(t, "mcp", "call", "words", "count_words", `{"path":"words.py"}`, "-f", file, "--workspace", filepath.Dir(server)).out)[0]
	if call.Status != episode.CallOK || call.Toolset != "mcp-words" || call.Untrusted != "mcp:words" || !strings.Contains(string(call.Source), `"structured":{"words":`) {
		t.Errorf("call: %+v", call)
	}

	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "-f", file, "--out", dir, "--quiet")
	ep := episodes(t, dir)[0]
	if ep.Outcome != episode.Success || len(ep.Calls) != 1 || ep.Calls[0].Result != `{"result":"3 words"}` {
		t.Errorf("%s, calls %+v", ep.Outcome, ep.Calls)
	}
	if len(ep.MCP) != 1 || ep.MCP[0].Declared != "words" || ep.MCP[0].Version != "1.0" || ep.MCP[0].Calls != 1 || ep.MCP[0].Connect == 0 {
		t.Errorf("row %+v", ep.MCP)
	}

	// A task names its servers, whatever is drawn; it has no others then.
	named := filepath.Join(t.TempDir(), "named")
	succeed(t, "run", "-f", settings("{toolsets: [todo]}", `"mcp":["words"],`), "--out", named, "--quiet")
	if ep := episodes(t, named)[0]; ep.Outcome != episode.Success || len(ep.Tools) != 2 || len(ep.MCP) != 1 {
		t.Errorf("named: %s, %d tools, servers %+v", ep.Outcome, len(ep.Tools), ep.MCP)
	}
	if got := trajgen(t, "run", "-f", settings("{toolsets: [todo]}", `"mcp":["wrds"],`), "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, `declares no server "wrds" (have [words])`) {
		t.Errorf("unknown server: exit code %d: %s", got.code, got.errOut)
	}

	text, err := os.ReadFile(server)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server, []byte(strings.Replace(string(text), "Counts the words", "Counts all words", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "-f", file, "--quiet"}, {"run", "--resume", "--out", dir, "--samples", "2", "--quiet"}} {
		if got := trajgen(t, args...); got.code != exitUsage || !strings.Contains(got.errOut, "tool count_words is another") {
			t.Errorf("%v with another server: exit code %d: %s", args, got.code, got.errOut)
		}
	}
	succeed(t, "mcp", "lock", "-f", file)
	if got := trajgen(t, "run", "--resume", "--out", dir, "--samples", "2", "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "mcp_servers: was") {
		t.Errorf("resumed with another server: exit code %d: %s", got.code, got.errOut)
	}
	npx := write(t, "npx.yaml", "dataset: {path: bundled}\nscripted: {policy: oracle}\nmcp: {servers: {notes: {command: [npx, -y, notes]}}}\n")
	if got := trajgen(t, "run", "-f", npx, "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "trajgen mcp lock then pins it") {
		t.Errorf("npx: exit code %d: %s", got.code, got.errOut)
	}
}

// TestMCPDenied holds that a server which refuses the run's credentials ends the run: no episode gets an outcome of it, and its secret
// is nowhere in the run directory.
func TestMCPDenied(t *testing.T) {
	t.Setenv("TICKETS_TOKEN", "ticket-1234567890")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(req.Body).Decode(&asked)
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tickets","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"count_words","inputSchema":{"type":"object"}}]}`,
		}[asked.Method]
		switch {
		case req.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case asked.Method == "tools/call":
			http.Error(w, "not with "+req.Header.Get("Authorization"), http.StatusForbidden)
		case asked.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, asked.ID)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result)
		}
	}))
	t.Cleanup(server.Close)
	dataset := write(t, "tasks.jsonl", fmt.Sprintf(poem, ""))
	file := write(t, "run.yaml", fmt.Sprintf(`dataset: {path: %s}
scripted: {policy: oracle}
tools: {toolsets: [mcp-words]}
mcp: {servers: {words: {url: "%s", header_env: {Authorization: TICKETS_TOKEN}}}}
`, dataset, server.URL))
	dir := filepath.Join(t.TempDir(), "run")
	got := trajgen(t, "run", "-f", file, "--out", dir, "--quiet")
	if got.code == 0 || !strings.Contains(got.errOut, "look at header_env and oauth") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	if all := episodes(t, dir); len(all) != 0 {
		t.Errorf("the episode ended with %s", all[0].Outcome)
	}
	keyless(t, dir, "ticket-1234567890")
	if strings.Contains(got.errOut, "ticket-1234567890") {
		t.Errorf("the secret is in %s", got.errOut)
	}
}

// TestTaskServers plays tasks that declare servers themselves: two of one name that differ, which start among the task's files, and
// one elsewhere, which the run file has to allow.
func TestTaskServers(t *testing.T) {
	python, err := os.ReadFile("../../examples/mcp/words.py")
	if err != nil {
		t.Fatal(err)
	}
	row := func(id, server, declared string) string {
		files, err := json.Marshal(map[string]string{"poem.txt": "so much depends", "server/words.py": server})
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(`"id":"poem"`, `"id":"`+id+`"`, `{"poem.txt":"so much depends"}`, string(files)).
			Replace(fmt.Sprintf(poem, `"mcp":{"servers":{"words":`+declared+`}},`)) + "\n"
	}
	const stdio = `{"command":["python3","server/words.py"],"timeout":"20s"}`
	other := strings.Replace(string(python), "Counts the words", "Counts all words", 1)
	run := func(mcp, rows string, more ...string) result {
		file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s}\nscripted: {policy: oracle}\ntools: {toolsets: [todo]}\n%s",
			write(t, "tasks.jsonl", rows), mcp))
		return trajgen(t, append([]string{"run", "-f", file, "--quiet"}, more...)...)
	}
	dir := filepath.Join(t.TempDir(), "run")
	if got := run("", row("one", string(python), stdio)+row("two", other, stdio), "--out", dir); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	digests := map[string]bool{}
	for i, ep := range episodes(t, dir) {
		if ep.Outcome != episode.Success || len(ep.Tools) != 2 || len(ep.MCP) != 1 || ep.MCP[0].Calls != 1 || ep.MCP[0].Declared != "words" {
			t.Fatalf("%s: %s %+v, %d tools, servers %+v", ep.Key.Task, ep.Outcome, ep.Fault, len(ep.Tools), ep.MCP)
		}
		if want := []string{"Counts the words", "Counts all words"}[i]; !strings.Contains(string(ep.Tools[0])+string(ep.Tools[1]), want) || ep.Calls[0].Untrusted != "mcp:words" {
			t.Errorf("%s is shown %s, want %s", ep.Key.Task, ep.Tools, want)
		}
		digests[ep.MCP[0].SHA256] = true
	}
	if len(digests) != 2 {
		t.Errorf("the servers of both tasks have the digests %v", digests)
	}
	if said := succeed(t, "verify", "--run", dir).out; !strings.Contains(said, "nothing differs") {
		t.Errorf("verify: %s", said)
	}

	dead := filepath.Join(t.TempDir(), "dead")
	if got := run("", row("dead", "import sys; sys.exit('no licence')", stdio), "--out", dead); got.code != exitErrors {
		t.Errorf("a server that does not start: %+v", got)
	}
	if ep := episodes(t, dead)[0]; ep.Outcome != episode.ToolError || ep.Fault.Class != "mcp_down" || !strings.Contains(ep.Fault.Message, "no licence") {
		t.Errorf("a server that does not start: %s, %+v", ep.Outcome, ep.Fault)
	}
	wrong := run("mcp: {servers: {words: {command: [true], enabled: false}}}", row("x", "", `{"command":["npx","words"]}`)+row("y", "", `{"url":"https://tickets.example/mcp"}`))
	for _, want := range []string{"task x (row 1): mcp server words: [npx words] would fetch a package", "task y (row 2): mcp server words: its host is tickets.example, and the run file allows"} {
		if wrong.code != exitUsage || !strings.Contains(wrong.errOut, want) {
			t.Errorf("exit code %d: %s, want %s", wrong.code, wrong.errOut, want)
		}
	}
}
