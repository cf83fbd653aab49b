package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/bench"
)

// TestBench measures with sizes that say nothing, from the stages to the verdicts.
func TestBench(t *testing.T) {
	report, out := benched(t, "parts,start")
	for _, want := range []string{"trajgen, no-op tools", "until the first request", "at most 60 MB"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	for _, s := range report.Parts {
		if s.PeakMB <= 0 || s.RequestKBPerEp <= 0 || len(s.Each) != 1 {
			t.Errorf("stage %s: %+v", s.Name, s)
		}
	}
	if len(report.Parts) < 9 || report.Start.FirstRequestMS["local"] <= 0 || report.Start.ResumeMS <= 0 || len(report.Writing) > 0 {
		t.Errorf("report %+v", report)
	}
	sameRequests(t, report.Parts)
}

// benched measures some sections with sizes that say nothing, and reads what comes of it.
func benched(t *testing.T, sections string) (report bench.Report, out string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.json")
	out = succeed(t, "bench", "--tiny", "--rounds", "1", "--only", sections, "--out", path).out
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	return report, out
}

// TestBenchSections measures what else there is.
func TestBenchSections(t *testing.T) {
	t.Parallel()
	report, _ := benched(t, "memory,flight,scale,writing")
	if report.Memory.Live == nil || report.Memory.Waiting.PeakMB <= 0 || len(report.Writing) != len(bench.Formats()) {
		t.Errorf("report %+v", report)
	}
	if len(report.Flight) != 2 || report.Flight[1].RateRatio <= 0 || report.Flight[1].Trajgen.RequestsPerS <= 0 {
		t.Errorf("in flight: %+v", report.Flight)
	}
	if s := report.Scale; len(s.Workers) != 2 || len(s.Growth) == 0 || len(s.Registries) < 3 || len(s.Sandboxes) == 0 {
		t.Errorf("scale: %+v", s)
	}
}

// sameRequests holds a stage's requests against those of the limit: what is compared has to be the same work.
func sameRequests(t *testing.T, stages []bench.StageResult) {
	t.Helper()
	sent := map[string]float64{}
	for _, s := range stages {
		sent[s.Name] = s.RequestKBPerEp
	}
	for _, s := range stages {
		// Results of real tools are a little longer than those of the limit's shells.
		if want := sent[s.Against]; s.Against != "" && (s.RequestKBPerEp < 0.95*want || s.RequestKBPerEp > 1.05*want) {
			t.Errorf("stage %s sends %.1f KB an episode, and its limit %.1f", s.Name, s.RequestKBPerEp, want)
		}
	}
}

func TestBenchProfile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	succeed(t, "bench", "--tiny", "--profile", dir)
	for _, name := range []string{"cpu.pprof", "heap.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a profile", name, err)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`no section "prats" (have parts,`:     {"bench", "--only", "prats"},
		"rounds is 0":                         {"bench", "--rounds", "0"},
		"takes no arguments":                  {"bench", "parts"},
		`no stage "all" (have [limit-answer `: {"bench", "play", "--stage", "all"},
		`--format is "orc" (have journal, `:   {"bench", "write", "--format", "orc", "--dir", "x"},
		"--most is 0":                         {"bench", "sandboxes", "--most", "0"},
		"episodes is 0":                       {"bench", "play", "--episodes", "0"},
	} {
		if got := trajgen(t, args...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: exit code %d, %s, want %q", args, got.code, got.errOut, want)
		}
	}
	// It would take the cgroups away from everybody.
	if got := trajgen(t, "bench", "play", "--stage", "native", "--episodes", "2"); got.code == 0 || !strings.Contains(got.errOut, "--private-mounts") {
		t.Errorf("stage native: exit code %d, %s", got.code, got.errOut)
	}
}

func TestBenchList(t *testing.T) {
	got := succeed(t, "bench", "--list")
	for _, want := range []string{"writing", "limit-fork", "trajgen, native with limits"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in %s", want, got.out)
		}
	}
}
