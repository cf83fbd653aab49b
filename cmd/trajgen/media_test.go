package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	tables "trajgen/outputs/rows"
	"trajgen/tools/media"
)

// TestMedia plays episodes that make a picture and a sound and have a vision model look at the picture: recorded on both tapes,
// counted and paid, and replayed without the provider and the model.
func TestMedia(t *testing.T) {
	var asked, made atomic.Int64
	pixel := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"seer","object":"model"}]}`)
		case "/v1/images/generations":
			if made.Add(1); r.Header.Get("Authorization") != "Bearer a-key-of-images" {
				http.Error(w, "who are you", http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"data":[{"b64_json":"%s"}]}`, pixel)
		default:
			n := asked.Add(1)
			fmt.Fprintf(w, `{"id":"c-%d","object":"chat.completion","model":"seer","choices":[{"index":0,"finish_reason":"stop","message":`+
				`{"role":"assistant","content":"Look %d: a pixel."}}],"usage":{"prompt_tokens":2000,"completion_tokens":100,"total_tokens":2100}}`, n, n)
		}
	}))
	t.Cleanup(server.Close)
	var about media.About
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	about.Weigh(data)
	var tasks strings.Builder
	for i := range 4 {
		fmt.Fprintf(&tasks, `{"id":"see-%d","prompt":"Draw, speak, look.","toolsets":["image_gen","tts","vision"],"verify":{"exact":"done"},"gold":[{"tool_calls":[`+
			`{"name":"image_generate","arguments":{"prompt":"pixel %d"}},{"name":"text_to_speech","arguments":{"text":"Here it is."}}]},{"tool_calls":[`+
			`{"name":"vision_analyze","arguments":{"image_url":"images/%s.png","question":"What is it?"}}]},{"content":"done"}]}`+"\n", i, i, about.Digest[:12])
	}
	dataset := write(t, "see.jsonl", tasks.String())
	t.Setenv("IMAGES_KEY", "a-key-of-images")
	file := write(t, "run.yaml", `
media:
  image: openai
  vision_model: seer
  vision_base_url: "`+server.URL+`/v1"
  providers: {openai: {base_url: "`+server.URL+`/v1", api_key_env: IMAGES_KEY}}
budget:
  prices: {seer: {input: 1, output: 10}, scripted-oracle: {input: 0, output: 0}, gpt-image-1: {image: 0.04}}
`)
	dir := t.TempDir()
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--max-tokens", "1000")
	tape := filepath.Join(dir, "tape")
	recorded := play("recorded", "--web", "record", "--record", tape, "--budget-usd", "1")
	if asked.Load() != 4 || made.Load() != 4 {
		t.Errorf("%d pictures were looked at, and %d made", asked.Load(), made.Load())
	}
	for _, ep := range episodes(t, filepath.Join(dir, "recorded")) {
		if ep.Reward == nil || *ep.Reward != 1 || ep.CostUSD == nil || *ep.CostUSD < 0.04299 || *ep.CostUSD > 0.04301 || len(ep.Calls) != 3 {
			t.Fatalf("reward %v, cost %v, calls %+v", ep.Reward, ep.CostUSD, ep.Calls)
		}
		for i, want := range []string{`"provider":"openai"`, `"provider":"espeak"`, "a pixel"} {
			if !strings.Contains(ep.Calls[i].Result, want) {
				t.Errorf("result %s, want %s in it", ep.Calls[i].Result, want)
			}
		}
		if q := ep.Calls[2].Inquiries(); len(q) != 1 || q[0].Role != "vision" || q[0].CostUSD == nil || *q[0].CostUSD != 0.003 {
			t.Errorf("source %s", ep.Calls[2].Source)
		}
		if q := ep.Calls[0].Inquiries(); len(q) != 1 || q[0].Asked != "gpt-image-1" || q[0].CostUSD == nil || *q[0].CostUSD != 0.04 {
			t.Errorf("source %s", ep.Calls[0].Source)
		}
		if seen := ep.Images(); len(seen) != 1 || tables.Origin(ep, seen[0].SHA256) != "vision_analyze" {
			t.Errorf("the episode names the images %+v", seen)
		}
	}
	spent, err := os.ReadFile(filepath.Join(dir, "recorded", "spend.jsonl"))
	if err != nil || !strings.Contains(string(spent), `"nano_usd":172000000}`) {
		t.Errorf("spent, where 4 times 0.04 and 0.003 was to be: %s, %v", spent, err)
	}
	if said := succeed(t, "verify", "--run", filepath.Join(dir, "recorded")).out; !strings.Contains(said, "nothing differs") {
		t.Errorf("verify:\n%s", said)
	}
	table, err := parquet.ReadFile[tables.Media](filepath.Join(dir, "recorded", "media", "part-00000.parquet"))
	if err != nil || len(table) != 1 || table[0].Origin != "vision_analyze" || !bytes.Equal(table[0].Bytes, data) {
		t.Errorf("media: %d rows, %v", len(table), err)
	}
	keyless(t, dir, "a-key-of-images")

	server.Close()
	replayed := play("replayed", "--web", "replay", "--web-recording", filepath.Join(dir, "recorded"), "--replay", tape)
	sameRows(t, whoever(t, recorded), whoever(t, replayed))

	// The dataset's own solutions are checked without any model: nothing is seen, and the rest is there.
	var proof struct{ Problems []struct{ Detail string } }
	got := trajgen(t, "check", "--json", "-f", file, "--dataset", dataset, "--web", "replay", "--web-recording", filepath.Join(dir, "recorded"))
	if err := json.Unmarshal([]byte(got.out), &proof); err != nil {
		t.Errorf("%v: %s%s", err, got.out, got.errOut)
	}
}
