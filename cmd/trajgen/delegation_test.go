package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// familyTasks are tasks whose agent has three subagents, each of which has two: a tree of nine. All write into one folder.
func familyTasks(t *testing.T, tasks int) string {
	t.Helper()
	command := func(format string, args ...any) map[string]any {
		arguments, _ := json.Marshal(map[string]string{"command": fmt.Sprintf(format, args...)})
		return map[string]any{"name": "terminal", "arguments": string(arguments)}
	}
	delegates := func(role string, goals ...string) map[string]any {
		var list []map[string]string
		for _, goal := range goals {
			list = append(list, map[string]string{"goal": goal, "role": role})
		}
		arguments, _ := json.Marshal(map[string]any{"tasks": list})
		return map[string]any{"name": "delegate_task", "arguments": string(arguments)}
	}
	step := func(call map[string]any) map[string]any { return map[string]any{"tool_calls": []any{call}} }
	answer := func(text string) map[string]any { return map[string]any{"content": text} }
	var text strings.Builder
	for i := range tasks {
		golds := map[string]any{}
		var chapters []string
		for c := range 3 {
			chapter := fmt.Sprintf("Chapter %d.", c)
			chapters = append(chapters, chapter)
			var pages []string
			for p := range 2 {
				page := fmt.Sprintf("Page %d of chapter %d.", p, c)
				pages = append(pages, page)
				golds[page] = []any{step(command("echo page %d %d > %d-%d; ls", c, p, c, p)), answer("It is written.")}
			}
			golds[chapter] = []any{step(delegates("leaf", pages...)), answer("The chapter is whole.")}
		}
		row, err := json.Marshal(map[string]any{
			"id": fmt.Sprint("book-", i), "prompt": fmt.Sprintf("Write book %d.", i), "gold_subagents": golds,
			"gold":   []any{step(delegates("orchestrator", chapters...)), step(command("cat ?-? > book; cat book")), answer("done")},
			"verify": map[string]string{"command": "test $(wc -l < book) = 6"},
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", row)
	}
	return write(t, "books.jsonl", text.String())
}

// unresumed are whole rows, trees in them, without times and marks of a resume.
func unresumed(t *testing.T, dir string) (rows []string) {
	t.Helper()
	for _, row := range timeless(t, dir) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(row), &fields); err != nil {
			t.Fatal(err)
		}
		unmark(fields)
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(data))
	}
	return rows
}

func unmark(ep map[string]any) {
	delete(ep, "resumed")
	children, _ := ep["children"].([]any)
	for _, child := range children {
		unmark(child.(map[string]any))
	}
}

const familySize = 10 // the root, three and six

// TestDelegation plays trees with one worker and with many, and in sandboxes of their own: the same trees, whose rows are linked.
func TestDelegation(t *testing.T) {
	t.Parallel()
	dataset, dir := familyTasks(t, 3), t.TempDir()
	play := plays(t, dir, "--dataset", dataset, "--policy", "oracle", "--samples", "2", "--toolsets", "terminal,delegation", "--sandbox", "local",
		"--command-policy", "record", "--delegation-depth", "2")
	want := play("one", "--workers", "1")
	sameRows(t, want, play("many", "--workers", "16"))
	one := filepath.Join(dir, "one")
	succeed(t, "verify", "--run", one)
	files, err := export.OpenFiles(one)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	trees := 0
	for root, err := range files.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for ep := range root.Tree() {
			size++
			if ep.Origin == nil {
				continue
			}
			if ep.Reward != nil || *ep.Origin.RootReward != 1 || ep.Row != root.Row || ep.Key.Task != root.Key.Task || ep.Outcome != episode.Success {
				t.Errorf("%s: %s, reward %v, origin %+v", ep.ID, ep.Outcome, ep.Reward, ep.Origin)
			}
		}
		if trees++; size != familySize || root.Outcome != episode.Success {
			t.Errorf("%s has %d episodes, and ended in %s", root.ID, size, root.Outcome)
		}
	}
	if trees != 6 {
		t.Errorf("%d trees, want 6", trees)
	}
	report, err := os.ReadFile(filepath.Join(one, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Episodes  struct{ Present int }
		Tokens    struct{ Turns int }
		Subagents struct {
			Count  int
			Tokens struct{ Turns int }
		}
	}
	if err := json.Unmarshal(report, &got); err != nil {
		t.Fatal(err)
	}
	if got.Episodes.Present != 6 || got.Subagents.Count != 54 || got.Subagents.Tokens.Turns != 6*18 || got.Tokens.Turns != 6*21 {
		t.Errorf("the report has %+v", got)
	}
}

// TestFamiliesKilled kills runs whose episodes have subagents, again and again, at moments drawn from a seed: when some requests
// have been answered and the others wait, or at any time. What goes on asks nothing again that an earlier part had an answer to,
// and has the rows of an undisturbed run; so does the tape. FAMILY_KILLS says how often (4; make crashes 50).
func TestFamiliesKilled(t *testing.T) {
	for _, sandbox := range []string{"parent", "own"} { // in their own they work at once
		t.Run(sandbox, func(t *testing.T) {
			t.Parallel()
			killFamilies(t, sandbox)
		})
	}
}

func killFamilies(t *testing.T, sandbox string) {
	kills := number(t, "FAMILY_KILLS", 4)
	dataset, dir := familyTasks(t, 1+kills/12), t.TempDir()
	s, url := openTurnstile(t, dataset)
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "2", "--min-in-flight", "8", "--quiet", "--samples", "2",
		"--toolsets", "terminal,delegation", "--sandbox", "local", "--command-policy", "record", "--delegation-depth", "2", "--delegation-sandbox", sandbox}
	whole, run, taped, again := filepath.Join(dir, "whole"), filepath.Join(dir, "run"), filepath.Join(dir, "tape"), filepath.Join(dir, "again")
	succeed(t, append(args, "--out", whole)...)
	all, _ := s.forget()
	moments := rand.New(rand.NewPCG(uint64(number(t, "CRASH_SEED", 1)), 20))
	durable := append(args, "--out", run, "--durable-turns", "--record", taped)
	killed := 0
	for n := range kills {
		anytime, known := n%16 == 3, s.known()
		s.let(moments.IntN(all/kills + 1))
		if anytime {
			s.let(-1)
		}
		cmd := exec.Command(build(t), durable...)
		if exists(filepath.Join(run, "run.json")) {
			cmd.Args = append(cmd.Args, "--resume")
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		if anytime {
			select {
			case <-time.After(time.Duration(moments.IntN(500)) * time.Millisecond):
			case <-ended:
			}
		} else {
			s.quiet(ended)
		}
		if cmd.Process.Kill() == nil {
			killed++
		}
		<-ended
		if anytime {
			s.forgive(known)
		}
	}
	s.let(-1)
	succeed(t, append(durable, "--resume")...)
	n, twice := s.forget()
	if n > all || twice > 0 {
		t.Errorf("after %d kills %d requests were answered, %d of them twice; want %d at most and none", killed, n, twice, all)
	}
	want := unresumed(t, whole)
	sameRows(t, want, unresumed(t, run))
	for _, ep := range episodes(t, run) {
		if ep.Attempt != 1 {
			t.Errorf("%s was begun anew: %+v", ep.ID, ep.Earlier)
		}
	}
	if info, err := os.Stat(filepath.Join(run, "turns")); err != nil || info.Size() > 0 {
		t.Errorf("of what is finished turns are left: %v, %v", info, err)
	}
	succeed(t, "verify", "--run", run)
	succeed(t, append(args, "--out", again, "--replay", taped)...)
	sameRows(t, want, unresumed(t, again))
	t.Logf("%d kills, %d requests", killed, n)
	if killed < kills/2 {
		t.Errorf("%d kills of %d: the run ended too early to prove anything", killed, kills)
	}
}

// TestSubagentOfAnotherWorld: where a subagent's tools say something else after a crash, its whole tree begins anew, and says why.
func TestSubagentOfAnotherWorld(t *testing.T) {
	t.Parallel()
	dataset := write(t, "task.jsonl", strings.ReplaceAll(`{"id":"t","prompt":"Have the time told.","verify":{"regex":"done"},
		"gold":[{"tool_calls":[{"name":"delegate_task","arguments":{"goal":"Tell the time."}}]},{"content":"done"}],
		"gold_subagents":{"Tell the time.":[{"tool_calls":[{"name":"terminal","arguments":{"command":"date +%N"}}]},
			{"tool_calls":[{"name":"terminal","arguments":{"command":"true"}}]},{"content":"told"}]}}`, "\n", " "))
	s, url := openTurnstile(t, dataset)
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "1", "--quiet", "--toolsets", "terminal,delegation",
		"--sandbox", "local", "--command-policy", "record", "--durable-turns", "--out", run, "--episode-retries", "0"}
	killed(t, s, 3, 1, args...)
	succeed(t, append(args, "--resume")...)
	all := episodes(t, run)
	if len(all) != 1 || all[0].Outcome != episode.Success || all[0].Attempt != 2 || len(all[0].Earlier) != 1 || len(all[0].Children) != 1 || all[0].Children[0].Attempt != 2 {
		t.Fatalf("%d episodes, %+v", len(all), all[0])
	}
	was := all[0].Earlier[0]
	if was.Fault.Class != "resume_differs" || was.Differed == nil || was.Differed.Name != "terminal" || was.Turns != 3 {
		t.Errorf("the attempt before: %+v, %+v", was, was.Differed)
	}
	succeed(t, "verify", "--run", run)
}
