package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/proof"
)

// proving is a dataset whose verifiers leave a line on this machine for each time that they judge, and a model that solves nothing.
type proving struct {
	dir      string
	requests atomic.Int64 // of completions
	base     []string     // arguments
}

// newProvingSet has three tasks: the proof of good holds, that of broken fails, and that of free is passed by doing nothing.
func newProvingSet(t *testing.T) *proving {
	t.Helper()
	p := &proving{dir: t.TempDir()}
	server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			p.requests.Add(1)
		}
		server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	p.base = []string{
		"run", "--dataset", filepath.Join(p.dir, "d.jsonl"), "--sandbox", "local", "--model", "m", "--base-url", at.URL + "/v1",
		"--proof-dir", filepath.Join(p.dir, "proofs"), "--workers", "1",
	}
	p.dataset(t, "test -f out.txt")
	return p
}

func (p *proving) dataset(t *testing.T, good string) {
	t.Helper()
	var lines []string
	for _, task := range [][3]string{{"good", "touch out.txt", good}, {"broken", "touch other.txt", "test -f out.txt"}, {"free", "touch out.txt", "true"}} {
		line, err := json.Marshal(map[string]any{
			"id": task[0], "prompt": "Make out.txt.", "gold": map[string]string{"command": task[1]},
			"verify": map[string]string{"command": fmt.Sprintf("echo %s >> %s/judged; %s", task[0], p.dir, task[2])},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	if err := os.WriteFile(filepath.Join(p.dir, "d.jsonl"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// judged counts what verifiers judged since it was last asked, by task.
func (p *proving) judged(t *testing.T) map[string]int {
	t.Helper()
	path := filepath.Join(p.dir, "judged")
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	os.Remove(path)
	count := map[string]int{}
	for _, name := range strings.Fields(string(text)) {
		count[name]++
	}
	return count
}

func (p *proving) wantJudged(t *testing.T, when string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, p.judged(t)); diff != "" {
		t.Errorf("%s: what was judged (-want +got):\n%s", when, diff)
	}
}

// proofs are those of a run's rows, without their digests, by task and sample.
func proofsOf(t *testing.T, dir string) map[string]episode.Proof {
	t.Helper()
	all := map[string]episode.Proof{}
	for _, ep := range episodes(t, dir) {
		p := episode.Proof{}
		if ep.Proof != nil {
			p = *ep.Proof
			p.Digest = ""
		}
		all[fmt.Sprintf("%s/%d", ep.Key.Task, ep.Key.Sample)] = p
	}
	return all
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	p := newProvingSet(t)
	out := func(name string) string { return filepath.Join(p.dir, name) }
	play := func(name string, args ...string) []string {
		return append(append([]string{}, p.base...), append([]string{"--out", out(name)}, args...)...)
	}
	once := map[string]int{"good": 1, "broken": 1, "free": 1}

	got := trajgen(t, play("refused", "--preflight", "must")...)
	if got.code != exitUsage || p.requests.Load() > 0 {
		t.Errorf("must: exit code %d after %d requests, want %d after none: %s", got.code, p.requests.Load(), exitUsage, got.errOut)
	}
	for _, want := range []string{"2 of 3 tasks", "broken: the task's reference solution fails", "free: doing nothing passes"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("must: %q, want %q in it", got.errOut, want)
		}
	}
	if _, err := os.Stat(out("refused")); !os.IsNotExist(err) {
		t.Errorf("a run that did not begin left %s", out("refused"))
	}
	p.wantJudged(t, "a run that must prove its tasks", map[string]int{"good": 2, "broken": 2, "free": 2})

	got = succeed(t, play("auto")...)
	if !strings.Contains(got.errOut, "2 of 3 tasks with a reference solution fail their proof") {
		t.Errorf("auto: %q, want a warning", got.errOut)
	}
	p.wantJudged(t, "the next run, which knows the proofs", once)
	want := map[string]episode.Proof{
		"good/0": {Gold: new(1.0), Noop: new(0.0)}, "broken/0": {Gold: new(0.0), Noop: new(0.0)}, "free/0": {Gold: new(1.0), Noop: new(1.0)},
	}
	if diff := cmp.Diff(want, proofsOf(t, out("auto"))); diff != "" {
		t.Errorf("proofs in rows (-want +got):\n%s", diff)
	}
	if last := got.out; !strings.Contains(last, "of 3 tasks, 2 failed") {
		t.Errorf("report %q, want the proofs in it", last)
	}

	// What is learned later is said by later runs, and not by a resume.
	digest := episodes(t, out("auto"))[0].Proof.Digest
	if err := (proof.Store{Dir: out("proofs")}).Put(episode.Proof{Digest: digest, Attacks: map[string]*float64{"preload": new(1.0)}}); err != nil {
		t.Fatal(err)
	}
	succeed(t, play("auto", "--resume", "--samples", "2", "--quiet")...)
	for name, first := range want {
		want[strings.Replace(name, "/0", "/1", 1)] = first
	}
	if diff := cmp.Diff(want, proofsOf(t, out("auto"))); diff != "" {
		t.Errorf("proofs in rows after a resume (-want +got):\n%s", diff)
	}
	succeed(t, play("later", "--quiet")...)
	if later := proofsOf(t, out("later"))["good/0"]; !cmp.Equal(later.Passed(), []string{"preload"}) {
		t.Errorf("attacks that pass in the rows of a later run: %v", later.Passed())
	}

	// Formats for trainers leave out what teaches little, and all of a task's rows together.
	exports := func(dir string, args ...string) (result struct {
		Episodes int
		Dropped  map[string]int
	}) {
		got := here(t, append([]string{"export", "--run", dir, "--to", "nemo-gym", "--out", filepath.Join(t.TempDir(), "x.jsonl"), "--json"}, args...)...)
		if err := json.Unmarshal([]byte(got.out), &result); err != nil {
			t.Fatalf("%v: %s", err, got.errOut)
		}
		return result
	}
	dropped := map[string]int{"the task's reference solution fails": 2, "doing nothing passes the task's verifier": 2}
	if got := exports(out("auto")); got.Episodes != 2 || !cmp.Equal(got.Dropped, dropped) {
		t.Errorf("export: %+v", got)
	}
	if got := exports(out("auto"), "--unsound"); got.Episodes != 6 {
		t.Errorf("export --unsound: %+v", got)
	}
	if got := exports(out("auto"), "--unsound", "--where", "proof.gold == 1 and proof.noop == 0 and len(proof.attacks) == 0"); got.Episodes != 2 {
		t.Errorf("export --where: %+v", got)
	}
	if got := exports(out("later")); got.Episodes != 0 || got.Dropped["an attack passes the task's verifier"] != 1 {
		t.Errorf("export of a task whose verifier an attack passes: %+v", got)
	}
	p.judged(t)

	// Another check is another task.
	p.dataset(t, "test -e out.txt")
	succeed(t, play("changed", "--quiet", "--preflight", "auto")...)
	p.wantJudged(t, "a run with another check", map[string]int{"good": 3, "broken": 1, "free": 1})
	// So are other conditions.
	succeed(t, play("tight", "--quiet", "--max-turns", "7")...)
	p.wantJudged(t, "a run with other limits", map[string]int{"good": 3, "broken": 3, "free": 3})
	succeed(t, play("off", "--quiet", "--max-turns", "8", "--preflight", "off")...)
	p.wantJudged(t, "a run without preflight", once)

	// Garbage proves nothing.
	files, err := filepath.Glob(filepath.Join(out("proofs"), "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("\x00garbage{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, play("garbage", "--quiet")...)
	p.wantJudged(t, "a run after garbage", map[string]int{"good": 3, "broken": 3, "free": 3})

	// A store that cannot be used keeps no run from its work, unless that must be proven.
	lost := play("lost", "--proof-dir", filepath.Join(p.dir, "d.jsonl"))
	if got := trajgen(t, append(lost, "--preflight", "must")...); got.code == 0 || !strings.Contains(got.errOut, "TRAJGEN_PROOF_DIR") {
		t.Errorf("must, without a store: exit code %d: %s", got.code, got.errOut)
	}
	if got := succeed(t, lost...); !strings.Contains(got.errOut, "the run goes on without") || !strings.Contains(got.errOut, "rows say nothing of proofs") {
		t.Errorf("auto, without a store: %s", got.errOut)
	}
	p.judged(t)

	// check always plays, and keeps what it learns.
	got = trajgen(t, "check", "--dataset", filepath.Join(p.dir, "d.jsonl"), "--sandbox", "local", "--proof-dir", out("fresh"))
	if got.code != exitFailed {
		t.Errorf("check: exit code %d: %s", got.code, got.errOut)
	}
	p.wantJudged(t, "check", map[string]int{"good": 2, "broken": 2, "free": 2})
	succeed(t, play("checked", "--quiet", "--proof-dir", out("fresh"))...)
	p.wantJudged(t, "a run after check", once)
}

// TestPreflightKilled kills a run while it proves its tasks: the same command goes on where it was, and the run is whole.
func TestPreflightKilled(t *testing.T) {
	t.Parallel()
	p := newProvingSet(t)
	gate := filepath.Join(p.dir, "gate")
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.dataset(t, fmt.Sprintf("while test -e %s; do sleep 0.02; done; test -f out.txt", gate))
	args := append(append([]string{}, p.base...), "--out", filepath.Join(p.dir, "run"), "--json")
	first := exec.Command(build(t), args...)
	first.Dir = t.TempDir()
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Process.Kill() }()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.dir, "judged")); err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("nothing was proven")
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if p.requests.Load() > 0 {
		t.Errorf("%d requests before the tasks were proven", p.requests.Load())
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	got := succeed(t, args...)
	var result report.Report
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	if proofs := result.Tasks.Proofs; proofs == nil || proofs.Tasks != 3 || proofs.Failed != 2 || p.requests.Load() != 3 {
		t.Errorf("proofs %+v after %d requests", proofs, p.requests.Load())
	}
	if _, err := run.ReadManifest(filepath.Join(p.dir, "run")); err != nil {
		t.Error(err)
	}
}
