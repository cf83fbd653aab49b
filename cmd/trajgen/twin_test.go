package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/outputs/report"
	"trajgen/tools/twin"
)

// ticketPlugin has a state, and never says the same twice.
const ticketPlugin = `#!/bin/sh
n=0
while IFS= read -r request; do
	id=${request#*:}; id=${id%%,*}
	case $request in
	*'"method":"describe"'*) echo '{"id":'$id',"tools":[{"name":"ticket_add","description":"Adds a <ticket>.","parameters":{"type":"object","properties":{"title":{"type":"string","description":"What & why"}},"required":["title"]}},{"name":"ticket_count","description":"Counts.","read_only":true}]}' ;;
	*ticket_add*) n=$((n+1)); echo '{"id":'$id',"result":{"number":'$n',"at":"'$(date +%s%N)'","by":"'$TICKET_KEY'"}}' ;;
	*) echo '{"id":'$id',"result":{"count":'$n',"asked":"'$(date +%s%N)'"}}' ;;
	esac
done
`

// ticketTasks are tasks of five calls each: of the plugin, and of the bundled corpus. The first one has a script that makes some.
func ticketTasks(n int) string {
	var b strings.Builder
	for i := range n {
		if i == 0 {
			b.WriteString(`{"id":"script","prompt":"Do it in a script.","verify":{"exact":"done"},"gold":[{"tool_calls":[{"name":"execute_code","arguments":{"code":` +
				`"import trajgen_tools as t\nprint(t.ticket_add(title='from a script'))\nprint(t.ticket_count())\nprint(t.web_search(query='lighthouse'))"}}]},{"content":"done"}]}` + "\n")
		}
		fmt.Fprintf(&b, `{"id":"ticket-%d","prompt":"Do %d.","verify":{"exact":"done"},"gold":[`+
			`{"tool_calls":[{"name":"ticket_add","arguments":{"title":"ticket %d"}},{"name":"search","arguments":{"query":"lighthouse"}}]},`+
			`{"tool_calls":[{"name":"ticket_add","arguments":{"title":"ticket %d"}},{"name":"ticket_count","arguments":{}}]},`+
			`{"tool_calls":[{"name":"web_search","arguments":{"query":"harbour","limit":%d}}]},{"content":"done"}]}`+"\n", i, i, i%7, i%7, i%3+1)
	}
	return b.String()
}

// ticketRun is a run file with the plugin.
func ticketRun(t *testing.T, plugin string) string {
	return write(t, "run.yaml", fmt.Sprintf(`web: {mode: corpus, corpus: bundled}
tools:
  plugins: [{name: tickets, command: [sh, %s], files: [%s], where: runner, env_from: [TICKET_KEY], scripts: true}]
`, filepath.Base(plugin), plugin))
}

// twins are rows of a recording or a replay, without what says which of them.
func twins(t *testing.T, rows []string) (all []string) {
	t.Helper()
	for _, row := range rows {
		var fields map[string]any
		if err := json.Unmarshal([]byte(row), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "run")
		for _, call := range fields["calls"].([]any) {
			if source, ok := call.(map[string]any)["source"].(map[string]any); ok {
				delete(source, "via")
			}
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// TestTwinReplay records 505 calls, and replays them with 64 workers and without plugin and key.
func TestTwinReplay(t *testing.T) {
	t.Setenv("TICKET_KEY", "key-1234567890")
	dir, plugin := t.TempDir(), write(t, "tickets.sh", ticketPlugin)
	dataset, file := write(t, "tickets.jsonl", ticketTasks(50)), ticketRun(t, plugin)
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--samples", "2")
	recorded := play("recorded", "--twin", "record", "--workers", "8")
	if len(recorded) != 102 || !strings.Contains(recorded[0], "[secret TICKET_KEY]") {
		t.Fatalf("%d rows, such as %s", len(recorded), cut(recorded[0]))
	}
	if err := os.Remove(plugin); err != nil {
		t.Fatal(err)
	}
	os.Unsetenv("TICKET_KEY")
	from := filepath.Join(dir, "recorded")
	replay := []string{"--twin", "replay", "--twin-recording", from}
	one := play("one", append(replay, "--workers", "1")...)
	sameRows(t, one, play("many", append(replay, "--workers", "64")...))
	sameRows(t, twins(t, recorded), twins(t, one))
	for _, name := range []string{"recorded", "one"} {
		succeed(t, "verify", "--run", filepath.Join(dir, name))
	}
	if out, err := exec.Command("grep", "-rl", "key-1234567890", from).CombinedOutput(); len(out) > 0 {
		t.Errorf("the key is in %s (%v)", out, err)
	}

	var got report.Report
	data, err := os.ReadFile(filepath.Join(dir, "many", "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || got.Twin == nil || got.Twin.Calls != 506 || got.Twin.HitShare != 1 || got.Web != nil {
		t.Errorf("report: %+v, %+v (%v)", got.Twin, got.Web, err)
	}
	if text := succeed(t, "twin", "info", from).out; !strings.Contains(text, "506 calls of 102 episodes") || !strings.Contains(text, "plugin tickets") {
		t.Errorf("info: %s", text)
	}

	// A resume with another twin is refused.
	refused := trajgen(t, "run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--samples", "2", "--quiet", "--out", filepath.Join(dir, "one"), "--resume")
	if refused.code != exitUsage || !strings.Contains(refused.errOut, "tickets.sh") && !strings.Contains(refused.errOut, "twin: was replay") {
		t.Errorf("code %d: %s", refused.code, refused.errOut)
	}

	// Other tasks ask for what the recording lacks: no reward, and nothing that looks like a failure of the agent.
	other := write(t, "other.jsonl", strings.ReplaceAll(ticketTasks(1), "harbour", "market"))
	trajgen(t, append([]string{"run", "-f", file, "--dataset", other, "--policy", "oracle", "--quiet", "--episode-retries", "0", "--out", filepath.Join(dir, "other")}, replay...)...)
	missed := 0
	for _, ep := range episodes(t, filepath.Join(dir, "other")) {
		if ep.Outcome == "tool_error" && ep.Reward == nil && ep.Fault != nil && ep.Fault.Class == "twin_miss" {
			missed++
		}
	}
	if missed != 1 {
		t.Errorf("%d episodes ended in a miss", missed)
	}

	wantCoverage(t, "of the replay", 506, 506, "", "--run", filepath.Join(dir, "many"))
	wantCoverage(t, "of the other tasks", 8, 7, "web_search new_arguments 1", "--run", filepath.Join(dir, "other"))
	wantCoverage(t, "against its own", 506, 506, "", "--recording", from, "--against", from)
	wantCoverage(t, "against the other tasks", 8, 7, "web_search new_arguments 1", "--recording", from, "--against", filepath.Join(dir, "other"))
	wantCoverage(t, "of others", 506, 506, "", "--recording", from)
	for _, wrong := range [][]string{{}, {"--run", from, "--recording", from}, {"--against", from}, {"--recording", filepath.Join(dir, "one")}} {
		if got := here(t, append([]string{"twin", "report"}, wrong...)...); got.code != exitUsage {
			t.Errorf("%v: exit code %d: %s", wrong, got.code, got.errOut)
		}
	}
	got2 := succeed(t, append([]string{"tools", "call", "ticket_count", "{}", "-f", file}, replay...)...)
	if line := lines[resultLine](t, got2.out)[0]; line.Status != "ok" || !strings.Contains(string(line.Source), `"via":"replay"`) {
		t.Errorf("tools call: %+v", line)
	}
}

// wantCoverage holds what twin report says.
func wantCoverage(t *testing.T, what string, calls, hits int, misses string, args ...string) {
	t.Helper()
	var got twinReport
	if err := json.Unmarshal([]byte(succeed(t, append([]string{"twin", "report", "--json"}, args...)...).out), &got); err != nil {
		t.Fatal(err)
	}
	sum, all := twin.Coverage{}, ""
	for _, c := range got.Tools {
		sum.Calls, sum.Hits = sum.Calls+c.Calls, sum.Hits+c.Hits
		for kind, n := range c.Misses {
			all += fmt.Sprintf("%s %s %d", c.Tool, kind, n)
		}
	}
	if sum.Calls != calls || sum.Hits != hits || all != misses {
		t.Errorf("%s: %d of %d calls, misses %q; want %d of %d, %q", what, sum.Hits, sum.Calls, all, hits, calls, misses)
	}
	if text := succeed(t, append([]string{"twin", "report"}, args...)...).out; !strings.Contains(text, "ticket_add") {
		t.Errorf("%s: %s", what, text)
	}
}

// TestTwinKilled kills a run that records, three times, and resumes it: its recording answers all that it came to.
func TestTwinKilled(t *testing.T) {
	t.Setenv("TICKET_KEY", "key-1234567890")
	dir, plugin := t.TempDir(), write(t, "tickets.sh", strings.Replace(ticketPlugin, "case $request", "sleep 0.02; case $request", 1))
	dataset, file := write(t, "tickets.jsonl", ticketTasks(15)), ticketRun(t, plugin)
	out := filepath.Join(dir, "recorded")
	args := []string{"run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--quiet", "--workers", "4", "--out", out, "--twin", "record"}
	kills := 0
	for size := range 3 {
		cmd := exec.Command(build(t), args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			case <-time.After(5 * time.Millisecond):
				if info, err := os.Stat(filepath.Join(out, "twin", "index")); err == nil && info.Size() > int64(6_000*(size+1)) {
					_ = cmd.Process.Kill()
					<-ended
					over = true
					kills++
				}
			}
		}
		if size == 0 {
			args = append(args, "--resume")
		}
	}
	if kills < 3 {
		t.Errorf("killed %d times", kills)
	}
	succeed(t, args...)
	succeed(t, "verify", "--run", out)
	recorded := timeless(t, out)
	if len(recorded) != 16 {
		t.Fatalf("%d rows", len(recorded))
	}
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle")
	sameRows(t, twins(t, recorded), twins(t, play("replayed", "--twin", "replay", "--twin-recording", out)))
}

// TestTwinMerge merges two recorded parts of a run, whose recording then answers all of it.
func TestTwinMerge(t *testing.T) {
	t.Setenv("TICKET_KEY", "key-1234567890")
	dir := t.TempDir()
	dataset, file := write(t, "tickets.jsonl", ticketTasks(4)), ticketRun(t, write(t, "tickets.sh", ticketPlugin))
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle")
	recorded := append(play("first", "--twin", "record", "--slice", "1:2"), play("second", "--twin", "record", "--slice", "2:4")...)
	merged := filepath.Join(dir, "merged")
	succeed(t, "merge", filepath.Join(dir, "first"), filepath.Join(dir, "second"), "--out", merged)
	succeed(t, "verify", "--run", merged)
	sameRows(t, twins(t, recorded), twins(t, play("replayed", "--twin", "replay", "--twin-recording", merged, "--slice", "1:4")))
}
