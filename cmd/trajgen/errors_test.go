package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
)

// endpoint serves the scripted model over a real socket.
func endpoint(t *testing.T, cfg scripted.Config) string {
	t.Helper()
	if cfg.Policy == "" {
		cfg.Policy = "noop"
	}
	server, err := scripted.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return url
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUsersMistakes holds that each gives one clear line that says what to do, exit code 2, and starts nothing.
func TestUsersMistakes(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := "http://" + closed.Addr().String() + "/v1"
	closed.Close()
	t.Setenv("OPENAI_API_KEY", "not-the-key")
	locked := endpoint(t, scripted.Config{Model: "m", APIKey: "the-key"})
	served := endpoint(t, scripted.Config{Model: "m"})
	occupied := filepath.Dir(write(t, "file", "x"))
	task := `{"id":"a","prompt":"p"}` + "\n"
	bundled := []string{"--dataset", "bundled", "--policy", "oracle"}

	tests := []struct {
		name string
		args []string
		want []string // in the message
	}{
		{"wrong key", []string{"--dataset", "bundled", "--model", "m", "--base-url", locked, "--api-key-env", "OPENAI_API_KEY"}, []string{"key"}},
		{"endpoint down", []string{"--dataset", "bundled", "--model", "m", "--base-url", down}, []string{"refused", down}},
		{"model unknown", []string{"--dataset", "bundled", "--model", "other", "--base-url", served}, []string{`"other"`, "m"}},
		{"no model", []string{"--dataset", "bundled"}, []string{"--model", "--policy"}},
		{"no dataset", []string{"--policy", "oracle"}, []string{"--dataset"}},
		{"dataset missing", []string{"--dataset", "no-such.jsonl", "--policy", "oracle"}, []string{"no-such.jsonl"}},
		{"dataset empty", []string{"--dataset", write(t, "empty.jsonl", ""), "--policy", "oracle"}, []string{"no rows", "empty.jsonl"}},
		{"row broken", []string{"--dataset", write(t, "bad.jsonl", task+"{\"id\":\"b\"}\n"), "--policy", "oracle"}, []string{"bad.jsonl", "2", "prompt"}},
		{"unwritable output", append(bundled, "--out", "/proc/nowhere/run"), []string{"/proc/nowhere/run"}},
		{"output in use", append(bundled, "--out", occupied), []string{"not empty", "--resume"}},
		{"resume of nothing", append(bundled, "--out", filepath.Join(t.TempDir(), "none"), "--resume"), []string{"run.json"}},
		{"toolset unknown", append(bundled, "--toolsets", "terminl"), []string{`"terminl"`, "terminal"}},
		{"toolset unknown in a row", []string{"--dataset", write(t, "t.jsonl", `{"id":"a","prompt":"p","toolsets":["fille"]}`), "--policy", "noop"}, []string{`"fille"`, "file"}},
		{"distribution unknown", append(bundled, "--distribution", "developmnt"), []string{"developmnt", `did you mean "development"?`}},
		{"distribution without tools", append(bundled, "--distribution", write(t, "looks.yaml", "name: looks\ndescription: nothing but pictures\ntoolsets: {spotify: 100}\n")), []string{"none of its toolsets has a tool", "spotify", "trajgen toolsets list"}},
		{"distribution with draws without tools", append(bundled, "--distribution", "reasoning"), []string{"distribution reasoning: ", "episodes would draw only toolsets without an available tool (moa)", "--toolsets"}},
		{"toolset without tools in a row", []string{"--dataset", write(t, "t.jsonl", `{"id":"a","prompt":"p","toolsets":["spotify"]}`), "--policy", "noop"}, []string{"row 1", "[spotify]", "outside of what trajgen is for"}},
		{"cwd that cannot be", []string{"--dataset", write(t, "w.jsonl", `{"id":"a","prompt":"p","cwd":"/usr/bin/x"}`), "--policy", "noop"}, []string{"row 1", `cwd: workdir "/usr/bin/x" is not a place for work`}},
		{"approver missing", append(bundled, "--command-policy", "approve", "--approver", "./no-such-approver"), []string{"approver", "./no-such-approver"}},
		{"approver without a terminal", append(bundled, "--command-policy", "approve", "--approver", "prompt"), []string{"needs a terminal"}},
		{"approver model unknown", append(bundled, "--command-policy", "approve", "--approver", "model", "--approver-model", "other", "--approver-base-url", served), []string{"approver model", `"other"`}},
		{"allow list missing", append(bundled, "--network", "allowlist"), []string{"--allow"}},
		{"allow list wrong", append(bundled, "--network", "allowlist", "--allow", "https://example.org/x,127.0.0.1"), []string{"https://", "loopback"}},
		{"allow list missing for a row", []string{"--dataset", write(t, "n.jsonl", `{"id":"a","prompt":"p","network":"allowlist"}`), "--policy", "noop"}, []string{"row 1", "--allow"}},
		{"image missing", append(bundled, "--image", "dir:/no/such/image"), []string{"dir:/no/such/image", "no such file"}},
		{"image missing of a row", []string{"--dataset", write(t, "i.jsonl", `{"id":"a","prompt":"p","image":"oci:/no/such/layout"}`), "--policy", "noop"}, []string{"oci:/no/such/layout"}},
		{"policy unknown", []string{"--dataset", "bundled", "--policy", "orcle"}, []string{"orcle", "oracle"}},
		{"sandbox unknown", append(bundled, "--sandbox", "dokker"), []string{"dokker", "native"}},
		{"root not offered", []string{"--dataset", write(t, "r.jsonl", `{"id":"a","prompt":"p","root":"writable"}`), "--policy", "noop", "--sandbox", "local"}, []string{"row 1", "root: writable: the local sandbox"}},
		{"network not offered", append(bundled, "--network", "internet"), []string{"internet", "loopback"}},
		{"bad YAML", []string{"-f", write(t, "bad.yaml", "dataset: [")}, []string{"bad.yaml", "line"}},
		{"unknown key", []string{"-f", write(t, "key.yaml", "datset: x\n")}, []string{"key.yaml:1:", "datset", "dataset"}},
		{"wrong type", []string{"-f", write(t, "type.yaml", "samples: many\n")}, []string{"type.yaml", "many"}},
		{"bad flag value", append(bundled, "--samples", "many"), []string{"--samples", "many"}},
		{"unknown flag", append(bundled, "--sampels", "3"), []string{"--sampels", "--samples"}},
		{"no samples", append(bundled, "--samples", "0"), []string{"samples"}},
		{"toolsets and distribution", append(bundled, "--toolsets", "file", "--distribution", "default"), []string{"leave one out"}},
		{"key variable empty", []string{"--dataset", "bundled", "--model", "m", "--api-key-env", "NO_SUCH_VARIABLE"}, []string{"NO_SUCH_VARIABLE"}},
		{"mapping unknown", append(bundled, "--map", "humanevil"), []string{"humanevil", "humaneval"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := here(t, append([]string{"run"}, tt.args...)...)
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("message does not speak of %q", want)
				}
			}
			if lines := strings.Count(strings.TrimSpace(got.errOut), "\n") + 1; lines > 2 {
				t.Errorf("%d lines, want one", lines)
			}
			if got.out != "" {
				t.Errorf("stdout: %s", got.out)
			}
			if t.Failed() {
				t.Log(got.errOut)
			}
		})
	}
}

// TestWithoutSandboxes holds that a run without a sandbox says so and nothing else, though its dataset is read meanwhile.
func TestWithoutSandboxes(t *testing.T) {
	rows := write(t, "rows.jsonl", "{broken\n"+`{"id":"a","prompt":"p","network":"full","verify":{"command":"x","reward":"file"}}`+"\n")
	for _, args := range [][]string{{"--skip-bad-rows"}, {"--toolsets", "terminl"}, nil} {
		got := here(t, append([]string{"run", "--dataset", rows, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--sandbox", "local", "--isolation", "landlock"}, args...)...)
		if want := "the local sandbox reaches isolation level none"; got.code != exitUsage || !strings.Contains(got.errOut, want) || strings.Contains(got.errOut, "row") || strings.Contains(got.errOut, "terminl") {
			t.Errorf("%v: exit code %d, want %d with %q alone: %s", args, got.code, exitUsage, want, got.errOut)
		}
	}
}

func TestSkipBadRows(t *testing.T) {
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"p","verify":{"exact":"x"},"gold":"x"}`+"\n{broken\n"+`{"id":"c","prompt":"q","verify":{"exact":"y"},"gold":"y"}`+"\n")
	dir := filepath.Join(t.TempDir(), "run")
	got := succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--skip-bad-rows", "--out", dir, "--quiet")
	if !strings.Contains(got.errOut, "d.jsonl") || !strings.Contains(got.errOut, "2") {
		t.Errorf("stderr does not name the broken row: %s", got.errOut)
	}
	if all := episodes(t, dir); len(all) != 2 || all[1].Row != 2 {
		t.Errorf("%d episodes", len(all))
	}
}

// TestResumeRefusesAnotherExperiment shows the difference.
func TestResumeRefusesAnotherExperiment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "bundled", "--policy", "noop", "--max-tasks", "3", "--out", dir, "--quiet"}
	succeed(t, args...)
	got := trajgen(t, append(args, "--resume", "--seed", "8", "--max-turns", "3")...)
	if got.code != exitUsage || !strings.Contains(got.errOut, "seed: was 0, now 8") || !strings.Contains(got.errOut, "max_turns: was 30, now 3") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	succeed(t, append(args, "--resume", "--samples", "3", "--workers", "2")...)
	if all := episodes(t, dir); len(all) != 9 {
		t.Errorf("%d episodes after raising the samples, want 9", len(all))
	}
	// Without a run file, a resume knows the experiment from the run directory.
	succeed(t, "run", "--resume", "--out", dir, "--samples", "4", "--quiet")
	if all := episodes(t, dir); len(all) != 12 {
		t.Errorf("%d episodes after the second raise, want 12", len(all))
	}
}

// TestOutage takes the endpoint away in the middle of a run: exit code 1, nothing lost, and a resume ends it.
func TestOutage(t *testing.T) {
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m", Delay: "20ms"})
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(server.Handler())
	t.Cleanup(up.Close)
	var requests atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 10 {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"message":"key revoked","type":"invalid_request_error","code":"invalid_api_key"}}`))
			return
		}
		server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "bundled", "--max-tasks", "14", "--model", "m", "--out", dir, "--quiet", "--workers", "1"}
	t.Setenv("OPENAI_API_KEY", "k")
	got := trajgen(t, append(args, "--base-url", proxy.URL+"/v1")...)
	if got.code != exitFailed || !strings.Contains(got.errOut, "key revoked") || !strings.Contains(got.errOut, "--resume") {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	before := len(episodes(t, dir))
	if before < 7 || before > 10 {
		t.Errorf("%d episodes are kept, want those before the outage", before)
	}
	succeed(t, append(args, "--base-url", up.URL+"/v1", "--resume")...)
	all := episodes(t, dir)
	count := outcomes(t, all)
	if len(all) <= before || count["failure"] != len(all) {
		t.Errorf("outcomes after resume: %v", count)
	}
}

// TestResumeOfAWholeRun holds that a resume with nothing to play asks no model, and that one with something to play finds out
// before it begins that the model is not there.
func TestResumeOfAWholeRun(t *testing.T) {
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(server.Handler())
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "bundled", "--max-tasks", "3", "--model", "m", "--base-url", up.URL + "/v1", "--user-model", "m", "--api-key-env", "WHOLE_RUN_KEY", "--out", dir}
	t.Setenv("WHOLE_RUN_KEY", "sk-1234567890")
	succeed(t, args...)
	up.Close()
	os.Unsetenv("WHOLE_RUN_KEY")
	succeed(t, append(args, "--resume", "--json")...)
	if err := os.Remove(filepath.Join(dir, "report.json")); err != nil {
		t.Fatal(err)
	}
	succeed(t, append(args, "--resume", "--retry-errors")...) // of which there are none
	if _, err := os.Stat(filepath.Join(dir, "report.json")); err != nil {
		t.Errorf("no report was made: %v", err)
	}
	wantRefused := func(want string) {
		t.Helper()
		got := trajgen(t, append(args, "--resume", "--samples", "2")...)
		if got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("exit code %d, want %d and %q: %s", got.code, exitUsage, want, got.errOut)
		}
	}
	wantRefused("environment variable WHOLE_RUN_KEY is empty")
	t.Setenv("WHOLE_RUN_KEY", "sk-1234567890")
	wantRefused("cannot reach")
}

// TestTwoRunners holds that of two runners on one directory the second is refused and changes nothing. The first one's model keeps
// it waiting meanwhile.
func TestTwoRunners(t *testing.T) {
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			select {
			case <-refused:
			case <-r.Context().Done():
			}
		}
		server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	dir := filepath.Join(t.TempDir(), "run")
	dataset := tasks(t, 4)
	args := func(seed string) []string {
		return []string{"run", "--dataset", dataset, "--model", "m", "--base-url", slow.URL + "/v1", "--workers", "2", "--seed", seed, "--out", dir, "--quiet"}
	}
	first := exec.Command(build(t), args("1")...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the first run did not start")
		}
	}
	for _, tt := range []struct {
		args []string
		want int
	}{{args("2"), exitUsage}, {append(args("2"), "--resume"), exitLocked}, {append(args("1"), "--resume"), exitLocked}} {
		if got := trajgen(t, tt.args...); got.code != tt.want {
			t.Errorf("%v: exit code %d, want %d: %s", tt.args, got.code, tt.want, got.errOut)
		}
	}
	close(refused)
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if m, err := run.ReadManifest(dir); err != nil || m.RunFile.Seed != 1 {
		t.Errorf("run.json has seed %d, %v", m.RunFile.Seed, err)
	}
}

// TestDeadBeforeItBegan holds that what a run leaves that died before its first episode stands in nobody's way.
func TestDeadBeforeItBegan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(dir, "journal"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".tmp-123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, "run", "--dataset", "bundled", "--policy", "noop", "--max-tasks", "1", "--out", dir, "--quiet")
}

// TestSecretsAreNotWritten looks for the key, and the value of a secret header, in everything that a run leaves.
func TestSecretsAreNotWritten(t *testing.T) {
	t.Setenv("MY_KEY", "key-1234567890")
	t.Setenv("GATEWAY_KEY", "gateway-0987654321")
	url := endpoint(t, scripted.Config{Model: "m", APIKey: "key-1234567890"})
	file := write(t, "run.yaml", "model: {header_env: {X-Gateway-Key: GATEWAY_KEY}, headers: {X-Team: evals}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "bundled", "--max-tasks", "2", "--model", "m", "--base-url", url, "--api-key-env", "MY_KEY", "-f", file, "--out", dir}
	learn := succeed(t, args...)
	var all strings.Builder
	all.WriteString(learn.out + learn.errOut)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"key-1234567890", "gateway-0987654321"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%s was written", secret)
		}
	}
	open := write(t, "open.yaml", "model: {headers: {api-key: gateway-0987654321}}\n")
	if got := trajgen(t, append(args[:len(args)-3], open, "--out", filepath.Join(t.TempDir(), "run"))...); got.code != exitUsage || !strings.Contains(got.errOut, "header_env") {
		t.Errorf("a secret header was accepted: exit code %d: %s", got.code, got.errOut)
	}
}

// TestEchoedSecretsAreNotWritten has a server that says the key, and the value of a secret header, in every part of its
// replies: no episode, Parquet file, tape, report or export has them.
func TestEchoedSecretsAreNotWritten(t *testing.T) {
	t.Setenv("MY_KEY", "key-1234567890")
	t.Setenv("GATEWAY_KEY", "gateway-0987654321")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard := r.Header.Get("Authorization") + " " + r.Header.Get("X-Gateway-Key")
		w.Header().Set("X-Request-Id", heard)
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("Garble")) {
			fmt.Fprintf(w, "<p>%s</p>", heard)
			return
		}
		if bytes.Contains(body, []byte("Fail")) {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = fmt.Fprintf(w, `{"id":%[1]q,"data":[{"id":"m"}],"model":%[1]q,"error":null,"message":%[1]q,"system_fingerprint":%[1]q,`+
			`"choices":[{"message":{"content":%[1]q,"reasoning_content":%[1]q},"finish_reason":"stop"}]}`, heard)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := write(t, "run.yaml", "model: {header_env: {X-Gateway-Key: GATEWAY_KEY}}\n")
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"Say it."}`+"\n"+`{"id":"b","prompt":"Fail."}`+"\n"+`{"id":"c","prompt":"Garble."}`)
	run, replayed, taped := filepath.Join(dir, "run"), filepath.Join(dir, "replayed"), filepath.Join(dir, "tape")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--request-retries", "1", "--episode-retries", "0"}
	got := trajgen(t, append(args, "--base-url", server.URL, "--api-key-env", "MY_KEY", "-f", file, "--record", taped, "--out", run)...)
	if got.code != exitErrors {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	if got := trajgen(t, append(args, "--replay", taped, "--out", replayed)...); got.code != exitErrors { // what the tape has
		t.Fatalf("from the tape: exit code %d: %s", got.code, got.errOut)
	}
	more := succeed(t, "export", "--run", run, "--to", "openai", "--out", filepath.Join(dir, "openai.jsonl"))
	all := []string{got.out, got.errOut, more.out}
	for _, ep := range slices.Concat(episodes(t, run), episodes(t, replayed), fromParquet(t, run)) {
		text, err := json.Marshal(ep)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	for _, name := range []string{"run/report.json", "run/report.md", "run/log.jsonl", "openai.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	for _, text := range all {
		if strings.Contains(text, "key-1234567890") || strings.Contains(text, "gateway-0987654321") {
			t.Errorf("a secret is written: %s", text)
		}
	}
	if n := strings.Count(strings.Join(all, ""), "[secret] [secret]"); n < 12 {
		t.Errorf("what the server said is there %d times: %s", n, strings.Join(all, "\n"))
	}
}

// TestOutageIsNoScore holds that an endpoint that is down, for longer than an episode may last and than the run waits
// for it, costs no episode anything: the run stops, none is journaled, and a resume plays them as if for the first time.
func TestOutageIsNoScore(t *testing.T) {
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() && strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
			return
		}
		server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"a","verify":{"exact":"x"},"gold":"x"}`+"\n"+`{"id":"b","prompt":"b","verify":{"exact":"y"},"gold":"y"}`)
	server.Learn(&episode.Task{ID: "a"})
	server.Learn(&episode.Task{ID: "b"})
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", proxy.URL + "/v1", "--episode-timeout", "200ms",
		"--request-retries", "0", "--max-errors-in-row", "1", "--outage-limit", "500ms", "--out", dir}
	down.Store(true)
	got := trajgen(t, args...)
	if got.code != exitFailed || !strings.Contains(got.errOut, "outage limit") || !strings.Contains(got.errOut, "--resume") {
		t.Errorf("exit code %d, want %d: %s", got.code, exitFailed, got.errOut)
	}
	if !strings.Contains(got.errOut, "paused: ") || !strings.Contains(got.errOut, " does not answer (status 503: overloaded), since ") {
		t.Errorf("the progress says nothing of a pause: %s", got.errOut)
	}
	if all := episodes(t, dir); len(all) != 0 {
		t.Errorf("%d episodes are journaled", len(all))
	}
	down.Store(false)
	succeed(t, append(args, "--resume")...)
	all := episodes(t, dir)
	for _, ep := range all {
		if ep.Outcome != episode.Failure || ep.Attempt != 1 || len(ep.Earlier) != 0 {
			t.Errorf("%s: %s, attempt %d, earlier %+v", ep.Key.Task, ep.Outcome, ep.Attempt, ep.Earlier)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d episodes, want 2", len(all))
	}
}

// TestModelErrorIsNoScore holds that a request that the endpoint fails at costs its episode no reward: it is an error
// outcome, the others go on, and a later resume plays it again.
func TestModelErrorIsNoScore(t *testing.T) {
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if broken.Load() && strings.Contains(string(body), "poison") {
			http.Error(w, `{"error":{"message":"cannot do that"}}`, http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"poison","verify":{"exact":"x"},"gold":"x"}`+"\n"+`{"id":"b","prompt":"bread","verify":{"exact":"y"},"gold":"y"}`)
	server.Learn(&episode.Task{ID: "a"})
	server.Learn(&episode.Task{ID: "b"})
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", proxy.URL + "/v1", "--episode-retries", "0", "--request-retries", "0", "--out", dir, "--quiet"}
	broken.Store(true)
	if got := trajgen(t, args...); got.code != exitErrors {
		t.Errorf("exit code %d, want %d: %s", got.code, exitErrors, got.errOut)
	}
	for _, ep := range episodes(t, dir) {
		bad := ep.Outcome != episode.ModelError || ep.Reward != nil || ep.Fault.Class != "server"
		if ep.Key.Task == "b" {
			bad = ep.Outcome != episode.Failure
		}
		if bad {
			t.Errorf("%s: %s, reward %v, %+v", ep.Key.Task, ep.Outcome, ep.Reward, ep.Fault)
		}
	}
	broken.Store(false)
	succeed(t, append(args, "--resume", "--retry-errors")...)
	for _, ep := range episodes(t, dir) {
		attempt := map[string]int{"a": 2, "b": 1}[ep.Key.Task]
		if ep.Outcome != episode.Failure || ep.Attempt != attempt || len(ep.Earlier) != attempt-1 || attempt == 2 && ep.Earlier[0].Fault.Class != "server" {
			t.Errorf("%s: %s, attempt %d, earlier %+v", ep.Key.Task, ep.Outcome, ep.Attempt, ep.Earlier)
		}
	}
	if m, err := run.ReadManifest(dir); err != nil || m.RunFile.Play.RetryErrors {
		t.Errorf("retry_errors sticks to the run: %v, %v", m.RunFile.Play.RetryErrors, err)
	}
}
