package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/tools/browser/place/placetest"
)

// TestRentedBrowsers plays episodes with browsers of a provider, and kills a run that has some: a sweep ends those, which would be
// billed.
func TestRentedBrowsers(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<title>A shop</title>") }))
	t.Cleanup(site.Close)
	server := placetest.Start(t, "steel")
	t.Setenv("STEEL_API_KEY", placetest.Key)
	t.Setenv("TRAJGEN_STATE_DIR", t.TempDir())
	visit := func(id, more string) string {
		return fmt.Sprintf(`{"id":%q,"prompt":"Look.","toolsets":["browser","terminal"],"verify":{"exact":"done"},"gold":[`+
			`{"tool_calls":[{"name":"browser_navigate","arguments":{"url":%q}}]},%s{"content":"done"}]}`+"\n", id, site.URL, more)
	}
	file := write(t, "run.yaml", "browser: {place: steel, url: \""+server.URL+"\"}\nweb: {allow_private: [127.0.0.1]}\n")
	run := func(tasks string) []string {
		return []string{"run", "-f", file, "--dataset", write(t, "tasks.jsonl", tasks), "--policy", "oracle", "--sandbox", "local", "--quiet",
			"--out", filepath.Join(t.TempDir(), "out")}
	}
	args := run(visit("a", "") + visit("b", ""))
	succeed(t, args...)
	if server.Made() != 2 || server.Ended() != 2 {
		t.Errorf("%d made, %d ended", server.Made(), server.Ended())
	}
	for _, row := range timeless(t, args[len(args)-1]) {
		if !strings.Contains(row, `"provider":"steel"`) || !strings.Contains(row, `"reward":1`) {
			t.Errorf("row %s", row)
		}
	}

	sleep := `{"tool_calls":[{"name":"terminal","arguments":{"command":"sleep 600","timeout":600}}]},`
	killed := exec.Command(build(t), run(visit("a", sleep)+visit("b", sleep))...)
	killed.Stderr = os.Stderr
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); len(server.Running()) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("running: %v", server.Running())
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if swept := succeed(t, "sandbox", "sweep"); !strings.Contains(swept.out, "browser-") || len(server.Running()) != 0 || server.Ended() != 4 {
		t.Errorf("swept %s: %v running, %d ended", swept.out, server.Running(), server.Ended())
	}

	// What is loaded elsewhere is neither recorded nor replayed.
	for _, mode := range []string{"record", "corpus"} {
		got := trajgen(t, append(args, "--web", mode, "--corpus", "bundled")...)
		if got.code != exitUsage || !strings.Contains(got.errOut, "place steel is of the live web alone") {
			t.Errorf("%s: exit code %d: %s", mode, got.code, got.errOut)
		}
	}
}
