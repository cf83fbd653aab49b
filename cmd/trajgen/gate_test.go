package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/outputs/gate"
)

// saidTasks are tasks whose answer is said at once.
func saidTasks(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"t%d","prompt":"Say done %d.","verify":{"exact":"done"},"gold":[{"content":"done"}]}`+"\n", i, i)
	}
	return text.String()
}

// judgedBy runs gate and returns its result and exit code.
func judgedBy(t *testing.T, args ...string) (r gate.Result, code int) {
	t.Helper()
	got := trajgen(t, append([]string{"gate", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("gate %v: exit code %d, %s%s", args, got.code, got.out, got.errOut)
	}
	return r, got.code
}

// TestGateOfFinishedRuns compares runs of agents of known skill.
func TestGateOfFinishedRuns(t *testing.T) {
	t.Parallel()
	dir, tasks := t.TempDir(), write(t, "d.jsonl", saidTasks(15))
	play := func(name string, skill, seed string, more ...string) string {
		out := filepath.Join(dir, name)
		succeed(t, append([]string{"run", "--dataset", tasks, "--policy", "noisy", "--skill", skill, "--seed", seed, "--samples", "8", "--sandbox", "local", "--quiet", "--out", out}, more...)...)
		return out
	}
	base, same, worse := play("base", "0.7", "1"), play("same", "0.7", "2"), play("worse", "0.3", "3")
	tests := []struct {
		name      string
		candidate string
		flags     []string
		verdict   gate.Verdict
		code      int
		reason    string
	}{
		{"nothing changed", same, []string{"--margin", "0.2", "--changes", "scripted"}, gate.Pass, 0, ""},
		{"worse", worse, []string{"--margin", "0.2", "--changes", "model,scripted"}, gate.Fail, 4, ""},
		{"too few plays", same, []string{"--margin", "0.01", "--changes", "scripted"}, gate.Inconclusive, 6, "budget"},
		{"what changed is not named", worse, nil, gate.Broken, 7, "the arms differ in policy: was noisy skill=0.7, now noisy skill=0.3"},
		{"another dataset", base, []string{"--changes", "dataset"}, gate.Broken, 7, "changes names dataset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, code := judgedBy(t, append([]string{"--base", base, "--candidate", tt.candidate}, tt.flags...)...)
			if r.Verdict != tt.verdict || code != tt.code || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("verdict %s (%s), exit code %d, want %s (%s), %d", r.Verdict, r.Reason, code, tt.verdict, tt.reason, tt.code)
			}
		})
	}

	one := play("one", "0.7", "1", "--samples", "1")
	if got := trajgen(t, "gate", "--base", one, "--candidate", one); got.code != exitUsage || !strings.Contains(got.errOut, "needs two of each task") {
		t.Errorf("one play of each task: exit code %d, %s", got.code, got.errOut)
	}
	fewer := play("fewer", "0.7", "1", "--max-tasks", "5")
	if got := trajgen(t, "gate", "--base", base, "--candidate", fewer); got.code != exitUsage || !strings.Contains(got.errOut, "played other tasks") {
		t.Errorf("other tasks: exit code %d, %s", got.code, got.errOut)
	}
	segments, err := filepath.Glob(filepath.Join(same, "journal", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments of %s: %v, %v", same, segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0xff
	if err := os.WriteFile(segments[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, code := judgedBy(t, "--base", base, "--candidate", same, "--changes", "scripted"); r.Verdict != gate.Broken || code != 7 {
		t.Errorf("a damaged journal: %+v, exit code %d, want BROKEN and 7", r, code)
	}
}

// gateFiles are run files of agents of known skill, by name.
func gateFiles(t *testing.T, tasks string, workers int, skills map[string]float64) map[string]string {
	files := map[string]string{}
	for name, skill := range skills {
		files[name] = write(t, name+".yaml", fmt.Sprintf("dataset: {path: %s}\nscripted: {policy: noisy, skill: %v}\nsandbox: {backend: local}\nplay: {workers: %d}\n", tasks, skill, workers))
	}
	return files
}

// TestGatePlays holds that a gate that plays says the same for any number of workers, and after kills.
func TestGatePlays(t *testing.T) {
	t.Parallel()
	dir, tasks := t.TempDir(), write(t, "d.jsonl", saidTasks(12))
	skills := map[string]float64{"base": 0.7, "same": 0.7, "worse": 0.2}
	gateOf := func(candidate, out string, workers int) []string {
		files := gateFiles(t, tasks, workers, skills)
		file := write(t, "gate.yaml", fmt.Sprintf("base: %s\ncandidate: %s\nout: %s\nnight: n\nseed: 3\nchanges: [scripted]\nmargin: 0.1\n", files["base"], files[candidate], filepath.Join(dir, out)))
		return []string{"-f", file}
	}
	kept := func(out string) (all string) {
		for _, name := range []string{"plan.json", "gate.json"} {
			text, err := os.ReadFile(filepath.Join(dir, out, name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		return all
	}
	if r, code := judgedBy(t, gateOf("same", "same", 8)...); r.Verdict != gate.Pass || code != 0 {
		t.Errorf("nothing changed: %+v, exit code %d, want PASS and 0", r, code)
	}
	many := gateOf("worse", "many", 64)
	r, code := judgedBy(t, many...)
	if r.Verdict != gate.Fail || code != 4 || r.High >= 0 {
		t.Errorf("worse by 50 points: %+v, exit code %d, want FAIL and 4", r, code)
	}
	want := kept("many")
	played := len(episodes(t, filepath.Join(dir, "many", "candidate")))
	if again, code := judgedBy(t, many...); again != r || code != 4 || len(episodes(t, filepath.Join(dir, "many", "candidate"))) != played {
		t.Errorf("the same command after the verdict: %+v, exit code %d, want the same and nothing played", again, code)
	}
	judgedBy(t, gateOf("worse", "one", 1)...)
	if got := kept("one"); got != want {
		t.Errorf("one worker: %s\nwant %s", got, want)
	}

	killed := gateOf("worse", "killed", 2)
	journal := filepath.Join(dir, "killed", "candidate")
	for _, least := range []int{1, 6, 12} {
		cmd := exec.Command(build(t), append([]string{"gate"}, killed...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for !exists(filepath.Join(journal, "run.json")) || len(episodes(t, journal)) < least {
			time.Sleep(5 * time.Millisecond)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}
	if exists(filepath.Join(dir, "killed", "gate.json")) {
		t.Error("the verdict was there before the last kill")
	}
	judgedBy(t, killed...)
	if got := kept("killed"); got != want {
		t.Errorf("after kills: %s\nwant %s", got, want)
	}
	if again, _ := judgedBy(t, "replay", "--out", filepath.Join(dir, "killed")); again != r {
		t.Errorf("replay: %+v, want %+v", again, r)
	}
	if got := trajgen(t, append([]string{"gate", "--margin", "0.2"}, killed...)...); got.code != exitUsage || !strings.Contains(got.errOut, "another question") {
		t.Errorf("another margin in the same directory: exit code %d, %s", got.code, got.errOut)
	}
	forged := filepath.Join(dir, "killed", "gate.json")
	if err := os.WriteFile(forged, []byte(strings.Replace(kept("killed"), "FAIL", "PASS", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := trajgen(t, "gate", "replay", "--out", filepath.Join(dir, "killed")); got.code != exitFailed || !strings.Contains(got.errOut, "says otherwise") {
		t.Errorf("replay of a gate.json that was changed: exit code %d, %s", got.code, got.errOut)
	}
}

// TestGateBroken holds that a gate whose tasks fail their proof says so before a token is paid.
func TestGateBroken(t *testing.T) {
	t.Parallel()
	p := newProvingSet(t)
	url := p.base[slices.Index(p.base, "--base-url")+1]
	file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s/d.jsonl}\nmodel: {name: m, base_url: %q}\nsandbox: {backend: local}\nplay: {proof_dir: %s/proofs}\n", p.dir, url, p.dir))
	out := filepath.Join(t.TempDir(), "out")
	r, code := judgedBy(t, "--base", file, "--candidate", file, "--out", out)
	if r.Verdict != gate.Broken || code != 7 || !strings.Contains(r.Reason, "broken: ") || !strings.Contains(r.Reason, "free: ") || strings.Contains(r.Reason, "good: ") {
		t.Errorf("%+v, exit code %d, want BROKEN for the tasks broken and free, and 7", r, code)
	}
	if p.requests.Load() > 0 || exists(filepath.Join(out, "base", "run.json")) {
		t.Errorf("%d requests were made and %s was begun, want neither", p.requests.Load(), out)
	}
}

// TestGateInterrupted holds that a gate that was interrupted in an outage goes on, and that errors which are played again cost nothing.
func TestGateInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acts := fmt.Sprintf(`{"id":"t5","setup":"test -e %s/up","prompt":"Say done.","verify":{"exact":"done"},"gold":[{"tool_calls":[{"name":"terminal","arguments":{"command":"true"}}]},{"content":"done"}]}`, dir)
	lines := strings.Split(saidTasks(12), "\n")
	lines[5] = acts // which the first step draws
	tasks := write(t, "d.jsonl", strings.Join(lines, "\n"))
	file := gateFiles(t, tasks, 2, map[string]float64{"run": 0.7})["run"]
	again := write(t, "again.yaml", "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(again, []byte(strings.Replace(string(text), "play: {", "play: {retry_errors: true, ", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := func(file, out string) []string {
		return []string{"--base", file, "--candidate", file, "--margin", "0.1", "--night", "n", "--out", filepath.Join(dir, out)}
	}
	if r, code := judgedBy(t, args(file, "down")...); r.Verdict != gate.Broken || code != 7 || !strings.Contains(r.Reason, "ended without a value") {
		t.Errorf("a task whose sandbox cannot be set up: %+v, exit code %d, want BROKEN and 7", r, code)
	}

	out := filepath.Join(dir, "out")
	cmd := exec.Command(build(t), append([]string{"gate"}, args(file, "out")...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	failed := func() (n int) {
		if exists(filepath.Join(out, "candidate", "run.json")) {
			for outcome, count := range outcomes(t, episodes(t, filepath.Join(out, "candidate"))) {
				if !outcome.AgentsDoing() {
					n += count
				}
			}
		}
		return n
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	for failed() == 0 {
		select {
		case <-ended:
			t.Fatalf("it ended before an episode did in an error: %s", cmd.ProcessState)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if got := trajgen(t, append([]string{"gate"}, args(file, "out")...)...); got.code != exitLocked {
		t.Errorf("a second one in the same directory: exit code %d, %s, want %d", got.code, got.errOut, exitLocked)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || exists(filepath.Join(out, "gate.json")) {
		t.Fatalf("interrupted: exit code %d, want %d and no verdict", code, exitInterrupted)
	}
	if err := os.WriteFile(filepath.Join(dir, "up"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, code := judgedBy(t, args(again, "out")...); r.Verdict != gate.Pass || code != 0 || r.Unresolved != 0 {
		t.Errorf("after the outage: %+v, exit code %d, want PASS with all plays resolved", r, code)
	}
	judgedBy(t, "replay", "--out", out)
}

// TestGateBudget holds that a gate whose candidate has spent its budget goes on with a higher one, and says what it would have said.
func TestGateBudget(t *testing.T) {
	t.Parallel()
	dir, tasks := t.TempDir(), write(t, "d.jsonl", saidTasks(12))
	gateWith := func(out string, tokens int) []string {
		file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s}\nscripted: {policy: noisy, skill: 0.7}\nmodel: {max_tokens: 300}\nsandbox: {backend: local}\nplay: {workers: 4}\nbudget: {tokens: %d}\n", tasks, tokens))
		return []string{"--base", file, "--candidate", file, "--margin", "0.1", "--night", "n", "--out", filepath.Join(dir, out)}
	}
	want, _ := judgedBy(t, gateWith("rich", 0)...)
	if got := trajgen(t, append([]string{"gate"}, gateWith("poor", 600_000)...)...); got.code != exitBudget || !strings.Contains(got.errOut, "with a higher one") || exists(filepath.Join(dir, "poor", "gate.json")) {
		t.Errorf("exit code %d, %s, want %d and no verdict", got.code, got.errOut, exitBudget)
	}
	if r, code := judgedBy(t, gateWith("poor", 0)...); r != want || code != 0 {
		t.Errorf("with a higher budget: %+v, exit code %d, want %+v", r, code, want)
	}
}
