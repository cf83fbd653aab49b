package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"trajgen/outputs/reliability"
)

// truth is what a character makes of a fault where each call is needed and each value is used.
type truth struct {
	harm      float64
	reactions map[string]float64
	wrong     float64 // used; below 0 where the fault has no value
}

const valueless = -1.0

// characters have what is known of them for an error that stays, an error that passes, a wrong value, and a result without its content,
// which has no value that could be copied.
var characters = map[string][4]truth{
	"retrier:0.9": {
		{1, map[string]float64{"retry": 0.9, "gives_up": 0.1}, valueless}, {0.1, map[string]float64{"retry": 0.9, "gives_up": 0.1}, valueless},
		{1, map[string]float64{"retry": 0}, 1}, {0, map[string]float64{"retry": 0}, valueless},
	},
	"giver_up": {
		{1, map[string]float64{"gives_up": 1}, valueless}, {1, map[string]float64{"gives_up": 1}, valueless}, {1, map[string]float64{"retry": 0}, 1},
		{0, map[string]float64{"retry": 0}, valueless},
	},
	"gullible:0.5": { // it goes on as if the call had worked, and these calls change nothing
		{0, map[string]float64{"retry": 0.5}, valueless}, {0, map[string]float64{"retry": 0.5}, valueless}, {1, map[string]float64{"retry": 0}, 1},
		{0, map[string]float64{"retry": 0}, valueless},
	},
	"checker:0.8,0.9": {
		{1, map[string]float64{"retry": 0.9, "gives_up": 0.1}, valueless}, {0.1, map[string]float64{"retry": 0.9, "gives_up": 0.1}, valueless},
		{0.28, map[string]float64{"retry": 0.8}, 0.28}, {0, map[string]float64{"retry": 0.8}, valueless},
	},
	"switcher:0.9": {
		{0.1, map[string]float64{"switch": 0.9, "gives_up": 0.1}, valueless}, {0.1, map[string]float64{"switch": 0.9, "gives_up": 0.1}, valueless},
		{1, map[string]float64{"switch": 0}, 1}, {0, map[string]float64{"switch": 0}, valueless},
	},
}

// characterClasses are in the order of the report's cells.
var characterClasses = []string{"duplicated", "empty", "error_permanent", "error_transient", "slow", "timeout", "timeout:done", "tool_missing", "wrong_value"}

// of is what is known for a class. To take long, or to run a command twice that changes nothing, does nothing.
func of(truths [4]truth, class string) truth {
	at, ok := map[string]int{"error_permanent": 0, "tool_missing": 0, "error_transient": 1, "timeout": 1, "timeout:done": 1, "wrong_value": 2, "empty": 3}[class]
	if !ok {
		return truth{0, map[string]float64{"retry": 0, "switch": 0}, valueless}
	}
	return truths[at]
}

// sums are tasks of one command, whose result is in no file and is the answer.
func sums(tasks int) string {
	var text strings.Builder
	for i := range tasks {
		a, b := 1000+37*i, 2000+91*i
		fmt.Fprintf(&text, `{"id":"sum-%d","prompt":"Add up n.txt.","files":{"n.txt":"%d\n%d\n"},"verify":{"exact":"The sum is %d."},`+
			`"gold":[{"tool_calls":[{"name":"terminal","arguments":{"command":"awk '{s += $1} END {print s}' n.txt"}}]},{"content":"The sum is %d."}]}`+"\n",
			i, a, b, a+b, a+b)
	}
	return text.String()
}

// measured gives what reliability says of a run, whose placebos are exactly as their clean episodes.
func measured(t *testing.T, policy, faults string, args ...string) *reliability.Report {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if policy != "" {
		args = append(args, "--policy", policy)
	}
	succeed(t, append([]string{"run", "--faults", write(t, "faults.yaml", faults), "--out", dir, "--quiet"}, args...)...)
	var report reliability.Report
	if err := json.Unmarshal([]byte(succeed(t, "reliability", "--run", dir, "--json").out), &report); err != nil {
		t.Fatal(err)
	}
	if p := report.Placebo; p == nil || p.Harm.N == 0 || p.Harm.Value != 0 || p.Turns.Value != 0 {
		t.Fatalf("%s: placebos %+v, want some, without harm", policy, p)
	}
	return &report
}

// playCharacter plays a character through sums.
func playCharacter(t *testing.T, policy string, tasks, samples, pairs, seed int) *reliability.Report {
	t.Helper()
	faults := fmt.Sprintf("twins: true\nclasses: [\"%s\", none]\npairs: %d\nalternatives: [[terminal, execute_code]]\n", strings.Join(characterClasses, `", "`), pairs)
	report := measured(t, policy, faults, "--dataset", write(t, "sums.jsonl", sums(tasks)), "--samples", strconv.Itoa(samples), "--seed", strconv.Itoa(seed),
		"--toolsets", "terminal,code_execution")
	if len(report.Cells) != len(characterClasses) {
		t.Fatalf("%s: %d cells, want %d", policy, len(report.Cells), len(characterClasses))
	}
	return report
}

// held compares the intervals of a cell with the truth, and names those that do not hold it.
func (want truth) held(cell *reliability.Cell, look func(quantity string, holds bool, got string)) {
	interval := func(quantity string, low, high, value float64) {
		look(quantity, low-1e-9 <= value && value <= high+1e-9, fmt.Sprintf("[%.3f, %.3f], want %v in it", low, high, value))
	}
	interval("harm", cell.Harm.Range.Low, cell.Harm.Range.High, want.harm)
	for name, value := range want.reactions {
		r := cell.Reactions[name].Range
		interval(name, r.Low, r.High, value)
	}
	if want.wrong >= 0 {
		interval("used wrong", cell.UsedWrong.Range.Low, cell.UsedWrong.Range.High, want.wrong)
	}
}

// TestPlantedTruths plays each character through a run with twins, or through RUNS larger ones (scripts/bench/reliability), and counts how
// often each interval that reliability gives holds what is known.
func TestPlantedTruths(t *testing.T) {
	t.Parallel()
	runs, tasks, samples, pairs := 1, 12, 2, 16
	if more, err := strconv.Atoi(os.Getenv("RUNS")); err == nil && more > 0 {
		runs, tasks, samples, pairs = more, 20, 4, 50
	}
	for policy, truths := range characters {
		name, _, _ := strings.Cut(policy, ":")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count, width, last := map[string]int{}, map[string]float64{}, map[string]string{}
			for run := range runs {
				report := playCharacter(t, policy, tasks, samples, pairs, 5+run)
				for i, class := range characterClasses {
					cell := &report.Cells[i]
					if cell.Class != class || cell.Harm.N < pairs/2 {
						t.Fatalf("cell %d is %s with %d pairs, want %s", i, cell.Class, cell.Harm.N, class)
					}
					width[class] += (cell.Harm.Range.High - cell.Harm.Range.Low) / float64(runs)
					of(truths, class).held(cell, func(quantity string, holds bool, got string) {
						name := class + " " + quantity
						if count[name] += 0; holds {
							count[name]++
						} else {
							last[name] = got
						}
					})
				}
			}
			for name, held := range count {
				class, _, _ := strings.Cut(name, " ")
				t.Logf("%-28s %d of %d intervals hold the truth; width of the harm's %.2f", name, held, runs, width[class])
				if least := 0.95 - 3*math.Sqrt(0.95*0.05/float64(runs)); float64(held)/float64(runs) < least {
					t.Errorf("%s: %d of %d intervals hold the truth: %s", name, held, runs, last[name])
				}
			}
		})
	}
}

// TestPlantedTruthsOfBundledTasks: which of their calls are needed is what giver_up loses with a fault in each.
func TestPlantedTruthsOfBundledTasks(t *testing.T) {
	t.Parallel()
	play := func(policy string) []reliability.Cell {
		return measured(t, policy, "twins: true\ntools: [terminal, patch]\nclasses: [error_transient, none]\nprobability: 1\n",
			"--dataset", "bundled", "--max-tasks", "8", "--toolsets", "file,terminal", "--seed", "3").Cells
	}
	needed, got := play("giver_up"), play("retrier:0.9")
	if len(needed) != 2 || len(got) != 2 {
		t.Fatalf("%d and %d cells, want two tools", len(needed), len(got))
	}
	for i := range needed {
		if needed[i].Harm.N != got[i].Harm.N || needed[i].Harm.Value < 0.5 {
			t.Errorf("%s: %d and %d pairs, want all calls; %v of them are needed", needed[i].Tool, needed[i].Harm.N, got[i].Harm.N, needed[i].Harm.Value)
		}
		truth{harm: 0.1 * needed[i].Harm.Value, wrong: valueless}.held(&got[i], func(quantity string, holds bool, says string) {
			if !holds {
				t.Errorf("%s: %s %s", needed[i].Tool, quantity, says)
			}
		})
	}
}

// TestServedCharacter asks a character over the network, which knows the episodes of another run, and refuses others.
func TestServedCharacter(t *testing.T) {
	t.Parallel()
	dataset, known := write(t, "sums.jsonl", sums(6)), filepath.Join(t.TempDir(), "known")
	args := []string{"--dataset", dataset, "--samples", "2", "--toolsets", "terminal", "--seed", "4", "--quiet"}
	succeed(t, append([]string{"run", "--policy", "oracle", "--out", known}, args...)...)
	cmd := exec.Command(build(t), "serve-model", "--policy", "checker:1,1", "--dataset", dataset, "--replay", known, "--addr", "127.0.0.1:0")
	args = append(args, "--model", "scripted", "--base-url", serving(t, cmd))
	report := measured(t, "", "twins: true\nclasses: [wrong_value, none]\n", args...)
	if c := report.Cells[0]; c.Harm.N < 6 || c.Harm.Value != 0 || c.Reactions["retry"].Value != 1 {
		t.Errorf("%d wrong values do harm %v, and %v of them are looked at again; want none, and all", c.Harm.N, c.Harm.Value, c.Reactions["retry"].Value)
	}
	args[slices.Index(args, "4")] = "5"
	other := filepath.Join(t.TempDir(), "other")
	got := trajgen(t, append([]string{"run", "--out", other}, args...)...)
	if ep := episodes(t, other)[0]; got.code == 0 || ep.Fault == nil || !strings.Contains(ep.Fault.Message, "of the same dataset, samples and seed") {
		t.Errorf("with another seed: exit code %d, %+v", got.code, ep.Fault)
	}
}
