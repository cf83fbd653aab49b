package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
)

// wholeEpisodes is a file of an export to jsonl.
func wholeEpisodes(t *testing.T, n int) string {
	t.Helper()
	var lines bytes.Buffer
	for _, ep := range sinktest.Episodes(n) {
		line, err := journal.Encode(ep)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(line)
	}
	path := filepath.Join(t.TempDir(), "whole.jsonl")
	if err := os.WriteFile(path, lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// An export never stands in for what a run directory holds.
func TestExportLeavesRunDirectoriesAlone(t *testing.T) {
	from, run := wholeEpisodes(t, 2), t.TempDir()
	for _, name := range []string{"run.json", "report.md"} {
		if err := os.WriteFile(filepath.Join(run, name), []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := filesBelow(t, run)
	tests := []struct{ format, out string }{
		{"parquet", run}, {"hf", run}, {"jsonl", filepath.Join(run, "run.json")}, {"jsonl", filepath.Join(run, "report.md")},
		{"hf", filepath.Join(run, "trajectories") + "/"}, {"hf", filepath.Join(run, "journal")},
	}
	for _, tt := range tests {
		got := trajgen(t, "export", "--from", from, "--to", tt.format, "--out", tt.out)
		if got.code != exitUsage || !strings.Contains(got.errOut, "is a run directory") {
			t.Errorf("%s to %s: exit code %d, %q", tt.format, tt.out, got.code, got.errOut)
		}
	}
	if now := filesBelow(t, run); len(now) != len(before) || now["/run.json"] != "{}" {
		t.Errorf("the run directory has %v", now)
	}
	succeed(t, "export", "--from", from, "--to", "hf", "--out", filepath.Join(run, "hub")+"/") // a place of its own
}

// An export of very many files is one line.
func TestExportListsADirectoryOfManyFilesOnce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "atif")
	got := succeed(t, "export", "--from", wholeEpisodes(t, 2*maxListed), "--to", "atif", "--out", out+"/")
	if got.out != out+"\n" || !strings.Contains(got.errOut, " files in "+out) {
		t.Errorf("stdout %q, stderr %q; want the directory alone, and how many files", got.out, got.errOut)
	}
}

func TestExportSettingsAreGivenOnce(t *testing.T) {
	got := trajgen(t, "export", "--from", wholeEpisodes(t, 2), "--to", "openai", "--out", filepath.Join(t.TempDir(), "x"), "--set", "weight=ok", "--set", "weight=model")
	if want := `--set weight is both "ok" and "model"`; got.code != exitUsage || !strings.Contains(got.errOut, want) {
		t.Errorf("exit code %d, %q; want %d with %q", got.code, got.errOut, exitUsage, want)
	}
}

// Whoever reads the output may end at any time, and with it this process: nothing is left behind.
func TestExportThroughAPipeThatCloses(t *testing.T) {
	temporary := t.TempDir()
	cmd := exec.Command(build(t), "export", "--from", wholeEpisodes(t, 40), "--to", "jsonl", "--out", "-")
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("the whole export went into a pipe that was closed")
	}
	if entries, err := os.ReadDir(temporary); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left behind", entries, err)
	}
}
