package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// TestWebSummary plays episodes whose long pages a model summarises: recorded on both tapes, counted and paid, and replayed without
// the site and the model.
func TestWebSummary(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	small := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"small","object":"model"}]}`)
			return
		}
		n := asked.Add(1)
		fmt.Fprintf(w, `{"id":"c-%d","object":"chat.completion","model":"small","choices":[{"index":0,"finish_reason":"stop","message":`+
			`{"role":"assistant","content":"Summary %d: the lamp is green."}}],"usage":{"prompt_tokens":2000,"completion_tokens":100,"total_tokens":2100}}`, n, n)
	}))
	t.Cleanup(small.Close)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s\n\n%s", r.URL.Path, strings.Repeat("The lamp is green. ", 1000))
	}))
	t.Cleanup(site.Close)
	var tasks strings.Builder
	for i := range 4 {
		fmt.Fprintf(&tasks, `{"id":"read-%d","prompt":"Read.","toolsets":["web"],"verify":{"exact":"done"},"gold":[{"tool_calls":[`+
			`{"name":"web_extract","arguments":{"urls":["%s/a%d","%s/b%d"]}},{"name":"web_extract","arguments":{"urls":["%s/c"]}}]},{"content":"done"}]}`+"\n",
			i, site.URL, i, site.URL, i, site.URL)
	}
	dataset := write(t, "read.jsonl", tasks.String())
	file := write(t, "run.yaml", `
web:
  allow_private: [127.0.0.1]
  summary: {model: small, base_url: "`+small.URL+`/v1"}
budget:
  prices: {small: {input: 1, output: 10}, scripted-oracle: {input: 0, output: 0}}
`)
	dir := t.TempDir()
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--max-tokens", "1000")
	tape := filepath.Join(dir, "tape")
	recorded := play("recorded", "--web", "record", "--record", tape, "--budget-usd", "1")
	if asked.Load() != 12 {
		t.Errorf("the model was asked %d times", asked.Load())
	}
	for _, ep := range episodes(t, filepath.Join(dir, "recorded")) {
		if ep.CostUSD == nil || *ep.CostUSD < 0.00899 || *ep.CostUSD > 0.00901 {
			t.Errorf("cost %v", ep.CostUSD)
		}
		for _, call := range ep.Calls {
			if !strings.Contains(call.Result, `"summarized":true`) || strings.Contains(call.Result, "lamp is green. The lamp") {
				t.Errorf("result %.300s", call.Result)
			}
			for _, q := range call.Inquiries() {
				if q.Model != "small" || q.CostUSD == nil || *q.CostUSD != 0.003 || q.Usage == nil || *q.Usage != (episode.Usage{Prompt: 2000, Completion: 100, Reported: true}) {
					t.Errorf("inquiry %+v", q)
				}
			}
		}
	}
	var got report.Report
	data, err := os.ReadFile(filepath.Join(dir, "recorded", "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || got.Cost.USD == nil || *got.Cost.USD < 0.0359 || *got.Cost.USD > 0.0361 || got.Budget == nil || got.Budget.SpentUSD < 0.0359 {
		t.Errorf("cost %+v, budget %+v (%v)", got.Cost, got.Budget, err)
	}

	site.Close()
	small.Close()
	replayed := play("replayed", "--web", "replay", "--web-recording", filepath.Join(dir, "recorded"), "--replay", tape)
	sameRows(t, whoever(t, recorded), whoever(t, replayed))

	// The dataset's own solutions are checked without any model.
	succeed(t, "check", "-f", file, "--dataset", dataset, "--web", "replay", "--web-recording", filepath.Join(dir, "recorded"))
}
