package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/run/check"
)

// visits are tasks that search a site and read it; the first one crawls, which is polite and takes its time.
func visits(server string, n int) string {
	var b strings.Builder
	for i := range n {
		crawl := ""
		if i == 0 {
			crawl = `{"tool_calls":[{"name":"web_crawl","arguments":{"url":"` + server + `/room/0","limit":2}}]},`
		}
		fmt.Fprintf(&b, `{"id":"visit-%d","prompt":"Visit room %d.","toolsets":["web","crawl"],"verify":{"exact":"done"},"gold":[`+
			`{"tool_calls":[{"name":"web_search","arguments":{"query":"room %d"}}]},`+
			`{"tool_calls":[{"name":"web_extract","arguments":{"urls":["%s/room/%d","%s/moved/%d","%s/none"]}}]},%s{"content":"done"}]}`+"\n",
			i, i, i, server, i%7, server, i, server, crawl)
	}
	return b.String()
}

// counting is a site that never says the same twice.
func counting(t *testing.T) *httptest.Server {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); kind {
		case "search":
			fmt.Fprintf(w, `{"results":[{"url":"http://%s/room/1","title":"Answer %d","content":"about %s"}]}`, r.Host, n, r.URL.Query().Get("q"))
		case "room":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<title>Room %s</title><p>Visitor %d. %s</p><a href="/room/%s1">on</a>`, rest, n, strings.Repeat("A quiet room with a view. ", 12), rest)
		case "moved":
			http.Redirect(w, r, "/room/"+rest, http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// whoever are rows of a recording or a replay, without what says which of them.
func whoever(t *testing.T, rows []string) (all []string) {
	t.Helper()
	for _, row := range rows {
		var fields map[string]any
		if err := json.Unmarshal([]byte(row), &fields); err != nil {
			t.Fatal(err)
		}
		mode := fields["web"]
		if mode != "record" && mode != "replay" {
			t.Fatalf("web %v", mode)
		}
		delete(fields, "run")
		delete(fields, "web")
		for _, call := range fields["calls"].([]any) {
			source, _ := call.(map[string]any)["source"].(map[string]any)
			if source["mode"] != nil && source["mode"] != mode {
				t.Fatalf("web %v, source %v", mode, source)
			}
			delete(source, "mode")
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// TestWebReplay plays 200 episodes on a recorded web, and again without it, with 1 and with 16 workers.
func TestWebReplay(t *testing.T) {
	t.Parallel()
	server, dir := counting(t), t.TempDir()
	dataset := write(t, "visits.jsonl", visits(server.URL, 40))
	section := "web:\n  search: searxng\n  providers: {searxng: {base_url: \"" + server.URL + "\"}}\n  allow_private: [127.0.0.1]\n"
	file := write(t, "run.yaml", section)
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--samples", "5")
	recorded := play("recorded", "--web", "record", "--workers", "8")
	server.Close()
	succeed(t, "verify", "--run", filepath.Join(dir, "recorded"))
	replay := []string{"--web", "replay", "--web-recording", filepath.Join(dir, "recorded")}
	one := play("one", append(replay, "--workers", "1")...)
	sameRows(t, one, play("many", append(replay, "--workers", "16")...))
	if len(one) != 200 {
		t.Fatalf("%d episodes", len(one))
	}
	sameRows(t, whoever(t, recorded), whoever(t, one))
	var got report.Report
	data, err := os.ReadFile(filepath.Join(dir, "many", "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || got.Web == nil || got.Web.Calls != 405 || got.Web.HitShare != 1 || got.SuccessRate.Mean == nil || *got.SuccessRate.Mean != 1 {
		t.Errorf("report: %+v, success %+v (%v)", got.Web, got.SuccessRate, err)
	}

	// Another task asks for what the recording lacks: no reward, and nothing that looks like a failure of the agent.
	other := write(t, "other.jsonl", strings.ReplaceAll(visits(server.URL, 1), "room 0", "another room"))
	out := filepath.Join(dir, "other")
	trajgen(t, append([]string{"run", "-f", file, "--dataset", other, "--policy", "oracle", "--quiet", "--episode-retries", "0", "--out", out}, replay...)...)
	for _, ep := range episodes(t, out) {
		if ep.Outcome != "tool_error" || ep.Reward != nil || ep.Fault == nil || ep.Fault.Class != "replay_miss" {
			t.Errorf("outcome %s, reward %v, fault %v", ep.Outcome, ep.Reward, ep.Fault)
		}
	}

	wantTape(t, filepath.Join(dir, "recorded"), filepath.Join(dir, "many"), out, server.URL)

	// A resume with another web is refused.
	refused := trajgen(t, "run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--samples", "5", "--quiet", "--out", filepath.Join(dir, "one"), "--resume")
	if refused.code != 2 || !strings.Contains(refused.errOut, "web: was replay") {
		t.Errorf("code %d: %s", refused.code, refused.errOut)
	}
}

// wantTape looks at a recording, at a run that it answered and at one that it did not, and reads its archive back.
func wantTape(t *testing.T, recorded, replayed, missed, site string) {
	t.Helper()
	host := strings.TrimPrefix(site, "http://")
	read := func(dir string) (info check.TapeInfo) {
		t.Helper()
		if err := json.Unmarshal([]byte(succeed(t, "tape", "info", dir, "--json").out), &info); err != nil {
			t.Fatal(err)
		}
		return info
	}
	if r := read(recorded).Recording; r == nil || len(r.Hosts) != 1 || r.Hosts[0].Host != host || r.Exchanges < 800 || r.Requests >= r.Exchanges || r.Failed != 0 {
		t.Errorf("recorded: %+v", r)
	}
	if c := read(replayed).Coverage; len(c) != 2 || c[0].Hits+c[1].Hits != 810 || c[0].Misses+c[1].Misses != 0 {
		t.Errorf("replayed: %+v", c)
	}
	if c := read(missed).Coverage; len(c) != 1 || c[0].Misses != 1 || !strings.HasPrefix(c[0].Of, "searxng") {
		t.Errorf("missed: %+v", c)
	}
	if text := succeed(t, "tape", "info", recorded).out; !strings.Contains(text, host) {
		t.Errorf("tape info prints %s", text)
	}
	archive := filepath.Join(t.TempDir(), "tape.warc.gz")
	succeed(t, "tape", "export", recorded, "--to", "warc", "--out", archive)
	succeed(t, "corpus", "build", archive, "--out", archive+".corpus", "--skip-bad")
	if found := succeed(t, "corpus", "search", archive+".corpus", "quiet room").out; !strings.Contains(found, site+"/room/") {
		t.Errorf("found %s", found)
	}
	if har := succeed(t, "tape", "export", recorded, "--to", "har", "--out", "-").out; !json.Valid([]byte(har)) || !strings.Contains(har, site+"/room/0") {
		t.Errorf("HAR: %s", cut(har))
	}
	for _, wrong := range [][]string{{"tape", "info", replayed + "/none"}, {"tape", "export", recorded, "--to", "zip", "--out", archive}, {"tape", "export", replayed, "--to", "har", "--out", archive}} {
		if got := trajgen(t, wrong...); got.code == 0 {
			t.Errorf("%v: exit code 0", wrong)
		}
	}
}

// TestResearch plays the questions about the bundled corpus.
func TestResearch(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]float64{"oracle": 1, "noop": 0} {
		out := filepath.Join(t.TempDir(), policy)
		succeed(t, "run", "--dataset", "bundled/research", "--corpus", "bundled", "--policy", policy, "--quiet", "--out", out)
		all := episodes(t, out)
		if len(all) != 60 {
			t.Errorf("%d episodes", len(all))
		}
		for _, ep := range all {
			if ep.Reward == nil || *ep.Reward != want {
				t.Errorf("%s of %s: outcome %s, reward %v", policy, ep.Key.Task, ep.Outcome, ep.Reward)
			}
		}
	}
}

// TestBrowserTasks plays the tasks on the web sites with a real browser, and some of each site again from a recording, without the
// sites.
func TestBrowserTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(policy, name string, tasks int, want float64, more ...string) []string {
		t.Helper()
		out := filepath.Join(dir, name)
		succeed(t, append([]string{"run", "--dataset", "bundled/browser", "--policy", policy, "--quiet", "--out", out}, more...)...)
		all := episodes(t, out)
		if len(all) != tasks {
			t.Errorf("%d episodes", len(all))
		}
		for _, ep := range all {
			if ep.Reward == nil || *ep.Reward != want {
				t.Errorf("%s of %s: outcome %s, reward %v, fault %v", policy, ep.Key.Task, ep.Outcome, ep.Reward, ep.Fault)
			}
		}
		return timeless(t, out)
	}
	play("noop", "nothing", 40, 0)
	recorded := play("oracle", "recorded", 40, 1, "--web", "record")
	replayed := play("oracle", "replayed", 15, 1, "--where", `id matches "-0[14]-"`, "--web", "replay", "--web-recording",
		filepath.Join(dir, "recorded"), "--workers", "16")
	again := regexp.MustCompile(`"browser-[a-z]+-0[14]-`)
	recorded = slices.DeleteFunc(recorded, func(row string) bool { return !again.MatchString(row) })
	sameRows(t, whoever(t, recorded), whoever(t, replayed))
}

// TestPDF reads a PDF file with pdftotext, in sandboxes of both kinds.
func TestPDF(t *testing.T) {
	t.Parallel()
	var pdf strings.Builder
	var offsets []int
	pdf.WriteString("%PDF-1.4\n")
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		"<< /Length 58 >>\nstream\nBT /F1 24 Tf 72 700 Td (The lighthouse burned down) Tj ET  \nendstream",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		offsets = append(offsets, pdf.Len())
		fmt.Fprintf(&pdf, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	table := pdf.Len()
	fmt.Fprintf(&pdf, "xref\n0 6\n0000000000 65535 f \n")
	for _, at := range offsets {
		fmt.Fprintf(&pdf, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&pdf, "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		text := pdf.String()
		if r.URL.Path == "/broken.pdf" {
			text = text[:60]
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	file := write(t, "run.yaml", "web: {allow_private: [127.0.0.1]}\n")
	for _, sandbox := range []string{"local", "native"} {
		read := func(name string) string {
			return succeed(t, "tools", "call", "web_extract", `{"urls":["`+server.URL+name+`"]}`, "-f", file, "--sandbox", sandbox).out
		}
		if got := read("/a.pdf"); !strings.Contains(got, "The lighthouse burned down") || !strings.Contains(got, `"extractor":"pdftotext"`) {
			t.Errorf("%s: %s", sandbox, got)
		}
		if got := read("/broken.pdf"); !strings.Contains(got, `"error_class":"malformed"`) {
			t.Errorf("%s: %s", sandbox, got)
		}
	}
}

// TestWebMerge merges two recorded parts of a run, whose recording then answers all of it.
func TestWebMerge(t *testing.T) {
	t.Parallel()
	server, dir := counting(t), t.TempDir()
	dataset := write(t, "visits.jsonl", visits(server.URL, 4))
	file := write(t, "run.yaml", "web:\n  search: searxng\n  providers: {searxng: {base_url: \""+server.URL+"\"}}\n  allow_private: [127.0.0.1]\n")
	play := func(name string, more ...string) []string {
		t.Helper()
		out := filepath.Join(dir, name)
		succeed(t, append([]string{"run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--quiet", "--out", out}, more...)...)
		return timeless(t, out)
	}
	recorded := append(play("first", "--web", "record", "--slice", "1:2"), play("second", "--web", "record", "--slice", "2:4")...)
	server.Close()
	merged := filepath.Join(dir, "merged")
	succeed(t, "merge", filepath.Join(dir, "first"), filepath.Join(dir, "second"), "--out", merged)
	succeed(t, "verify", "--run", merged)
	sameRows(t, whoever(t, recorded), whoever(t, play("replayed", "--web", "replay", "--web-recording", merged, "--slice", "1:4")))
}
