package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPlantedFaults plays runs of light tasks with planted faults on one worker and on eight, and kills one again and again: each has the same rows.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]string{
		"level": "level: 0.3\n",
		"twins": "twins: true\nclasses: [error_transient, wrong_value, schema_drift, none]\npairs: 3\nposition: ordinal\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "faults.yaml")
			if err := os.WriteFile(file, []byte(faults), 0o644); err != nil {
				t.Fatal(err)
			}
			args := func(dir, workers string) []string {
				return []string{"run", "--dataset", "bundled", "--slice", "4:9", "--policy", "checker:0.8,0.9", "--seed", "3", "--faults", file, "--workers", workers, "--out", dir, "--quiet", "--durable-turns"}
			}
			one := filepath.Join(t.TempDir(), "one")
			succeed(t, args(one, "1")...)
			want := rows(t, one)
			eight := filepath.Join(t.TempDir(), "eight")
			succeed(t, args(eight, "8")...)
			sameRows(t, want, rows(t, eight))

			killed := filepath.Join(t.TempDir(), "killed")
			goOn := func() []string {
				if exists(filepath.Join(killed, "run.json")) { // not where it was killed before it began
					return append(args(killed, "4"), "--resume")
				}
				return args(killed, "4")
			}
			for kills := 0; kills < 4; kills++ {
				cmd := exec.Command(build(t), goOn()...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				select {
				case <-ended:
				case <-time.After(time.Duration(300+400*kills) * time.Millisecond):
					_ = cmd.Process.Kill()
					<-ended
				}
			}
			succeed(t, goOn()...)
			sameRows(t, want, rows(t, killed))
			if said := succeed(t, "verify", "--run", killed).out; !strings.Contains(said, "5 of 5 episodes") || !strings.Contains(said, "nothing differs") {
				t.Error(said)
			}
			if name == "twins" {
				twinsAreSound(t, one)
				planIsSame(t, one, file)
			}
		})
	}
}

// TestTwinsInScripts has calls of scripts with faults of their own, of tools within the sandbox and outside.
func TestTwinsInScripts(t *testing.T) {
	t.Parallel()
	settings := write(t, "faults.yaml", "twins: true\nclasses: [error_permanent, truncated, none]\ntools: [ticket_add, read_file]\n")
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "run", "-f", faultyRun(t), "--dataset", write(t, "d.jsonl", faultyTasks(2)), "--policy", "oracle", "--faults", settings, "--quiet", "--out", out)
	struck := map[string]int{}
	for _, ep := range episodes(t, out) {
		if ep.Twin == nil || ep.Twin.Nested == 0 {
			continue
		}
		at := ep.Twin.Ordinal
		if ep.Twin.Prefix == "diverged" || ep.Outcome != "success" || ep.Places()[at] != ep.Twin.Place() || (ep.Calls[at].Planted != nil) != (ep.Twin.Role == "fault") {
			t.Errorf("%s: %s, prefix %s, differed %+v, planted %+v", ep.Key.Twin, ep.Outcome, ep.Twin.Prefix, ep.Differed, ep.Calls[at].Planted)
		}
		struck[ep.Calls[at].Name+" "+ep.Twin.Class]++
	}
	for _, what := range []string{"ticket_add error_permanent", "ticket_add none", "read_file error_permanent", "read_file none"} {
		if struck[what] != 2 {
			t.Errorf("%d twins of %s in a script, want one of each episode: %v", struck[what], what, struck)
		}
	}
}

// TestTwinsOfAnotherRun plays twins of clean episodes that another run has played, of the tasks that were chosen, and goes on after a kill. They
// are those that one run of both would have.
func TestTwinsOfAnotherRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const settings = "twins: true\nclasses: [error_transient, wrong_value, none]\nwhere: row != 1\n"
	own, others := write(t, "own.yaml", settings), write(t, "others.yaml", settings+"clean: "+path("clean")+"\n")
	args := func(out string, more ...string) []string {
		return append([]string{"run", "--dataset", "bundled", "--max-tasks", "5", "--policy", "oracle", "--quiet", "--out", path(out)}, more...)
	}
	succeed(t, args("clean")...)
	succeed(t, args("both", "--faults", own)...)
	cmd := exec.Command(build(t), args("twins", "--faults", others)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if entries, _ := filepath.Glob(path("twins/journal/*")); len(entries) > 1 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if exists(path("twins/run.json")) {
		succeed(t, args("twins", "--faults", others, "--resume")...)
	} else {
		succeed(t, args("twins", "--faults", others)...)
	}
	twins := func(out string) map[string]string {
		all := map[string]string{}
		for _, ep := range episodes(t, path(out)) {
			if ep.Twin != nil {
				twin, _ := json.Marshal(ep.Twin)
				all[ep.ID] = fmt.Sprint(ep.Key, ep.Outcome, ep.Answer, len(ep.Calls), string(twin))
			}
		}
		return all
	}
	if diff := cmp.Diff(twins("both"), twins("twins")); diff != "" || len(twins("twins")) < 10 {
		t.Errorf("twins of one run and of two differ:\n%s", diff)
	}
	if said := succeed(t, "verify", "--run", path("twins")).out; !strings.Contains(said, "nothing differs") {
		t.Error(said)
	}
	one, two := succeed(t, "reliability", "--run", path("both"), "--json").out, succeed(t, "reliability", "--run", path("twins"), "--json").out
	var a, b struct {
		Cells []struct {
			Tool, Class string
			Harm        struct{ N int }
		}
	}
	if err := errors.Join(json.Unmarshal([]byte(one), &a), json.Unmarshal([]byte(two), &b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" || len(a.Cells) == 0 {
		t.Errorf("reliability of one run and of two differ:\n%s", diff)
	}
	for wrong, refused := range map[string][]string{
		"seed: was 0, now 9":   args("other", "--faults", others, "--seed", "9"),
		"unknown name outcome": args("other", "--faults", write(t, "f.yaml", "twins: true\nwhere: outcome == \"success\"\n")),
		"nowhere":              args("other", "--faults", write(t, "g.yaml", "twins: true\nclean: "+path("nowhere")+"\n")),
	} {
		if got := trajgen(t, refused...); got.code != exitUsage || !strings.Contains(got.errOut, wrong) {
			t.Errorf("want %q: code %d, %s", wrong, got.code, got.errOut)
		}
	}
	// What the clean run plays more, the twins were not planned of.
	succeed(t, "run", "--resume", "--out", path("clean"), "--samples", "2", "--quiet")
	if got := trajgen(t, args("twins", "--faults", others, "--resume")...); got.code != exitUsage || !strings.Contains(got.errOut, "faults_clean") {
		t.Errorf("a clean run that went on: code %d, %s", got.code, got.errOut)
	}
}

// planIsSame checks that a plan made of a finished run is what the run has played, and that the report lies in files.
func planIsSame(t *testing.T, dir, settings string) {
	t.Helper()
	var planned, played struct {
		Cells []json.RawMessage `json:"cells"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	said := succeed(t, "reliability", "plan", "--run", dir, "--faults", settings, "--json").out
	if err := errors.Join(json.Unmarshal(text, &played), json.Unmarshal([]byte(said), &planned)); err != nil {
		t.Fatal(err)
	}
	if len(planned.Cells) == 0 || len(planned.Cells) != len(played.Cells) {
		t.Errorf("%d cells are planned, %d were played", len(planned.Cells), len(played.Cells))
	}
	for i := range min(len(planned.Cells), len(played.Cells)) {
		var one, other bytes.Buffer
		if err := errors.Join(json.Compact(&one, planned.Cells[i]), json.Compact(&other, played.Cells[i])); err != nil || one.String() != other.String() {
			t.Errorf("cell %d: planned %s, played %s, %v", i, one.String(), other.String(), err)
		}
	}
	level := write(t, "level.yaml", "level: 0.1\n")
	if got := trajgen(t, "reliability", "plan", "--run", dir, "--faults", level); got.code != exitUsage || !strings.Contains(got.errOut, "twins: true") {
		t.Errorf("a plan of a level: code %d, %s", got.code, got.errOut)
	}
	out := filepath.Join(t.TempDir(), "report")
	succeed(t, "reliability", "--run", dir, "--out", out)
	for name, want := range map[string]string{"report.md": "| placebo | none |", "report.json": `"placebo_off": false`, "report.html": "<svg"} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
}

// TestTwinsCrossed plans twins whose fault exchanges results: the second of two calls of a tool in a turn has one. Calls of a script
// have none, nor do calls with the same result.
func TestTwinsCrossed(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		return `{"name":"read_file","arguments":{"path":"` + path + `"}}`
	}
	script := `{"name":"execute_code","arguments":{"code":"import trajgen_tools as t\nt.read_file(path='a')\nt.read_file(path='b')"}}`
	task := `{"id":"t","prompt":"Read.","files":{"a":"of a","b":"of b"},"verify":{"exact":"done"},"gold":[` +
		`{"tool_calls":[` + read("a") + `,` + read("b") + `]},{"tool_calls":[` + read("b") + `,` + script + `]},{"tool_calls":[` + read("a") + `,` + read("a") + `]},{"content":"done"}]}` + "\n"
	settings := write(t, "faults.yaml", "twins: true\nclasses: [crossed]\n")
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "run", "--dataset", write(t, "d.jsonl", task), "--toolsets", "file,code_execution", "--policy", "oracle", "--faults", settings, "--quiet", "--out", out)
	var crossed int
	for _, ep := range episodes(t, out) {
		if ep.Twin == nil || ep.Twin.Class != "crossed" {
			continue
		}
		crossed++
		a, b := ep.Calls[0], ep.Calls[1]
		if ep.Twin.Ordinal != 1 || ep.Twin.Prefix != "replayed" || a.Planted == nil || b.Planted == nil || a.Planted.RealResult != b.Result || b.Planted.RealResult != a.Result || a.Planted.From != 1 {
			t.Errorf("%s, prefix %s: %+v, %+v", ep.Key.Twin, ep.Twin.Prefix, a, b)
		}
	}
	if crossed != 1 {
		t.Errorf("%d twins have crossed results, want that of the second call", crossed)
	}
}

// twinsAreSound checks what the tables say of the twins of an agent without chance: its placebos come out as their clean episodes.
func twinsAreSound(t *testing.T, dir string) {
	t.Helper()
	var report struct {
		Placebo struct {
			Harm struct {
				N     int     `json:"n"`
				Value float64 `json:"value"`
			} `json:"harm"`
		} `json:"placebo"`
		Cells []json.RawMessage `json:"cells"`
	}
	out := succeed(t, "reliability", "--run", dir, "--json").out
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Cells) < 5 {
		t.Errorf("%d cells, want one for each tool and class:\n%s", len(report.Cells), out)
	}
	// Elsewhere a twin is no sample of its task.
	var played struct {
		Episodes struct{ Present, Missing int }
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &played); err != nil || played.Episodes.Present != 5 || played.Episodes.Missing != 0 {
		t.Errorf("the report has %+v, %v", played, err)
	}
	if said := succeed(t, "diff", dir, dir, "--json").out; !strings.Contains(said, `"success_rate": {
    "from": 1,
    "to": 1,`) {
		t.Errorf("diff counts twins:\n%.2000s", said)
	}
	for _, to := range []string{"openai", "inspect"} {
		file := filepath.Join(t.TempDir(), "out.json")
		succeed(t, "export", "--run", dir, "--to", to, "--where", "group.n == 1", "--out", file)
		said := succeed(t, "export", "--run", dir, "--to", to, "--out", filepath.Join(t.TempDir(), "out.json"), "--json").out
		if !strings.Contains(said, `"rows": 5`) {
			t.Errorf("export to %s: %s", to, said)
		}
	}
	if report.Placebo.Harm.N < 10 || report.Placebo.Harm.Value != 0 {
		t.Errorf("%d placebos do harm %v", report.Placebo.Harm.N, report.Placebo.Harm.Value)
	}
}
