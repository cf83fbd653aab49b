package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"trajgen/outputs/estimate"
	"trajgen/outputs/internal/golden"
	"trajgen/outputs/report"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// judged is an episode with nothing but a verdict.
func judged(task string, sample int, reward float64) *episode.Episode {
	key := episode.Key{Task: task, Sample: sample}
	ep := &episode.Episode{ID: key.ID(), Key: key, Outcome: episode.Failure, Stop: episode.StopAnswered, Reward: &reward}
	if reward == 1 {
		ep.Outcome = episode.Success
	}
	return ep
}

func reportOf(meta report.Meta, episodes ...*episode.Episode) *report.Report {
	b := report.New(meta)
	for _, ep := range episodes {
		b.Add(ep)
	}
	return b.Finish()
}

// byTask are episodes with the rewards of each task.
func byTask(rewards ...[]float64) (episodes []*episode.Episode) {
	for task, values := range rewards {
		for sample, value := range values {
			episodes = append(episodes, judged(fmt.Sprint("task", task), sample, value))
		}
	}
	return episodes
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-5 }

func TestIntervalIsUndefinedForOneTask(t *testing.T) {
	got := reportOf(report.Meta{}, byTask([]float64{1, 0, 0, 0})...).Reward
	if got.Low != nil || got.High != nil || !strings.Contains(got.Note, "one task") || *got.Mean != 0.25 {
		t.Errorf("one task: %s, want a mean of 0.25 without an interval and a note", show(got))
	}
	none := reportOf(report.Meta{})
	if none.Reward.Mean != nil || none.SuccessRate.Mean != nil || len(none.PassAtK) > 0 || none.Cost.USD != nil {
		t.Errorf("no episodes: reward %s, success %s, pass@k %v; want nulls", show(none.Reward), show(none.SuccessRate), none.PassAtK)
	}
}

func TestPassAtK(t *testing.T) {
	// 5 samples of which 2 succeed: pass@2 = 1 - C(3,2)/C(5,2) = 7/10, pass@4 = 1. The errors are no samples.
	episodes := byTask([]float64{1, 0, 0, 1, 0}, []float64{0})
	for n := range 3 {
		outage := judged("task1", n+1, 0)
		outage.Outcome, outage.Reward = episode.ModelError, nil
		episodes = append(episodes, outage)
	}
	got := reportOf(report.Meta{}, episodes...)
	check := func(name string, got []estimate.PassRate, want ...estimate.PassRate) {
		for i := range want {
			if len(got) != len(want) || !near(got[i].Value, want[i].Value) || got[i].K != want[i].K || got[i].Tasks != want[i].Tasks || got[i].Of != want[i].Of {
				t.Fatalf("%s = %s, want %s", name, show(got), show(want))
			}
			if (got[i].Low == nil) != (got[i].Tasks == 1) {
				t.Errorf("%s: %s has an interval, or has none", name, show(got[i]))
			}
		}
	}
	check("pass@k", got.PassAtK, estimate.PassRate{K: 1, Value: 0.2, Tasks: 2, Of: 2}, estimate.PassRate{K: 2, Value: 0.7, Tasks: 1, Of: 2}, estimate.PassRate{K: 4, Value: 1, Tasks: 1, Of: 2})
	// pass^2 = C(2,2)/C(5,2) = 1/10.
	check("pass^k", got.PassHatK, estimate.PassRate{K: 1, Value: 0.2, Tasks: 2, Of: 2}, estimate.PassRate{K: 2, Value: 0.1, Tasks: 1, Of: 2}, estimate.PassRate{K: 4, Value: 0, Tasks: 1, Of: 2})
}

// An answer that nothing checked has the outcome success for want of a better word. It is no evidence.
func TestUnjudgedProvesNothing(t *testing.T) {
	free := judged("task9", 0, 1)
	free.Reward = nil
	r := reportOf(report.Meta{}, free)
	if r.SuccessRate.Mean != nil || len(r.PassAtK) > 0 || r.Episodes.Unjudged != 1 || r.Episodes.Judged != 0 {
		t.Errorf("unjudged: success %s, pass@k %v, %+v; want nulls", show(r.SuccessRate), r.PassAtK, r.Episodes)
	}
	// An end at a limit that nothing checked is no failure either.
	limit := judged("task8", 0, 0)
	limit.Outcome, limit.Stop, limit.Reward = episode.Limit, episode.StopMaxTurns, nil
	r = reportOf(report.Meta{}, free, limit, judged("task1", 0, 0), judged("task2", 0, 1))
	if r.SuccessRate.N != 2 || *r.SuccessRate.Mean != 0.5 || r.PassAtK[0].Of != 2 || r.Episodes.Unjudged != 2 {
		t.Errorf("success rate of a mixed run: %s, pass@k %s; want 0.5 of 2, beside 2 unjudged", show(r.SuccessRate), show(r.PassAtK))
	}
	if d := compare([]*episode.Episode{limit}, []*episode.Episode{limit}); d.Tasks.Compared != 0 {
		t.Errorf("%d tasks compared that nothing checked", d.Tasks.Compared)
	}
}

func TestReportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rewards := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 5), 1, 20).Draw(t, "rewards")
		episodes := byTask(rewards...)
		values := slices.Concat(rewards...)
		r := reportOf(report.Meta{}, episodes...)
		if mean := *r.Reward.Mean; mean < slices.Min(values) || mean > slices.Max(values) {
			t.Errorf("mean %v outside of [%v, %v]", mean, slices.Min(values), slices.Max(values))
		}
		if low := r.Reward.Low; low != nil && (*low > *r.Reward.Mean || *r.Reward.High < *r.Reward.Mean) {
			t.Errorf("interval %s does not hold the mean", show(r.Reward))
		}
		last := 0.0
		for _, p := range r.PassAtK {
			if p.Tasks == p.Of {
				if p.Value < last-1e-12 || p.Value > 1 {
					t.Errorf("pass@k falls or leaves [0, 1]: %+v", r.PassAtK)
				}
				last = p.Value
			}
		}
	})
}

func TestReportDoesNotDependOnOrder(t *testing.T) {
	episodes := sinktest.Episodes(60)
	backwards := slices.Clone(episodes)
	slices.Reverse(backwards)
	meta := report.Meta{Prices: map[string]report.Price{"scripted": {Input: 1, Output: 2}}}
	a, b := reportOf(meta, episodes...), reportOf(meta, backwards...)
	// Within a task, sums of rewards may differ in the last bit; those here are whole.
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("order matters (-forwards +backwards):\n%s", diff)
	}
}

func TestReportQuantilesAreBoundedAndFair(t *testing.T) {
	ep := sinktest.Episode(0, 0)
	const calls = 50_000
	call := ep.Calls[0]
	ep.Calls = nil
	for n := range calls {
		call.Elapsed = time.Duration(n) * time.Microsecond
		ep.Calls = append(ep.Calls, call)
	}
	elapsed := reportOf(report.Meta{}, ep).Tools[0].Elapsed
	if !elapsed.Sampled || math.Abs(float64(*elapsed.P50US)/calls-0.5) > 0.02 || math.Abs(float64(*elapsed.P95US)/calls-0.95) > 0.01 {
		t.Errorf("quantiles of 0 to %dµs: %s, want about half and 95 %%, sampled", calls, show(elapsed))
	}
	ep.Calls = ep.Calls[:20] // 0 to 19 µs: nearest ranks 10 and 19 of 20
	elapsed = reportOf(report.Meta{}, ep).Tools[0].Elapsed
	if elapsed.Sampled || *elapsed.P50US != 9 || *elapsed.P95US != 18 {
		t.Errorf("quantiles of 0 to 19µs: %s, want exactly 9 and 18", show(elapsed))
	}
}

func TestCostIsNeverGuessed(t *testing.T) {
	turn := func(model string, reported bool) episode.Turn {
		u := episode.Usage{Prompt: 1_000_000, Completion: 100_000, Cached: 400_000, Reported: reported}
		if !reported {
			u = episode.Usage{}
		}
		return episode.Turn{Model: model, Usage: u}
	}
	prices := map[string]report.Price{"m": {Input: 2, Output: 10, CachedInput: 0.5}, "plain": {Input: 2, Output: 10}}
	tests := []struct {
		name       string
		asked      string
		turns      []episode.Turn
		usd, known float64 // negative: null
		unknown    int
	}{
		// 600,000 · 2 + 400,000 · 0.5 + 100,000 · 10, per million.
		{"known", "m", []episode.Turn{turn("m", true)}, 2.4, 2.4, 0},
		{"cached input at the price of input", "plain", []episode.Turn{turn("plain", true)}, 3, 3, 0},
		{"dated name of the server", "m", []episode.Turn{turn("m-2026-01-01", true)}, 2.4, 2.4, 0},
		{"no usage", "m", []episode.Turn{turn("m", true), turn("m", false)}, -1, 2.4, 1},
		{"no price", "other", []episode.Turn{turn("other", true)}, -1, -1, 1},
		{"price of one model only", "other", []episode.Turn{turn("other", true), turn("m", true)}, -1, 2.4, 1},
		{"nothing reported", "m", []episode.Turn{turn("m", false)}, -1, -1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep := judged("task", 0, 1)
			ep.Turns = tt.turns
			got := reportOf(report.Meta{Origin: report.Origin{Model: tt.asked}, Prices: prices}, ep).Cost
			if !same64(got.USD, tt.usd) || !same64(got.KnownUSD, tt.known) || got.UnknownTurns != tt.unknown {
				t.Errorf("cost = %s, want usd %v, known %v, %d unknown turns", show(got), tt.usd, tt.known, tt.unknown)
			}
		})
	}
}

func same64(got *float64, want float64) bool {
	if got == nil || want < 0 {
		return got == nil && want < 0
	}
	return near(*got, want)
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// reportCase is a run whose figures are few enough to check by hand.
//
// Rewards: task a 1 1 0, task b 0 0, task c 1, as in TestIntervals; pass@1 = (2/3 + 0 + 1)/3 = 0.556, pass@2 = (1 + 0)/2,
// pass^2 = (1/3 + 0)/2. Task d died of its model. 7 of 9 planned are there. Each turn has 1,000 prompt tokens of which 500 were
// cached, and 100 completion tokens, so it costs (500·2 + 500·1 + 100·10)/1e6 = $0.0025; there are 7·2 turns, and one
// more without usage.
func reportCase() (report.Meta, []*episode.Episode) {
	episodes := byTask([]float64{1, 1, 0}, []float64{0, 0}, []float64{1}, []float64{0})
	for i, ep := range episodes {
		ep.Row, ep.Elapsed, ep.Started = i, time.Duration(i+1)*time.Second, time.Date(2026, 11, 23, 21, i, 0, 0, time.UTC)
		ep.Task.Verify = []episode.Check{{}}
		ep.Phases = episode.Phases{Model: ep.Elapsed / 2, Tools: ep.Elapsed / 4}
		ep.Toolsets = [][]string{{"files"}, {"files", "terminal"}}[i%2]
		ep.Task.Difficulty = []string{"easy", "hard"}[i%2]
		ep.Task.Tags = []string{"py|thon", "\x1b[31mred\n<b>"}[:1+i%2]
		u := episode.Usage{Prompt: 1000, Completion: 100, Reasoning: 40, Cached: 500, Reported: true}
		ep.Turns = []episode.Turn{{Model: "m-2026-05-05", Usage: u}, {Model: "m-2026-05-05", Usage: u}}
		ep.Model = "m"
		ep.Calls = []episode.ToolCall{
			{Name: "terminal", Status: episode.CallOK, Elapsed: time.Duration(10*(i+1)) * time.Millisecond, SandboxTime: time.Duration(i+1) * time.Millisecond, ExitCode: new(i % 3)},
			{Name: "read_file", Status: episode.CallOK, Elapsed: 800 * time.Microsecond, SandboxTime: 640 * time.Microsecond},
		}
	}
	episodes[0].Turns[0].Retries = []episode.Fault{{Outcome: episode.ModelError, Class: "rate_limit", Message: "429"}}
	episodes[1].Calls[1].Status, episodes[1].Calls[1].ErrorClass = episode.CallError, "not_found"
	episodes[2].Calls = append(episodes[2].Calls, episode.ToolCall{Name: "wirte_file", Status: episode.CallUnknownTool, ErrorClass: "unknown_tool"})
	episodes[4].Outcome, episodes[4].Stop = episode.Limit, episode.StopMaxTurns
	episodes[5].Turns = append(episodes[5].Turns, episode.Turn{Model: "m-2026-05-05"})
	dead := episodes[6]
	dead.Outcome, dead.Stop, dead.Reward = episode.ModelError, episode.StopFault, nil
	dead.Fault = &episode.Fault{Outcome: episode.ModelError, Class: "timeout", Message: "no answer within 60s:\nserver | at \x1b[1mlocalhost"}
	dead.Earlier = episode.Attempts{{Attempt: 1, Outcome: episode.SandboxError, Fault: &episode.Fault{Outcome: episode.SandboxError, Class: "open", Message: "no space"}}}
	return report.Meta{
		Origin: report.Origin{
			Name: "nightly", Model: "m", Dataset: "tasks.jsonl", Distribution: "default",
			Digest: "sha256:0123", Seed: "7", Fingerprint: "k3d", Version: "dev 0a1b2c",
		},
		Planned: 9, Wall: 14 * time.Second,
		Prices: map[string]report.Price{"m": {Input: 2, Output: 10, CachedInput: 1, Date: "2026-05-01"}},
	}, episodes
}

func TestReportForms(t *testing.T) {
	meta, episodes := reportCase()
	r := reportOf(meta, episodes...)
	forms := map[string]func(*bytes.Buffer) error{
		"json":     func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"markdown": func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"terminal": func(b *bytes.Buffer) error { return r.WriteTerminal(b, 80, false) },
		"color":    func(b *bytes.Buffer) error { return r.WriteTerminal(b, 100, true) },
		"pipe":     func(b *bytes.Buffer) error { return r.WriteTerminal(b, 0, false) },
	}
	for name, write := range forms {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			if err := write(&buf); err != nil {
				t.Fatal(err)
			}
			if name != "color" && strings.Contains(buf.String(), "\x1b") {
				t.Errorf("an escape sequence of a message came through:\n%q", buf.String())
			}
			golden.Check(t, buf.Bytes())
		})
	}
}

func TestTerminalKeepsToItsWidth(t *testing.T) {
	meta, episodes := reportCase()
	for n := range 40 {
		episodes = append(episodes, sinktest.Episode(n, 0))
	}
	episodes[3].Toolsets = []string{strings.Repeat("a-very-long-toolset-name", 10)}
	for _, width := range []int{40, 80, 200} {
		var buf bytes.Buffer
		if err := reportOf(meta, episodes...).WriteTerminal(&buf, width, false); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(buf.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

// Where there is no terminal nothing is cut, and on a terminal an error's text goes on in the next line.
func TestErrorsAreNotCut(t *testing.T) {
	meta, episodes := reportCase()
	message := strings.TrimSpace(strings.Repeat("the_sandbox_said_something ", 15))
	episodes[6].Fault.Message = message
	for n := range 20 {
		episodes = append(episodes, judged(fmt.Sprint("more", n), 0, 1))
	}
	r := reportOf(meta, episodes...)
	for _, width := range []int{0, 80} {
		var buf bytes.Buffer
		if err := r.WriteTerminal(&buf, width, false); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(buf.String()), " "); !strings.Contains(text, message) {
			t.Errorf("width %d: the message is cut:\n%s", width, buf.String())
		}
		if listed := strings.Contains(buf.String(), "more19"); listed != (width == 0) || listed == strings.Contains(buf.String(), "more with --json") {
			t.Errorf("width %d: the last task is listed: %v", width, listed)
		}
	}
}

func TestReportBoundsWhatStrangersName(t *testing.T) {
	b := report.New(report.Meta{})
	for n := range 1000 {
		ep := judged("task", n, 1)
		name := fmt.Sprint("made_up_", n)
		ep.Calls = []episode.ToolCall{{Name: name, Status: episode.CallUnknownTool, ErrorClass: name}}
		ep.Earlier = episode.Attempts{{Attempt: 1, Outcome: episode.ToolError, Fault: &episode.Fault{Outcome: episode.ToolError, Class: name, Message: strings.Repeat("x", 10_000)}}}
		b.Add(ep)
	}
	r := b.Finish()
	if len(r.Tools) != 1 || len(r.UnknownTools) > 201 || len(r.Tools[0].ErrorClasses) > 201 || len(r.EarlierAttempts) > 201 {
		t.Errorf("%d tools, %d unknown tools, %d classes, %d faults; want few", len(r.Tools), len(r.UnknownTools), len(r.Tools[0].ErrorClasses), len(r.EarlierAttempts))
	}
	if r.Tools[0].Calls != 1000 || r.UnknownTools[0].Name != "(other)" || utf8.RuneCountInString(r.EarlierAttempts[0].Example) > 501 {
		t.Errorf("calls %d, most frequent %v; want all counted", r.Tools[0].Calls, r.UnknownTools[0])
	}
}

// TestReportCountsWhatWasDone is about the calls that something was done about, and the tokens of other models.
func TestReportCountsWhatWasDone(t *testing.T) {
	asked := func(decision string, prompt int) *episode.Verdict {
		return &episode.Verdict{Verdict: "ask", Decision: decision, Usage: &episode.Usage{Prompt: prompt, Completion: 1, Reported: true}}
	}
	ep := judged("a", 0, 1)
	ep.Calls = []episode.ToolCall{
		{Name: "t", Status: episode.CallOK, Stored: "/tmp/x", Masked: []string{"KEY"}, Verdict: asked("approved by model", 10)},
		{Name: "t", Status: episode.CallOK, SameAs: "1", Verdict: &episode.Verdict{Verdict: "ask", Decision: "approved by list"}},
		{Name: "t", Status: episode.CallDenied, Verdict: asked("denied by model", 20)},
		{Name: "t", Status: episode.CallDenied, Verdict: &episode.Verdict{Verdict: "block", Decision: "refused by policy"}},
		{Name: "t", Status: episode.CallOK, Verdict: &episode.Verdict{Verdict: "ask", Decision: "recorded"}},
	}
	ep.User = &episode.UserTrace{Questions: 2, Model: "u", Usage: episode.Usage{Prompt: 7, Completion: 3, Reported: true}}
	silent := judged("b", 0, 1)
	silent.User = &episode.UserTrace{Questions: 1, Model: "u"}
	scripted := judged("c", 0, 1)
	scripted.User = &episode.UserTrace{Questions: 1}

	r := reportOf(report.Meta{}, ep, silent, scripted)
	tool := r.Tools[0]
	if got, want := [5]int{tool.Stored, tool.Masked, tool.Shared, tool.Refused, tool.Approved}, [5]int{1, 1, 1, 2, 1}; got != want {
		t.Errorf("stored, masked, shared, refused, approved = %v, want %v", got, want)
	}
	if want := (report.OtherUsage{Tokens: report.Tokens{Prompt: 30, Completion: 2}, Episodes: 1}); r.Approver != want {
		t.Errorf("approver = %+v, want %+v", r.Approver, want)
	}
	if want := (report.OtherUsage{Tokens: report.Tokens{Prompt: 7, Completion: 3}, Episodes: 2, Unreported: 1}); r.User != want {
		t.Errorf("user = %+v, want %+v", r.User, want)
	}
	if r.Usage.Prompt != 0 {
		t.Errorf("the agent's usage has %d prompt tokens of others", r.Usage.Prompt)
	}
	var page bytes.Buffer
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"approver tokens", "user tokens", "refused 2"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q:\n%s", want, page.String())
		}
	}
}
