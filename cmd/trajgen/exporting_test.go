package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
)

// runOf makes a run directory of four tasks and eight episodes.
func runOf(t *testing.T, seed string, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run-"+seed)
	succeed(t, append([]string{"run", "--dataset", "bundled", "--policy", "noisy", "--sandbox", "local", "--max-tasks", "4", "--samples", "2",
		"--seed", seed, "--out", dir, "--quiet"}, flags...)...)
	return dir
}

// filesBelow are the contents of what is in a directory.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestExportSaysWhatCameOfIt(t *testing.T) {
	t.Parallel()
	run, at := runOf(t, "1"), t.TempDir()
	var got export.Result
	text := succeed(t, "export", "--run", run, "--to", "arrow", "--out", filepath.Join(at, "arrow"), "--where", "row < 3", "--per-task", "best", "--json").out
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Episodes != 3 || got.Dropped["the condition does not hold"] != 2 || got.Dropped["other samples of the task are better"] != 3 || len(got.Files) != 2 {
		t.Errorf("result %+v, want 3 episodes, 2 and 3 left out, 2 files", got)
	}
	said := succeed(t, "export", "--from", filepath.Join(at, "arrow"), "--to", "jsonl", "--out", filepath.Join(at, "a.jsonl"), "--max", "2").errOut
	if !strings.Contains(said, "note: the episodes were read from rows, which lack") || !strings.Contains(said, "ended after 2 episodes") {
		t.Errorf("stderr %q, want notes about what rows lack and that there are more", said)
	}
	// The same rows by way of the Parquet files, and of the journal.
	succeed(t, "export", "--from", run, "--to", "parquet", "--out", filepath.Join(at, "again"))
	for _, table := range []string{"trajectories", "tool_calls"} {
		if !maps.Equal(filesBelow(t, filepath.Join(run, table)), filesBelow(t, filepath.Join(at, "again", table))) {
			t.Errorf("%s read back and written again are other bytes", table)
		}
	}
	if list := succeed(t, "export", "--list").out; !strings.Contains(list, "--set license=…") {
		t.Errorf("export --list:\n%s", list)
	}
}

// TestLicenseGoesAlong plays a dataset folder and exports one: the card of the second has the license of the first.
func TestLicenseGoesAlong(t *testing.T) {
	at := t.TempDir()
	for name, text := range map[string]string{
		"README.md":   "---\nlicense: cc-by-4.0\n---\n# Tasks\n",
		"train.jsonl": `{"id":"a","prompt":"Say x.","verify":{"exact":"x"},"gold":"x"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, out := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "out")
	succeed(t, "run", "--dataset", at, "--policy", "oracle", "--sandbox", "local", "--toolsets", "file", "--out", run, "--quiet")
	succeed(t, "export", "--run", run, "--to", "hf", "--out", out)
	if card := filesBelow(t, out)["/README.md"]; !strings.Contains(card, "license: cc-by-4.0\n") {
		t.Errorf("the card does not have the license:\n%s", card)
	}
}

func TestExportSaysWhatIsWrong(t *testing.T) {
	at := t.TempDir()
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"--run", "x", "--from", "y", "--json"}, []string{"either --run RUN_DIRECTORY or --from PATH", "needs --to", "needs --out"}},
		{[]string{"--from", at, "--to", "jsonl", "--out", "-", "--json", "--set", "x"}, []string{"both for stdout", `--set "x" (want NAME=VALUE)`}},
		{[]string{"--from", wholeEpisodes(t, 2), "--to", "jsonl", "--out", "x", "--where", "meta.levl == nil"}, []string{"no row has meta.levl (have "}},
		{[]string{"--from", write(t, "rows.txt", "{}\n"), "--to", "jsonl", "--out", "x"}, []string{`unknown kind of file ".txt"`, "ends in .jsonl: it holds JSON Lines"}},
		{[]string{"--from", at, "--to", "jsonl", "--out", "x"}, []string{"want a run directory or an export"}},
	}
	for _, tt := range tests {
		got := trajgen(t, append([]string{"export"}, tt.args...)...)
		for _, want := range tt.want {
			if got.code != exitUsage || !strings.Contains(got.errOut, want) {
				t.Errorf("%v: exit code %d, %q; want %d with %q", tt.args, got.code, got.errOut, exitUsage, want)
			}
		}
	}
}

// A run that has ended loses the end of its journal, and is repaired: at no moment has an export fewer episodes than were
// played, or planned, without saying so.
func TestExportOfAnIncompleteRun(t *testing.T) {
	t.Parallel()
	run := runOf(t, "2")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	segment := filepath.Join(run, "journal", "000001.seg")
	info, err := os.Stat(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(segment, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	check := func(code int, want string, args ...string) {
		t.Helper()
		if got := trajgen(t, args...); got.code != code || !strings.Contains(got.out+got.errOut, want) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s%s", args, got.code, code, want, got.out, got.errOut)
		}
	}
	exporting := []string{"export", "--run", run, "--to", "jsonl", "--out", out}
	check(exitFailed, "is damaged at byte", exporting...)
	check(exitFailed, "attempt 1) (trajgen repair --run", "verify", "--run", run)
	check(exitFailed, "nothing was changed; 1 episodes would be played again", "repair", "--run", run)
	check(exitDone, "taken out", "repair", "--run", run, "--yes")
	check(exitErrors, "has played 7 of 8 episodes; trajgen run --resume plays the rest", exporting...)
	check(exitErrors, "has played 7 of 8 episodes", append(exporting, "--json")...)
	check(exitDone, "note: "+run+" has played 7 of 8 episodes", append(exporting, "--partial")...)
	check(exitErrors, "has played 7 of 8 episodes", "compress", "--run", run, "--budget", "1000000", "--out", out)
	check(exitDone, "", "run", "--resume", "--out", run, "--quiet")
	check(exitDone, "", exporting...)
	if data, err := os.ReadFile(out); err != nil || strings.Count(string(data), "\n") != 8 {
		t.Errorf("%d episodes in the end, %v", strings.Count(string(data), "\n"), err)
	}
}

// An export that is killed, interrupted or out of space leaves the earlier one as it was; the next one finds nothing in
// its way and leaves nothing but itself.
func TestExportThatDies(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	var lines bytes.Buffer
	for _, ep := range sinktest.Episodes(40) {
		line, err := journal.Encode(ep)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(line)
	}
	whole, pipe, out := filepath.Join(at, "whole.jsonl"), filepath.Join(at, "pipe.jsonl"), filepath.Join(at, "out")
	if err := os.WriteFile(whole, lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"parquet", "arrow", "hf", "jsonl"} {
		to := filepath.Join(out, format)
		if err := os.MkdirAll(out, 0o777); err != nil {
			t.Fatal(err)
		}
		succeed(t, "export", "--from", whole, "--to", format, "--out", to, "--max", "3")
		earlier := filesBelow(t, out)
		for _, signal := range []os.Signal{os.Kill, os.Interrupt} {
			cmd := exec.Command(build(t), "export", "--from", pipe, "--to", format, "--out", to)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			feed, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
			if err != nil {
				t.Fatal(err)
			}
			if _, err := feed.Write(lines.Bytes()); err != nil { // more than a pipe holds: it was being read
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			// The end of the pipe would be the end of the export, which may come before the signal: it stays open until the
			// process has ended.
			_ = cmd.Wait()
			feed.Close()
			now := filesBelow(t, out)
			for name, data := range earlier {
				if now[name] != data {
					t.Errorf("%s, %v: %s of the earlier export has changed", format, signal, name)
				}
			}
			if code := cmd.ProcessState.ExitCode(); signal == os.Interrupt && (code != exitInterrupted || len(now) > len(earlier)) {
				t.Errorf("%s, interrupted: exit code %d (want %d), left behind %v", format, code, exitInterrupted, slices.Sorted(maps.Keys(now)))
			}
		}
		full := exec.Command("bash", "-c", `ulimit -f 4; exec "$@"`, "bash", build(t), "export", "--from", whole, "--to", format, "--out", to)
		if got := finish(t, full); got.code == 0 {
			t.Errorf("%s: an export succeeded in files of 4 KiB", format)
		}
		if now := filesBelow(t, out); !maps.Equal(earlier, now) {
			t.Errorf("%s, out of space: %v, want %v as they were", format, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(earlier)))
		}
		succeed(t, "export", "--from", whole, "--to", format, "--out", to)
		if format != "jsonl" {
			succeed(t, "export", "--from", to, "--to", "jsonl", "--out", filepath.Join(at, "check.jsonl"))
		}
		for name := range filesBelow(t, out) {
			if strings.HasSuffix(name, ".tmp") || strings.Contains(name, ".old") || strings.Contains(name, ".lock") {
				t.Errorf("%s: %s is left behind", format, name)
			}
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a, b, other := runOf(t, "1"), runOf(t, "2"), runOf(t, "3", "--max-turns", "7")
	at := t.TempDir()
	out := filepath.Join(at, "merged")
	var got check.Merged
	if err := json.Unmarshal([]byte(succeed(t, "merge", a, b, "--out", out, "--json").out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Episodes != 16 || len(got.Runs) != 2 || got.Runs[1].Episodes != 8 || got.Runs[1].Seed != 2 {
		t.Errorf("result %+v, want 16 episodes, 8 of each run", got)
	}
	m, err := run.ReadManifest(out)
	if err != nil || len(m.Merged) != 2 || m.Experiment["seed"] != "1 and 2" || m.Fingerprint == got.Runs[0].Fingerprint {
		t.Errorf("run.json: %v, merged %+v, seed %q", err, m.Merged, m.Experiment["seed"])
	}
	if report := succeed(t, "report", "--run", out, "--json").out; !strings.Contains(report, `"present": 16`) {
		t.Errorf("the report of the merged run:\n%.300s", report)
	}
	// What the run that was merged first has is there once, and the episodes are as they were.
	twice := filepath.Join(at, "twice")
	if text := succeed(t, "merge", out, a, "--out", twice).out; !strings.Contains(text, "8 were in several runs and the same") {
		t.Errorf("merge of what has it already:\n%s", text)
	}
	if succeed(t, "export", "--run", out, "--to", "jsonl", "--out", "-").out != succeed(t, "export", "--run", twice, "--to", "jsonl", "--out", "-").out {
		t.Error("merging what was there already gave other episodes")
	}
	for _, dir := range []string{out, twice} {
		if said := succeed(t, "verify", "--run", dir).out; !strings.Contains(said, "16 episodes in 16 attempts, 16 rows") || !strings.Contains(said, "nothing differs") {
			t.Errorf("verify of a merged run:\n%s", said)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{a, other, "--out", filepath.Join(at, "none")}, "max_turns: was"},
		{[]string{a, a, "--out", filepath.Join(at, "none")}, "is given twice"},
		{[]string{a, b, "--out", out}, "is not empty"},
		{[]string{a, at, "--out", filepath.Join(at, "none")}, "is not a run directory"},
	} {
		got := trajgen(t, append([]string{"merge"}, tt.args...)...)
		if got.code == 0 || !strings.Contains(got.errOut, tt.want) {
			t.Errorf("merge %v: exit code %d, %q; want an error with %q", tt.args, got.code, got.errOut, tt.want)
		}
	}
	if _, err := os.Stat(filepath.Join(at, "none")); err == nil {
		t.Error("a merge that was refused left a directory")
	}
}

// TestVerifyShareGPT reads an export back, and one that somebody has edited.
func TestVerifyShareGPT(t *testing.T) {
	t.Parallel()
	run, file := runOf(t, "1"), filepath.Join(t.TempDir(), "s.jsonl")
	succeed(t, "export", "--run", run, "--to", "sharegpt", "--out", file)
	if said := succeed(t, "verify", "--sharegpt", file).out; !strings.Contains(said, "8 rows read back") {
		t.Errorf("verify says %q", said)
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(data, []byte(`"tool_stats"`), []byte(`"stats"`), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := trajgen(t, "verify", "--sharegpt", file); got.code != 1 || !strings.Contains(got.out, "line 1:") {
		t.Errorf("verify of a broken row: exit code %d, %q", got.code, got.out)
	}
}
