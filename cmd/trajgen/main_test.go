package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/pipeline/run/proof"
	"trajgen/sandbox"
)

// resultLine is a line of tools call.
type resultLine = desk.Line

func TestMain(m *testing.M) {
	sandbox.Init()
	// Most tests wait for programs and sandboxes most of the time.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	proofs, err := os.MkdirTemp("", "trajgen-proofs-")
	if err == nil {
		err = os.Setenv(proof.Variable, proofs) // those of the user are not the tests'
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(proofs)
	if binary.dir != "" {
		os.RemoveAll(binary.dir)
	}
	os.Exit(code)
}

// binary is the program as users have it: TRAJGEN_PROGRAM, which make test has built before, or built once, as scripts/build
// does, without the race detector.
var binary struct {
	once sync.Once
	path string
	dir  string // of one that was built here
	err  error
}

// build returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.path = os.Getenv("TRAJGEN_PROGRAM"); binary.path != "" {
			return
		}
		binary.dir, binary.err = os.MkdirTemp("", "trajgen-test-")
		if binary.err != nil {
			return
		}
		binary.path = filepath.Join(binary.dir, "trajgen")
		for _, args := range [][]string{
			{"../../scripts/build-guest"},
			{"go", "build", "-tags", "embedguest", "-o", binary.path, "."},
		} {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil && binary.err == nil {
				binary.err = fmt.Errorf("%s: %w: %s", args[0], err, out)
			}
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return binary.path
}

// result is how a command ended.
type result struct {
	code        int
	out, errOut string
}

// here runs a command in this process.
func here(t *testing.T, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := command(t.Context(), args, stdio{out: &out, err: &errOut})
	return result{code, out.String(), errOut.String()}
}

// prints are the commands that only parse and print. Verify is not among them: it compares bytes with files of its own version alone.
var prints = []string{"command", "compress", "corpus", "datasets", "diff", "distributions", "export", "image", "merge", "repair", "report", "tape", "toolsets", "twin"}

// trajgen runs a command: in this process when it only parses and prints, and otherwise as a program in a folder of the test's own.
func trajgen(t *testing.T, args ...string) result {
	t.Helper()
	lists := args[0] == "tools" && len(args) > 1 && args[1] != "call" && args[1] != "bench" && !slices.Contains(args, "--plugin")
	if lists || slices.Contains(prints, args[0]) {
		return here(t, args...)
	}
	cmd := exec.Command(build(t), args...)
	cmd.Dir = t.TempDir()
	return finish(t, cmd)
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// serving starts a command that prints the address that it serves, and kills it at the end of the test if it still runs.
func serving(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("no address: %v", err)
	}
	return strings.TrimSpace(url)
}

// succeed runs the program and fails the test unless it exits with 0.
func succeed(t *testing.T, args ...string) result {
	t.Helper()
	got := trajgen(t, args...)
	if got.code != 0 {
		t.Fatalf("trajgen %s: exit code %d\n%s\n%s", strings.Join(args, " "), got.code, got.errOut, got.out)
	}
	return got
}

// episodes reads a run's journal in dataset order.
func episodes(t *testing.T, dir string) []*episode.Episode {
	t.Helper()
	reader, err := journal.OpenReader(run.JournalDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var all []*episode.Episode
	for ep, err := range reader.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ep)
	}
	return all
}

// rows are what two runs of one experiment must have in common: all but times.
func rows(t *testing.T, dir string) []string {
	t.Helper()
	var rows []string
	for _, ep := range episodes(t, dir) {
		data, err := json.Marshal(map[string]any{
			"id": ep.ID, "key": ep.Key, "row": ep.Row, "toolsets": ep.Toolsets, "log_p": ep.LogP, "tools": ep.Tools,
			"messages": ep.Messages, "outcome": ep.Outcome, "stop": ep.Stop, "reward": ep.Reward, "answer": ep.Answer, "usage": ep.Usage,
		})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(data))
	}
	return rows
}

// sameRows fails the test with the first row that differs.
func sameRows(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			at := 0
			for at < min(len(want[i]), len(got[i])) && want[i][at] == got[i][at] {
				at++
			}
			from := max(0, at-150)
			t.Fatalf("row %d differs at %d:\n got …%s\nwant …%s", i, at, cut(got[i][from:]), cut(want[i][from:]))
		}
	}
}

func cut(s string) string { return s[:min(len(s), 400)] }

// outcomes counts them, and fails the test on one outside the closed set or a reward where there can be none.
func outcomes(t *testing.T, all []*episode.Episode) map[episode.Outcome]int {
	t.Helper()
	count := map[episode.Outcome]int{}
	for _, ep := range all {
		count[ep.Outcome]++
		if !slices.Contains(episode.Outcomes(), ep.Outcome) {
			t.Errorf("%s: outcome %q is not of the closed set", ep.ID, ep.Outcome)
		}
		if !ep.Outcome.AgentsDoing() && ep.Reward != nil {
			t.Errorf("%s: %s with reward %v", ep.ID, ep.Outcome, *ep.Reward)
		}
		if ep.Outcome.AgentsDoing() != (ep.Fault == nil) {
			t.Errorf("%s: %s with fault %+v", ep.ID, ep.Outcome, ep.Fault)
		}
	}
	return count
}
