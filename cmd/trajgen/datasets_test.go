package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run/check"
)

// realData returns the folder with HumanEval and GSM8K, which are not part of the project: TRAJGEN_DATASETS, or
// shared/datasets beside the checkout. REQUIRE_DATASETS makes their absence a failure.
func realData(t *testing.T, name string) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("TRAJGEN_DATASETS"), filepath.Join("..", "..", "..", "shared", "datasets"))
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("REQUIRE_DATASETS") != "" {
			t.Fatal(err)
		}
		t.Skipf("%s is not here; set TRAJGEN_DATASETS", name)
	}
	return path
}

// TestRealDatasets plays HumanEval and GSM8K through their mappings: the reference solutions all succeed, doing
// nothing at each fourth task never does, and neither ends in an error outcome.
func TestRealDatasets(t *testing.T) {
	tests := []struct {
		file, mapping string
		tasks         int
		sandboxed     bool // each episode opens a sandbox
	}{
		{"HumanEval.jsonl.gz", "humaneval", 164, true},
		{"gsm8k-test.jsonl", "gsm8k", 1319, false},
	}
	for _, tt := range tests {
		path := realData(t, tt.file)
		for _, play := range []struct {
			policy string
			want   episode.Outcome
			step   int // plays each so many-th task
		}{{"oracle", episode.Success, 1}, {"noop", episode.Failure, 4}} {
			t.Run(tt.mapping+" "+play.policy, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				succeed(t, "run", "--dataset", path, "--map", tt.mapping, "--policy", play.policy, "--slice", fmt.Sprint("::", play.step), "--out", dir, "--quiet")
				all := episodes(t, dir)
				count, tasks := outcomes(t, all), (tt.tasks+play.step-1)/play.step
				if len(all) != tasks || count[play.want] != tasks {
					t.Errorf("%d episodes: %v, want %d %s", len(all), count, tasks, play.want)
				}
				for _, ep := range all {
					if tt.sandboxed && (!ep.Sandbox.Opened || ep.Sandbox.Backend != "native") {
						t.Errorf("%s: sandbox %+v, want one of its own", ep.ID, ep.Sandbox)
					}
				}
			})
		}
	}
}

// TestCheckBundled proves every bundled task.
func TestCheckBundled(t *testing.T) {
	t.Parallel()
	got := succeed(t, "check", "--dataset", "bundled", "--json")
	var result check.Proof
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	if result.Tasks < 60 || len(result.NoGold)+len(result.NoVerify)+len(result.Problems) > 0 {
		t.Errorf("check: %s", got.out)
	}
}

// TestCheckNeedsNoModel proves tasks with a run file whose models are out of reach.
func TestCheckNeedsNoModel(t *testing.T) {
	t.Parallel()
	file := write(t, "run.yaml", "dataset: {path: bundled, max_tasks: 2}\nsandbox: {backend: local}\n"+
		"model: {name: m, base_url: http://127.0.0.1:1/v1, fallbacks: [{model: spare}]}\ncontext: {summary_model: s}\nuser: {model: u}\nlimits: {usd: 1}\n")
	succeed(t, "check", "-f", file)
}

// TestCheckFindsBrokenTasks holds that check fails on a task whose solution does not score and on one that scores by
// itself.
func TestCheckFindsBrokenTasks(t *testing.T) {
	t.Parallel()
	dataset := write(t, "d.txt", `{"id":"wrong-gold","prompt":"a","verify":{"exact":"x"},"gold":"y"}
{"id":"free","prompt":"b","verify":{"command":"true"},"gold":"y"}
{"id":"breaks","prompt":"c","verify":{"command":"no-such-program"},"gold":"y"}
{"id":"good","prompt":"d","verify":{"exact":"x"},"gold":"x"}
{"id":"unready","prompt":"e","setup":"no-such-program; seq 2000; exit 3","verify":{"exact":"x"},"gold":"x"}
{"id":"unready-bare","prompt":"f","setup":"exit 3"}
{"id":"good","prompt":"g","setup":"true","verify":{"exact":"x"},"gold":"x"}
`)
	got := trajgen(t, "check", "--dataset", dataset, "--json")
	var result check.Proof
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	found := map[string]episode.Outcome{}
	for _, p := range result.Problems {
		found[p.Task+" "+p.Policy] = p.Outcome
	}
	want := map[string]episode.Outcome{"wrong-gold oracle": "failure", "free noop": "success", "breaks oracle": "verifier_error", "breaks noop": "verifier_error",
		"unready oracle": "sandbox_error", "unready-bare oracle": "sandbox_error"}
	if got.code != exitFailed || len(found) != len(want) {
		t.Errorf("exit code %d, problems %v, want %v", got.code, found, want)
	}
	for key, outcome := range want {
		if found[key] != outcome {
			t.Errorf("%s: %s, want %s", key, found[key], outcome)
		}
	}
	for _, p := range result.Problems {
		if p.Task == "unready" && !strings.Contains(p.Detail, "no-such-program: command not found") {
			t.Errorf("%s: %s, want its first error", p.Task, p.Detail)
		}
	}
	for _, want := range []string{"1 tasks have the id of an earlier one, such as good: they are played under ids of their own (good#2)", "d.txt is read as json: that shows in its content, not in its name"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("stderr %q, want %q", got.errOut, want)
		}
	}
}

// TestDatasetsShowCountsWhatIsBroken holds that a large dataset with many broken rows is understood at a glance.
func TestDatasetsShowCountsWhatIsBroken(t *testing.T) {
	var rows strings.Builder
	for i := range 30 {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&rows, "{\"id\": \"same\", \"prompt\": \"p\"}\n")
		case 1:
			fmt.Fprintf(&rows, "{\"prompt\": \"p\", \"network\": \"net%d\"}\n", i)
		default:
			rows.WriteString("{}\n")
		}
	}
	path := write(t, "rows.txt", rows.String())
	got := trajgen(t, "datasets", "show", path, "--n", "0")
	for _, want := range []string{"9 tasks have the id of an earlier one", "10 of 20 broken rows: network: unknown mode … (have none,", "10 of 20 broken rows: there is no prompt"} {
		if got.code != exitUsage || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, want %q in\n%s", got.code, want, got.out)
		}
	}
	_, seen := shownTasks(t, path, "--skip-bad-rows")
	if seen.Repeated != 9 || seen.Reasons["network: unknown mode … (have none, loopback, allowlist, full)"] != 10 || !seen.Files[0].Guessed {
		t.Errorf("as JSON: %d repeated, %v, %+v", seen.Repeated, seen.Reasons, seen.Files)
	}
}

// TestVerifierError holds that a verifier that breaks leaves no reward, and that the exit code says so.
func TestVerifierError(t *testing.T) {
	t.Parallel()
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"a","verify":{"command":"no-such-program"},"gold":"y"}`+"\n"+`{"id":"b","prompt":"b","verify":{"exact":"y"},"gold":"y"}`)
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--policy", "oracle", "--out", dir, "--quiet"}
	if got := trajgen(t, args...); got.code != exitErrors {
		t.Errorf("exit code %d, want %d: %s", got.code, exitErrors, got.errOut)
	}
	ep := episodes(t, dir)[0]
	if ep.Outcome != episode.VerifierError || ep.Reward != nil || ep.Fault == nil || ep.Fault.Class != "exit_127" {
		t.Errorf("episode: %s, reward %v, fault %+v", ep.Outcome, ep.Reward, ep.Fault)
	}
	succeed(t, append(args, "--resume", "--max-error-share", "0.5")...)
}

// TestReportNumbers holds that the report counts what the journal holds.
func TestReportNumbers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", "bundled", "--policy", "oracle", "--max-tasks", "5", "--out", dir, "--quiet")
	got := succeed(t, "report", "--run", dir, "--json")
	var report report.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Episodes.Present != 5 || report.Episodes.Judged != 5 {
		t.Errorf("report: %+v", report.Episodes)
	}
	for _, name := range []string{"report.json", "report.md", "run.json", "log.jsonl"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSkipUnplayableRows holds that rows that cannot be played here are skipped like broken ones.
func TestSkipUnplayableRows(t *testing.T) {
	t.Parallel()
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"a","verify":{"exact":"x"},"gold":"x"}
{"id":"b","prompt":"b","toolsets":["nosuch"]}
{"id":"c","prompt":"c","network":"allowlist"}
`)
	if got := trajgen(t, "run", "--dataset", dataset, "--policy", "oracle"); got.code != exitUsage || !strings.Contains(got.errOut, "nosuch") || !strings.Contains(got.errOut, "allowlist") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	dir := filepath.Join(t.TempDir(), "run")
	got := succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--skip-bad-rows", "--out", dir, "--quiet")
	if all := episodes(t, dir); len(all) != 1 || !strings.Contains(got.errOut, "nosuch") {
		t.Errorf("%d episodes: %s", len(all), got.errOut)
	}
}

// TestWiderNetwork holds that nobody's tasks open a network unnoticed.
func TestWiderNetwork(t *testing.T) {
	t.Parallel()
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"a","verify":{"exact":"x"},"gold":"x"}
{"id":"b","prompt":"b","network":"full","verify":{"exact":"x"},"gold":"x"}
`)
	const told = "1 of 2 tasks open the network further than the run's "
	args := []string{"run", "--dataset", dataset, "--policy", "oracle", "--quiet", "--network"}
	if got := succeed(t, append(args, "none", "--out", filepath.Join(t.TempDir(), "run"))...); !strings.Contains(got.errOut, told+"none: ") {
		t.Errorf("stderr %q, want %q in it", got.errOut, told)
	}
	if got := succeed(t, append(args, "full", "--out", filepath.Join(t.TempDir(), "run"))...); strings.Contains(got.errOut, "open the network") {
		t.Errorf("stderr %q of a run whose network is full", got.errOut)
	}
}

// TestExportThroughWhatIsNoFile holds that a pipe, a link and stdout stay what they are.
func TestExportThroughWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir, at := filepath.Join(t.TempDir(), "run"), t.TempDir()
	succeed(t, "run", "--dataset", "bundled", "--policy", "noop", "--max-tasks", "2", "--out", dir, "--quiet")
	want := succeed(t, "export", "--run", dir, "--to", "jsonl", "--out", "-").out
	if strings.Count(want, "\n") != 2 {
		t.Fatalf("stdout: %q", want)
	}
	link, target := filepath.Join(at, "link"), filepath.Join(at, "target")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	succeed(t, "export", "--run", dir, "--to", "jsonl", "--out", link)
	if got, err := os.ReadFile(target); err != nil || string(got) != want {
		t.Errorf("the link's target holds %d bytes, %v", len(got), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	succeed(t, "export", "--run", dir, "--to", "jsonl", "--out", filepath.Join(at, "a", "new", "directory"))
	if got := trajgen(t, "export", "--run", dir, "--to", "jsonl", "--out", filepath.Join(target, "x")); got.code != exitUsage {
		t.Errorf("exit code %d below a file: %s", got.code, got.errOut)
	}
}
