package mcp_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/tools/mcp"
)

// servers installs real servers, which are pinned, and returns their folder.
var servers = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../../scripts/mcp/node_modules/.servers")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("../../scripts/mcp/install", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// installed declares a server of the project that the protocol's authors keep.
func installed(t *testing.T, name string, args ...string) mcp.Server {
	t.Helper()
	dir, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	if name == "python" {
		return mcp.Server{Command: []string{"python3", "-m", "mcp_server_time"}, Files: []string{filepath.Join(dir, name)}, Env: map[string]string{"PYTHONPATH": name}}
	}
	return mcp.Server{Command: append([]string{"node", name + "/dist/index.js"}, args...), Files: []string{filepath.Join(dir, name)}}
}

// step is a call of a real server and what is expected of it.
type step struct{ tool, give, result, source string }

func (p *playing) walk(prefix string, steps []step) {
	p.t.Helper()
	for _, s := range steps {
		got := p.call(prefix+s.tool, s.give)
		if got.Status != episode.CallOK && !strings.HasPrefix(s.result, "!") || !strings.Contains(got.Result, strings.TrimPrefix(s.result, "!")) || !strings.Contains(string(got.Source), s.source) {
			p.t.Errorf("%s %s: %s %s, source %.500s; want %s, %s", s.tool, s.give, got.Status, got.Result, got.Source, s.result, s.source)
		}
	}
}

var everything = []step{
	{"echo", `{"message":"hi"}`, `Echo: hi`, ""},
	{"get_sum", `{"a":"2","b":3}`, `The sum of 2 and 3 is 5`, ""},
	{"get_tiny_image", `{}`, `[image image/png, 4033 bytes: the image cannot be used: its PNG is cut off or damaged`, ""}, // so it is
	{"get_structured_content", `{"location":"Chicago"}`, `temperature`, `"structured":{"temperature":`},
	{"get_resource_links", `{"count":2}`, `[resource demo://resource/dynamic/`, ""},
	{"get_resource_reference", `{"resourceType":"Text","resourceId":1}`, `Resource 1: This is a plaintext resource`, ""},
	{"trigger_long_running_operation", `{"duration":0.3,"steps":3}`, `Long running operation completed`, `"progress_count":`},
	{"list_resources", `{}`, `demo://resource/static/document/`, ""},
	{"read_resource", `{"uri":"demo://resource/dynamic/text/1"}`, `plaintext resource`, ""},
	{"list_prompts", `{}`, `args-prompt`, ""},
	{"get_prompt", `{"name":"args-prompt","arguments":{"city":"Bern"}}`, `What's weather in Bern?`, ""},
}

// TestReal calls servers that others wrote, in sandboxes.
func TestReal(t *testing.T) {
	t.Setenv("RUNNERS_OWN", "runner-1234567890")
	b := backend(t, "native")
	all := installed(t, "everything", "stdio")
	all.Elicitation = &mcp.Elicitation{Answers: []mcp.Answer{{Match: "", Content: map[string]any{"name": "Ada", "check": true}}}}
	files := installed(t, "filesystem")
	files.Command = []string{"sh", "-c", `exec node filesystem/dist/index.js "$TRAJGEN_WORKDIR"`}
	set := open(t, b, mcp.Settings{Servers: map[string]mcp.Server{
		"all": all, "files": files, "memory": installed(t, "memory"), "think": installed(t, "sequential-thinking"), "time": installed(t, "python"),
	}})
	p := begin(t, b, set)
	p.walk("mcp_all_", append(everything, step{"trigger_elicitation_request", `{}`, `Ada`, `"action":"accept"`}))
	if got := p.call("mcp_all_get_env", `{}`); strings.Contains(got.Result, "runner-1234567890") || !strings.Contains(got.Result, "TRAJGEN_WORKDIR") {
		t.Errorf("environment %s", got.Result)
	}
	p.walk("mcp_files_", []step{
		{"write_file", `{"path":"a.txt","content":"hello"}`, `Successfully wrote`, ""},
		{"read_text_file", `{"path":"a.txt"}`, `hello`, ""},
		{"read_text_file", `{"path":"/etc/passwd"}`, `!Access denied`, ""},
	})
	p.walk("mcp_memory_", []step{
		{"create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["writes"]}]}`, `Ada`, ""}, {"read_graph", `{}`, `writes`, ""},
	})
	p.walk("mcp_think_", []step{{"sequentialthinking", `{"thought":"so","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, `thoughtHistoryLength`, ""}})
	p.walk("mcp_time_", []step{
		{"convert_time", `{"source_timezone":"Europe/Zurich","time":"12:00","target_timezone":"Asia/Tokyo"}`, `T`, ""},
		{"convert_time", `{"source_timezone":"No/Where","time":"12:00","target_timezone":"Asia/Tokyo"}`, `!Invalid timezone`, ""},
	})
	if got := set.Described("time").Protocol; got != "2026-07-28" {
		t.Errorf("the server in Python speaks %s", got)
	}
	p.session.Close()
	again := begin(t, b, set)
	if got := again.call("mcp_memory_read_graph", `{}`); strings.Contains(got.Result, "Ada") {
		t.Errorf("the next episode reads %s", got.Result)
	}
}

// TestRealURL calls the same server over both kinds of HTTP.
func TestRealURL(t *testing.T) {
	dir, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ mode, transport, path string }{{"streamableHttp", "", "/mcp"}, {"sse", "sse", "/sse"}} {
		t.Run(tt.mode, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			listener.Close()
			_, port, _ := net.SplitHostPort(address)
			cmd := exec.Command("node", filepath.Join(dir, "everything/dist/index.js"), tt.mode)
			cmd.Env = append(os.Environ(), "PORT="+port)
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), port); {
			}
			server := mcp.Server{URL: "http://" + address + tt.path, Transport: tt.transport, ConnectTimeout: 20 * time.Second}
			p := begin(t, nil, open(t, nil, one(server)))
			p.walk("mcp_fake_", everything)
		})
	}
}
