package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

// biller is a server that bills tokens by chance.
type biller struct {
	mu         sync.Mutex
	rand       *rand.Rand
	prompt     int
	completion int
	models     string // what /models says
}

func (b *biller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fmt.Fprintf(w, `{"data":[%s]}`, b.models)
		return
	}
	var body struct {
		MaxTokens int `json:"max_tokens"`
	}
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	prompt, completion, more := len(data)/8+b.rand.IntN(len(data)/4), 1+b.rand.IntN(cmp.Or(body.MaxTokens, 100)), b.rand.IntN(2) == 0
	b.prompt, b.completion = b.prompt+prompt, b.completion+completion
	b.mu.Unlock()
	message, finish := `{"role":"assistant","content":"x"}`, "stop"
	if more {
		message, finish = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"none","arguments":"{}"}}]}`, "tool_calls"
	}
	fmt.Fprintf(w, `{"model":"m","choices":[{"index":0,"finish_reason":%q,"message":%s}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
		finish, message, prompt, completion)
}

// spent is what was billed so far, in tokens and USD.
func (b *biller) spent() (tokens int, usd float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prompt + b.completion, float64(b.prompt)*2/1e6 + float64(b.completion)*10/1e6
}

func openBiller(t *testing.T, models string) (*biller, string) {
	t.Helper()
	b := &biller{rand: rand.New(rand.NewPCG(1, 2)), models: models}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, server.URL
}

// tasks is a dataset of so many tasks that need no sandbox.
func tasks(t *testing.T, n int) string {
	t.Helper()
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, `{"id":"t%d","prompt":"Say x.","verify":{"exact":"x"}}`+"\n", i)
	}
	return write(t, "d.jsonl", rows.String())
}

// TestBudget holds that a run never spends more than it may, whatever its concurrency, that it stops cleanly, and that it goes on with more.
func TestBudget(t *testing.T) {
	const all = 60
	prices := write(t, "prices.yaml", "date: 2026-05-01\nmodels: {m: {input: 2, output: 10, cached_input: 0.5}}\n")
	for _, workers := range []string{"1", "8", "64"} {
		t.Run(workers+" workers", func(t *testing.T) {
			t.Parallel()
			server, url := openBiller(t, `{"id":"m"}`)
			dir := filepath.Join(t.TempDir(), "run")
			args := []string{"run", "--out", dir, "--quiet", "--workers", workers}
			start := append(args, "--dataset", tasks(t, all), "--model", "m", "--base-url", url, "--toolsets", "todo", "--sandbox", "local",
				"--max-tokens", "500", "--prices-file", prices, "--budget-usd", "0.12")
			got := trajgen(t, start...)
			if got.code != exitBudget || !strings.Contains(got.errOut, "budget reached: spent 0.") || !strings.Contains(got.errOut, "of 0.12 USD; --resume with a higher --budget-usd goes on") {
				t.Fatalf("exit code %d: %s", got.code, got.errOut)
			}
			_, usd := server.spent()
			if usd > 0.12 || usd < 0.08 {
				t.Errorf("%v USD were spent of 0.12", usd)
			}
			played := len(episodes(t, dir))
			if played == 0 || played == all {
				t.Errorf("%d episodes of %d were played", played, all)
			}
			for _, ep := range episodes(t, dir) {
				if ep.CostUSD == nil || !ep.Outcome.AgentsDoing() {
					t.Errorf("%s: outcome %s, fault %+v, cost %v", ep.Key.Task, ep.Outcome, ep.Fault, ep.CostUSD)
				}
			}
			var report report.Report
			data, err := os.ReadFile(filepath.Join(dir, "report.json"))
			if err == nil {
				err = json.Unmarshal(data, &report)
			}
			if b := report.Budget; err != nil || b == nil || b.USD != 0.12 || b.SpentUSD < usd-1e-6 || b.SpentUSD > 0.12 || report.Cost.PerEpisode == nil {
				t.Errorf("report: %v, budget %+v; %v USD were billed", err, b, usd)
			}
			// With as much, it stops before it begins; with more it goes on, and all of it counts.
			if got := trajgen(t, append(args, "--resume", "--workers", "1")...); got.code != exitBudget {
				t.Errorf("resumed with no more: exit code %d: %s", got.code, got.errOut)
			}
			got = trajgen(t, append(args, "--resume", "--budget-usd", "0", "--budget-tokens", "50000")...)
			if tokens, _ := server.spent(); got.code != exitBudget || tokens > 50_000 || !strings.Contains(got.errOut, "of 50000 tokens") {
				t.Errorf("resumed with tokens: exit code %d after %d tokens: %s", got.code, tokens, got.errOut)
			}
			if got := trajgen(t, append(args, "--resume", "--budget-usd", "50", "--budget-tokens", "0")...); got.code != 0 {
				t.Errorf("resumed with plenty: exit code %d: %s", got.code, got.errOut)
			}
			if n := len(episodes(t, dir)); n != all {
				t.Errorf("%d episodes of %d in the end", n, all)
			}
			m, err := run.ReadManifest(dir)
			if err != nil || m.RunFile.Budget.Prices["m"] != (episode.Price{Input: 2, Output: 10, CachedInput: 0.5, Date: "2026-05-01"}) {
				t.Errorf("run.json has prices %v, %v", m.RunFile.Budget.Prices, err)
			}
		})
	}
}

// TestContextWindow holds that the run file's window ends an episode before a request that does not fit.
func TestContextWindow(t *testing.T) {
	_, url := openBiller(t, `{"id":"m","max_model_len":100000}`)
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--out", dir, "--quiet", "--dataset", tasks(t, 20), "--model", "m", "--base-url", url, "--toolsets", "todo", "--sandbox", "local",
		"--max-tokens", "100", "--context-window", "10")
	stopped := 0
	for _, ep := range episodes(t, dir) {
		if len(ep.Turns) != 1 {
			t.Errorf("%s: %d turns", ep.Key.Task, len(ep.Turns))
		}
		if ep.Stop == episode.StopContext {
			stopped++
		}
	}
	if stopped == 0 || stopped == 20 {
		t.Errorf("%d episodes of 20 stopped at the end of the window", stopped)
	}
}

// TestBudgetNeeds holds what a budget has to know before anything is asked.
func TestBudgetNeeds(t *testing.T) {
	t.Parallel()
	server, url := openBiller(t, `{"id":"m"}`)
	_, bounded := openBiller(t, `{"id":"m","max_model_len":4000}`)
	dataset := tasks(t, 1)
	run := func(url string, more ...string) result {
		return trajgen(t, append([]string{"run", "--out", filepath.Join(t.TempDir(), "run"), "--quiet", "--dataset", dataset, "--model", "m", "--base-url", url,
			"--toolsets", "todo", "--sandbox", "local"}, more...)...)
	}
	prices := write(t, "prices.yaml", "date: 2026-05-01\nmodels: {m: {input: 2, output: 10}}\n")
	for _, tt := range []struct {
		name string
		give []string
		want string
	}{
		{"no price", []string{"--budget-usd", "1", "--max-tokens", "100"}, "a budget in USD needs the price of m: give it with --prices-file"},
		{"no bound of a reply", []string{"--budget-tokens", "100000"}, "give --max-tokens N, or the model's --context-window N"},
		{"no price of an episode", []string{"--episode-usd", "1", "--max-tokens", "100"}, "episode_usd needs the price of m"},
		{"no date", []string{"--prices-file", write(t, "undated.yaml", "models: {m: {input: 2, output: 10}}\n")}, "date: YYYY-MM-DD"},
		{"negative", []string{"--budget-usd", "-1"}, "not below 0"},
		{"not a strategy", []string{"--compaction", "forget"}, "one of stop, drop, summarize"},
	} {
		if got := run(url, tt.give...); got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
			t.Errorf("%s: exit code %d: %s", tt.name, got.code, got.errOut)
		}
	}
	if tokens, _ := server.spent(); tokens > 0 {
		t.Errorf("%d tokens were spent by runs that did not start", tokens)
	}
	for _, more := range [][]string{
		{"--budget-usd", "1", "--max-tokens", "100", "--allow-unknown-price"},
		{"--budget-usd", "1", "--context-window", "4000", "--prices-file", prices},
	} {
		if got := run(url, more...); got.code != 0 && !strings.Contains(got.errOut, "budget reached") {
			t.Errorf("%v: exit code %d: %s", more, got.code, got.errOut)
		}
	}
	if got := run(bounded, "--budget-tokens", "1000000"); strings.Contains(got.errOut, "give --max-tokens") {
		t.Errorf("the server's window was not found: %s", got.errOut)
	}
}
