package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lines decodes JSON Lines.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in line %s", err, line)
		}
		all = append(all, v)
	}
	return all
}

// TestToolsCallScript makes many calls in one sandbox, with arguments as objects and as models send them.
func TestToolsCallScript(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := write(t, "calls.jsonl", `{"name":"read_file","arguments":{"path":"a.txt","limit":"2"}}
{"name":"write_file","arguments":"{\"path\":\"b.txt\",\"content\":\"four\\n\"}"}

{"name":"terminal","arguments":{"command":"cat a.txt b.txt | wc -l; echo ${SECRET-none}; pwd"}}
{"name":"no_such_tool","arguments":{}}
{"name":"read_file","arguments":"{\"path\":"}
`)
	for _, backend := range []string{"native", "local"} {
		t.Run(backend, func(t *testing.T) {
			got := succeed(t, "tools", "call", "--script", script, "--workspace", workspace, "--sandbox", backend, "--env", "SECRET=hunter2")
			results := lines[resultLine](t, got.out)
			if len(results) != 5 {
				t.Fatalf("%d results: %s", len(results), got.out)
			}
			var statuses []string
			for _, r := range results {
				statuses = append(statuses, string(r.Status))
				if !json.Valid([]byte(r.Result)) {
					t.Errorf("%s: the result is not JSON: %s", r.Name, r.Result)
				}
			}
			if want := "ok ok ok unknown_tool invalid_arguments"; strings.Join(statuses, " ") != want {
				t.Errorf("statuses %v, want %s", statuses, want)
			}
			if len(results[0].Coerced) != 1 || results[0].Coerced[0] != "limit" || string(results[0].Arguments) != `{"path":"a.txt","limit":2}` {
				t.Errorf("coerced %v, arguments %s", results[0].Coerced, results[0].Arguments)
			}
			if !strings.Contains(results[2].Result, `4\nnone\n`) {
				t.Errorf("terminal: %s", results[2].Result)
			}
		})
	}
}

func TestToolsetsAndDistributions(t *testing.T) {
	if got := succeed(t, "toolsets", "resolve", "debugging", "--disable", "terminal").out; got != "patch\nread_file\nsearch_files\nweb_extract\nweb_search\nwrite_file\n" {
		t.Errorf("resolve: %q", got)
	}
	if got := trajgen(t, "toolsets", "resolve", "fil"); got.code != exitUsage || !strings.Contains(got.errOut, "file") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	first := succeed(t, "distributions", "sample", "balanced", "--n", "50", "--seed", "4").out
	if again := succeed(t, "distributions", "sample", "balanced", "--n", "50", "--seed", "4").out; first != again {
		t.Error("two samples with one seed differ")
	}
	if other := succeed(t, "distributions", "sample", "balanced", "--n", "50", "--seed", "5").out; first == other {
		t.Error("two samples with two seeds are equal")
	}
	for _, draw := range lines[struct {
		Toolsets []string
		LogP     *float64 `json:"log_p"`
	}](t, first) {
		if len(draw.Toolsets) == 0 || draw.LogP == nil || *draw.LogP > 0 {
			t.Errorf("draw %+v", draw)
		}
	}
	var schemas []json.RawMessage
	if err := json.Unmarshal([]byte(succeed(t, "tools", "schema").out), &schemas); err != nil || len(schemas) < 8 {
		t.Errorf("%d schemas, %v", len(schemas), err)
	}
}

func TestSandboxExec(t *testing.T) {
	cmd := exec.Command(build(t), "sandbox", "exec", "--", "sh", "-c", "cat; echo to stderr >&2; exit 7")
	cmd.Stdin = strings.NewReader("from stdin\n")
	if got := finish(t, cmd); got.code != 7 || got.out != "from stdin\n" || got.errOut != "to stderr\n" {
		t.Errorf("%+v", got)
	}
	if got := trajgen(t, "sandbox", "exec", "--", "no-such-program"); got.code != 127 {
		t.Errorf("exit code %d, want 127: %s", got.code, got.errOut)
	}
	t.Run("without a state directory", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TRAJGEN_STATE_DIR", filepath.Join(file, "state"))
		got := trajgen(t, "sandbox", "exec", "--", "true")
		if got.code != exitUsage || !strings.Contains(got.errOut, file) || !strings.Contains(got.errOut, "TRAJGEN_STATE_DIR names another") || strings.Contains(got.errOut, "namespaces") {
			t.Errorf("got %d, %s", got.code, got.errOut)
		}
		t.Setenv("TRAJGEN_STATE_DIR", filepath.Join(t.TempDir(), "state"))
		if got := trajgen(t, "sandbox", "exec", "--", "true"); got.code != 0 {
			t.Errorf("in another: got %d, %s", got.code, got.errOut)
		}
	})
	if got := trajgen(t, "sandbox", "exec", "--network", "everything", "--", "true"); got.code == 0 {
		t.Error("an unknown network was accepted")
	}
}

func TestSubcommandsThatDoNotExist(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"rnu"}, {"tools", "lst"}, {"run", "extra"}, {"report"}, {"distributions", "show"}} {
		if got := trajgen(t, args...); got.code != exitUsage || got.errOut == "" {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.errOut)
		}
	}
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"--version"}, {"tools"}, {"completion", "bash"}} {
		if got := trajgen(t, args...); got.code != 0 || got.out == "" {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.errOut)
		}
	}
}
