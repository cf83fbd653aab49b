package mcp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/mcp"
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv("FAKE"); mode {
	case "":
	case "conformance":
		os.Exit(conform(os.Args[len(os.Args)-1]))
	default:
		fake(mode)
		return
	}
	sandbox.Init()
	mcp.HurryUp()
	os.Exit(m.Run())
}

// faulty declares the fake server.
func faulty(mode string) mcp.Server {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return mcp.Server{Command: []string{program}, Env: map[string]string{"FAKE": mode}}
}

// backend opens one of the sandbox's.
func backend(t testing.TB, name string) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, name, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func options(b sandbox.Backend) mcp.Options {
	return mcp.Options{
		Sandbox: func(ctx context.Context, id string) (sandbox.Sandbox, error) {
			return b.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("%s-%d", id, opened.Add(1))})
		},
		Environ: func(name string) (string, bool) { return "hunter2-" + name, strings.HasPrefix(name, "GIVEN") },
		Now:     time.Now,
	}
}

// open opens servers.
func open(t testing.TB, b sandbox.Backend, settings mcp.Settings) *mcp.Set {
	t.Helper()
	set, err := mcp.Open(t.Context(), settings, options(b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// playing is an episode that has the tools of servers.
type playing struct {
	t       testing.TB
	session *registry.Session
	attempt *mcp.Attempt
	n       int
}

var opened atomic.Int64

// begin begins an episode.
func begin(t testing.TB, b sandbox.Backend, set *mcp.Set, services ...any) *playing {
	t.Helper()
	reg, err := registry.New(set.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	toolset, err := reg.Select([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &playing{t: t, attempt: &mcp.Attempt{Servers: set.Rows(toolset.Tools())}}
	images := &media.Store{}
	var box sandbox.Sandbox
	p.session = toolset.Session(registry.SessionConfig{
		Sandbox: func(ctx context.Context) (_ sandbox.Sandbox, err error) {
			box, err = b.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("episode-%d", opened.Add(1))})
			return box, err
		},
		Services: append(services, p.attempt), Images: images,
	})
	t.Cleanup(func() {
		p.session.Close()
		images.Close()
		if box != nil {
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

func (p *playing) call(name, arguments string) episode.ToolCall {
	p.t.Helper()
	p.n++
	return p.session.Call(p.t.Context(), registry.Request{ID: fmt.Sprintf("call_%d", p.n), Turn: p.n, Name: name, Arguments: arguments})
}

// TestCall holds what becomes of each kind of result, and of what hostile servers do within a call.
func TestCall(t *testing.T) {
	b := backend(t, "local")
	server := faulty("banner")
	set := open(t, b, mcp.Settings{Servers: map[string]mcp.Server{"fake": server}})
	p := begin(t, b, set)
	tests := []struct {
		tool, give string
		status     episode.CallStatus
		class      string
		result     string // a part of it
		source     string
	}{
		{"echo", `{"a":9007199254740993}`, episode.CallOK, "", `{"result":"{\"a\":9007199254740993}"}`, `"mcp_server":"fake","mcp_tool":"echo","via":"live"`},
		{"triple", `{}`, episode.CallOK, "", `{"result":"answer 0"}`, ""},
		{"hologram", `{}`, episode.CallOK, "", `before\n\n[content of type hologram]\n\n[content of type ]`, ""},
		{"structured", `{}`, episode.CallOK, "", `{"result":"{\"b\":9007199254740993,\"a\":1}"}`, `"structured":{"b":9007199254740993,"a":1}`},
		{"image", `{}`, episode.CallOK, "", `[image image/png, 2x2]`, `"kept_images":[{`},
		{"broken_image", `{}`, episode.CallOK, "", `[image whose data cannot be read]\n\n[image image/png, 3 bytes: `, ""},
		{"parts", `{}`, episode.CallOK, "", `one\n\n[audio (audio/wav), 3 bytes]\n\n[resource file:///x (text/plain)]\n\nembedded\n\n[resource file:///z (a/b), 3 bytes]`,
			`"kept_files":[{"type":"file","sha256":"709e80c88487a2411e1ee4dfb9f22a861492d20c4765150c0c794abd70f8147c","mime":"audio/wav","bytes":3},`},
		{"progress", `{}`, episode.CallOK, "", `done`, `"progress_count":3`},
		{"changed", `{}`, episode.CallOK, "", `changed`, `"list_changed":1`},
		{"log", `{}`, episode.CallOK, "", `logged`, `"stdout_noise":3`},
		{"error", `{}`, episode.CallError, "tool_error", `the disk is full`, ""},
		{"invalid", `{}`, episode.CallInvalidArguments, "invalid_arguments", `a is not a number`, ""},
		{"rpc_invalid", `{}`, episode.CallInvalidArguments, "invalid_arguments", `b is missing`, ""},
		{"gone", `{}`, episode.CallUnavailable, "mcp_changed", `no longer has gone`, ""},
		{"big", `{}`, episode.CallError, "result_too_large", `ask for less`, ""},
		{"echo", `{"after":"big"}`, episode.CallOK, "", `after`, ""},
		{"die", `{}`, episode.CallUnavailable, "mcp_down", `it ended with status 1 during die`, ""},
		{"echo", `{"after":"death"}`, episode.CallOK, "", `after`, ""},
		{"die_once", `{}`, episode.CallOK, "", `lived`, ""},
		{"list_resources", `{}`, episode.CallOK, "", `{"resources":[{"uri":"file:///a","name":"a","mime_type":"text/plain"}]}`, ""},
		{"read_resource", `{"uri":"file:///a"}`, episode.CallOK, "", `content of file:///a`, ""},
		{"list_prompts", `{}`, episode.CallOK, "", `{"prompts":[{"name":"greet","arguments":[{"name":"who","required":true}]}]}`, ""},
		{"get_prompt", `{"name":"greet","arguments":{"who":"you"}}`, episode.CallOK, "", `Hello {'who':'you'}"},{"role":"user","content":"[content of type hologram]"}]`, ""},
	}
	for _, tt := range tests {
		got := p.call("mcp_fake_"+tt.tool, tt.give)
		if got.Status != tt.status || got.ErrorClass != tt.class || !strings.Contains(got.Result, tt.result) || !strings.Contains(string(got.Source), tt.source) {
			t.Errorf("%s %s: %s %s %s, source %s\nwant %s %s %s, source %s", tt.tool, tt.give, got.Status, got.ErrorClass, got.Result, got.Source,
				tt.status, tt.class, tt.result, tt.source)
		}
		if got.Untrusted != "mcp:fake" {
			t.Errorf("%s is trusted: %q", tt.tool, got.Untrusted)
		}
	}
	if fault := p.session.Fault(); fault != nil {
		t.Errorf("fault %+v", fault)
	}
	p.session.Close()
	row := p.attempt.Servers[0]
	if row.Declared != "fake" || row.Version != "1.2" || row.Protocol != "2025-11-25" || row.Calls != len(tests) || row.Reconnects != 3 || row.Connect == 0 || len(row.SHA256) != 64 {
		t.Errorf("row %+v", row)
	}
}

// TestLate holds that a call whose time is up is the agent's affair while the server answers others.
func TestLate(t *testing.T) {
	b := backend(t, "local")
	server := faulty("plain")
	server.Timeout = 300 * time.Millisecond
	p := begin(t, b, open(t, b, one(server)))
	got := p.call("mcp_fake_sleep", `{}`)
	if got.Status != episode.CallTimeout || got.ErrorClass != "timeout" || !strings.Contains(got.Result, "sleep did not finish within 300ms") {
		t.Errorf("%s %s %s", got.Status, got.ErrorClass, got.Result)
	}
	p.session.Close()
	if got := p.attempt.Servers[0]; got.Reconnects != 0 || p.session.Fault() != nil {
		t.Errorf("row %+v, fault %v", got, p.session.Fault())
	}
}

// TestStuck holds that a server which answers nothing more is started anew.
func TestStuck(t *testing.T) {
	b := backend(t, "local")
	server := faulty("stuck")
	server.Timeout = 200 * time.Millisecond
	p := begin(t, b, open(t, b, one(server)))
	if got := p.call("mcp_fake_sleep", `{}`); got.Status != episode.CallUnavailable || got.ErrorClass != "mcp_down" || !strings.Contains(got.Result, "neither sleep nor a ping") {
		t.Errorf("%s %s %s", got.Status, got.ErrorClass, got.Result)
	}
	if got := p.call("mcp_fake_echo", `{}`); got.Status != episode.CallOK || p.session.Fault() != nil {
		t.Errorf("afterwards %s %s, fault %v", got.Status, got.Result, p.session.Fault())
	}
}

// TestTooManyDeaths holds that an episode whose server dies again and again ends.
func TestTooManyDeaths(t *testing.T) {
	b := backend(t, "local")
	p := begin(t, b, open(t, b, one(faulty("plain"))))
	for i := range 7 {
		got := p.call("mcp_fake_die", fmt.Sprintf(`{"n":%d}`, i))
		if fault := p.session.Fault(); got.ErrorClass != "mcp_down" || (fault != nil) != (i == 6) {
			t.Errorf("death %d: %s %s, fault %v", i, got.ErrorClass, got.Result, fault)
		}
	}
}

func request(id, name, arguments string) registry.Request {
	return registry.Request{ID: id, Name: name, Arguments: arguments}
}
