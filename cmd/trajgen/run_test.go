package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/pipeline/episode"
)

// TestRunUnderRace plays a few episodes in this very process, so that the race detector watches the whole pipeline.
func TestRunUnderRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var out, errOut bytes.Buffer
	code := command(t.Context(), []string{"run", "--dataset", "bundled", "--policy", "noisy", "--max-tasks", "12", "--samples", "2",
		"--workers", "8", "--sandbox", "local", "--out", dir, "--json"}, stdio{out: &out, err: &errOut})
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if got := episodes(t, dir); len(got) != 24 {
		t.Errorf("%d episodes, want 24", len(got))
	}
	var report struct{ Outcomes []struct{ Count int } }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Errorf("stdout is not one JSON document: %v", err)
	}
}

// TestSameRows holds that the number of workers and a mixture of kills and resumes change nothing.
func TestSameRows(t *testing.T) {
	args := func(dir, workers string) []string {
		return []string{"run", "--dataset", "bundled", "--max-tasks", "24", "--policy", "noisy", "--seed", "3",
			"--distribution", workbench(t), "--workers", workers, "--out", dir, "--quiet"}
	}
	first := filepath.Join(t.TempDir(), "two")
	succeed(t, args(first, "2")...)
	want := rows(t, first)
	if len(want) < 20 {
		t.Fatalf("%d rows, want at least 20", len(want))
	}
	for _, workers := range []string{"1", "16"} {
		t.Run(workers+" workers", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			succeed(t, args(dir, workers)...)
			sameRows(t, want, rows(t, dir))
		})
	}
	t.Run("killed again and again", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		mounts := mountCount(t)
		moments := rand.New(rand.NewPCG(11, 0))
		kills, early := 0, 0
		// Before run.json is there, a run has not begun, and nothing can be resumed or read.
		begun := func() bool {
			_, err := os.Stat(filepath.Join(dir, "run.json"))
			return err == nil
		}
		for kills < 10 {
			cmd := exec.Command(build(t), args(dir, "4")...)
			if begun() {
				cmd.Args = append(cmd.Args, "--resume")
			}
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration((1+early)*(50+moments.IntN(500))) * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !begun() { // a machine that is as slow as this gets more time
				early++
			} else if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
				kills++
			} else if !cmd.ProcessState.Success() {
				t.Fatalf("after %d kills: %s: %s", kills, cmd.ProcessState, errOut.String())
			}
			if begun() && len(rows(t, dir)) == len(want) {
				break // done before the tenth
			}
		}
		if kills < 2 {
			t.Fatalf("only %d kills before the run was done", kills)
		}
		succeed(t, append(args(dir, "4"), "--resume")...)
		sameRows(t, want, rows(t, dir))
		if got := mountCount(t); got != mounts {
			t.Errorf("%d mounts, want %d as before", got, mounts)
		}
		nothingRuns(t, filepath.Dir(build(t)))
	})
}

// workbench is a distribution of the test's own.
func workbench(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	text := "name: mine\ndescription: for the test\ntoolsets: {terminal: 100, file: 75, code_execution: 60, todo: 40}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func mountCount(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// nothingRuns fails the test when a process of the program is left after two seconds.
func nothingRuns(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left = nil
		paths, _ := filepath.Glob("/proc/[0-9]*/exe")
		for _, path := range paths {
			if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, dir+"/") {
				left = append(left, path)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left running: %v", left)
			return
		}
	}
}

// TestExportIsPure holds that a rewrite of the files from the journal gives identical bytes.
func TestExportIsPure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", "bundled", "--policy", "oracle", "--max-tasks", "10", "--out", dir, "--quiet")
	again := filepath.Join(t.TempDir(), "again")
	succeed(t, "export", "--run", dir, "--to", "parquet", "--out", again)
	for _, name := range []string{"trajectories", "tool_calls"} {
		want, err := os.ReadFile(filepath.Join(dir, name, "part-00000.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(again, name, "part-00000.parquet"))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s: %d bytes, want the same %d (%v)", name, len(got), len(want), err)
		}
	}
}

// TestReplay plays a recorded run again, from its journal.
func TestReplay(t *testing.T) {
	t.Parallel()
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	common := []string{"run", "--dataset", "bundled", "--max-tasks", "15", "--seed", "9", "--quiet"}
	succeed(t, append(common, "--policy", "noisy", "--out", first)...)
	succeed(t, append(common, "--policy", "replay", "--replay", first, "--out", second)...)
	want, got := episodes(t, first), episodes(t, second)
	for i := range want {
		for j := range want[i].Messages {
			if len(got[i].Messages) <= j || want[i].Messages[j].Content != got[i].Messages[j].Content {
				t.Fatalf("%s: message %d differs", want[i].ID, j)
			}
		}
	}
}

// TestInterrupt holds that the first signal to end finishes what is in play and that a resume plays the rest. A hang-up is
// such a signal, unless who started the run has it ignored.
func TestInterrupt(t *testing.T) {
	for name, signal := range map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "nohup": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			args := []string{"run", "--dataset", "bundled", "--slice", "4:14", "--policy", "oracle", "--workers", "2", "--out", dir, "--quiet"}
			cmd := exec.Command(build(t), args...)
			if name == "nohup" {
				cmd = exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`, build(t)}, args...)...)
			}
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil && len(episodes(t, dir)) > 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("no episode was played within a minute")
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			code := cmd.ProcessState.ExitCode()
			if name == "nohup" {
				if code != 0 {
					t.Fatalf("exit code %d, want 0: %s", code, errOut.String())
				}
				return
			}
			if code != exitInterrupted || !strings.Contains(errOut.String(), "--resume") {
				t.Fatalf("exit code %d, want %d: %s", code, exitInterrupted, errOut.String())
			}
			before := len(episodes(t, dir))
			succeed(t, append(args, "--resume")...)
			all := episodes(t, dir)
			if before == 0 || before >= len(all) {
				t.Errorf("%d of %d episodes were played before the interrupt", before, len(all))
			}
			for _, ep := range all {
				if ep.Outcome != episode.Success || ep.Attempt != 1 {
					t.Errorf("%s: %s, attempt %d", ep.ID, ep.Outcome, ep.Attempt)
				}
			}
		})
	}
}
