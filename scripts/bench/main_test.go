package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trajgen/scripts/bench/internal/bench"
)

// built are the instrument and the program that it measures: TRAJGEN_PROGRAM, which make test has built before, or built once, as
// make bench does.
var built struct {
	once    sync.Once
	dir     string
	program string
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// build builds both.
func build(t *testing.T) {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "trajgen-bench-test-"); built.err != nil {
			return
		}
		commands := [][]string{{"go", "build", "-ldflags=-s -w", "-o", built.dir + "/", "."}}
		if built.program = os.Getenv("TRAJGEN_PROGRAM"); built.program == "" {
			built.program = filepath.Join(built.dir, "trajgen")
			commands = append(commands, []string{"../build-guest"}, []string{"go", "build", "-tags", "embedguest", "-o", built.program, "../../cmd/trajgen"})
		}
		for _, args := range commands {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				built.err = errors.Join(built.err, fmt.Errorf("%v: %w: %s", args, err, out))
			}
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
}

// measure runs the instrument, and returns what it printed.
func measure(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	build(t)
	cmd := exec.Command(filepath.Join(built.dir, "bench"), args...)
	cmd.Dir = t.TempDir()
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	err = cmd.Run()
	return said.String(), complained.String(), err
}

// succeed fails the test unless the instrument exits with 0.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, err := measure(t, args...)
	if err != nil {
		t.Fatalf("bench %v: %v\n%s\n%s", args, err, errOut, out)
	}
	return out
}

// TestBench measures with sizes that say nothing, from the stages to the verdicts.
func TestBench(t *testing.T) {
	report, out := benched(t, "parts,start")
	for _, want := range []string{"trajgen, no-op tools", "until the first request", "at most 75 MB"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	for _, s := range report.Parts {
		if s.PeakMB <= 0 || s.RequestKBPerEp <= 0 || len(s.Each) != 1 {
			t.Errorf("stage %s: %+v", s.Name, s)
		}
	}
	if len(report.Parts) < 9 || report.Start.FirstRequestMS["local"] <= 0 || report.Start.ResumeMS <= 0 || report.Memory != nil {
		t.Errorf("report %+v", report)
	}
	sameRequests(t, report.Parts)
}

// benched measures some sections with sizes that say nothing, and reads what comes of it.
func benched(t *testing.T, sections string) (report bench.Report, out string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.json")
	build(t)
	out = succeed(t, "--tiny", "--rounds", "1", "--trajgen", built.program, "--only", sections, "--out", path)
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
	report, _ := benched(t, "memory,flight,scale")
	if report.Memory.Live == nil || report.Memory.Waiting.PeakMB <= 0 || !report.Memory.Waiting.AllWaiting {
		t.Errorf("report %+v", report)
	}
	if len(report.Flight) != 2 || report.Flight[1].RateRatio <= 0 || report.Flight[1].Trajgen.RequestsPerS <= 0 {
		t.Errorf("in flight: %+v", report.Flight)
	}
	if s := report.Scale; len(s.Workers) != 2 || len(s.Growth) == 0 || s.Growth[0].LateToEarly <= 0 {
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
	succeed(t, "--tiny", "--profile", dir)
	for _, name := range []string{"cpu.pprof", "heap.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a profile", name, err)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`no section "prats" (have parts,`: {"--only", "prats"},
		"[profile only]":                  {"--only", "parts", "--profile", "x"},
		"rounds is 0":                     {"--rounds", "0"},
		`unknown command "parts"`:         {"parts"},
		"no such file":                    {"play", "nowhere"},
	} {
		if _, errOut, err := measure(t, args...); err == nil || !strings.Contains(errOut, want) {
			t.Errorf("%v: %v, %s, want %q", args, err, errOut, want)
		}
	}
}
