package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/outputs/compress"
	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

// longEpisodes writes an export of episodes with so many turns each and returns its path.
func longEpisodes(t *testing.T, turns ...int) string {
	t.Helper()
	var episodes []*episode.Episode
	for row, n := range turns {
		ep := sinktest.Episode(row, 0)
		*ep = episode.Episode{
			Schema: ep.Schema, ID: ep.ID, Key: ep.Key, Row: row, Attempt: 1, Outcome: episode.Success, Stop: episode.StopAnswered, Reward: new(1.0),
			Messages: []episode.Message{{Role: "system", Content: "Be good."}, {Role: "user", Content: "Do it."}},
		}
		for i := range n {
			id := fmt.Sprint("c", i)
			ep.Turns = append(ep.Turns, episode.Turn{Index: i, Message: len(ep.Messages), Usage: episode.Usage{Prompt: 40 + 110*i, Completion: 1, Reported: true}})
			ep.Calls = append(ep.Calls, episode.ToolCall{ID: id, Turn: i, Name: "read_file", RawArguments: `{"path":"a"}`, Status: episode.CallOK})
			ep.Messages = append(ep.Messages,
				episode.Message{Role: "assistant", Content: fmt.Sprint("turn ", i, " of ", row), Calls: []episode.Call{{ID: id, Name: "read_file", Arguments: `{"path":"a"}`}}},
				episode.Message{Role: "tool", ToolCallID: id, Name: "read_file", Content: strings.Repeat("abc ", 100)})
		}
		ep.Turns = append(ep.Turns, episode.Turn{Index: n, Message: len(ep.Messages)})
		ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Content: "done"})
		episodes = append(episodes, ep)
	}
	path := filepath.Join(t.TempDir(), "long.jsonl")
	sink, err := export.Open("jsonl", path, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(t.Context(), sinktest.Slice(episodes), sink); err != nil {
		t.Fatal(err)
	}
	return path
}

func marksOf(t *testing.T, out string) (marks []compress.Mark) {
	t.Helper()
	data, err := os.ReadFile(out + ".compression.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var mark compress.Mark
		if err := json.Unmarshal(line, &mark); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark)
	}
	return marks
}

func TestCompress(t *testing.T) {
	from, out := longEpisodes(t, 3, 20, 30), filepath.Join(t.TempDir(), "short.jsonl")
	args := []string{"compress", "--from", from, "--budget", "1500", "--summary-tokens", "200", "--out", out}
	var got run.Compression
	if err := json.Unmarshal([]byte(succeed(t, append(args, "--json")...).out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Statuses[compress.Fits] != 1 || got.Statuses[compress.Compressed] != 2 || got.Episodes != 3 || len(got.Files) != 2 || got.After >= got.Before {
		t.Errorf("got %+v", got)
	}
	for i, mark := range marksOf(t, out) {
		if !mark.Learned || mark.Row != i || mark.After > 1500 {
			t.Errorf("mark %+v", mark)
		}
	}
	first, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if said := succeed(t, args...).errOut; !strings.Contains(said, "2 compressed, 1 fit as they are, 0 cannot fit") {
		t.Errorf("said %q", said)
	}
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same episodes gave other bytes (%v)", err)
	}
	chat := filepath.Join(filepath.Dir(out), "chat.jsonl")
	succeed(t, "export", "--from", out, "--to", "sharegpt", "--out", chat)
	if data, err := os.ReadFile(chat); err != nil || !strings.Contains(string(data), "turns with") {
		t.Errorf("the export of what was compressed: %s, %v", data, err)
	}
	for _, tt := range []struct{ flags, want string }{
		{"", "budget is 0"},
		{"--budget 10", "750 tokens for a summary"},
		{"--budget 9000 --by hand", `--by is "hand"`},
		{"--budget 9000 --by model", "needs --summary-model"},
		{"--budget 9000 --summary-model m", "are for --by model"},
		{"--budget 9000 --to nothing", "unknown output format"},
		{"--budget 9000 --run x", "either --run"},
	} {
		got := trajgen(t, append([]string{"compress", "--from", from, "--out", out}, strings.Fields(tt.flags)...)...)
		if got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
			t.Errorf("%s: exit code %d, %s", tt.flags, got.code, got.errOut)
		}
	}
}

// TestCompressIsResumed interrupts a compression by a model, and holds that nothing is paid for twice.
func TestCompressIsResumed(t *testing.T) {
	from, dir := longEpisodes(t, 20, 21, 22, 23, 3), t.TempDir()
	out := filepath.Join(dir, "short.jsonl")
	var asked atomic.Int64
	running := make(chan *os.Process, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("calls read_file")) && asked.Add(1) == 2 { // others are the client's first look
			if err := (<-running).Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w, `{"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It read files."}}],"usage":{"prompt_tokens":90,"completion_tokens":5}}`)
	}))
	defer server.Close()
	args := []string{"compress", "--from", from, "--budget", "1500", "--summary-tokens", "200", "--out", out, "--workers", "1",
		"--by", "model", "--summary-model", "m", "--summary-base-url", server.URL + "/v1", "--json"}
	first := exec.Command(build(t), args...)
	var said bytes.Buffer
	first.Stderr = &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	running <- first.Process
	_ = first.Wait()
	if got := (result{code: first.ProcessState.ExitCode(), errOut: said.String()}); got.code != exitInterrupted && got.code != 0 || got.code == 0 && asked.Load() != 4 {
		t.Fatalf("exit code %d after %d requests: %s", got.code, asked.Load(), got.errOut)
	} else if _, err := os.Stat(out); (err == nil) != (got.code == 0) {
		t.Errorf("exit code %d, and the export is there: %v", got.code, err)
	}
	var got run.Compression
	if err := json.Unmarshal([]byte(succeed(t, args...).out), &got); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 4 || got.Statuses[compress.Compressed] != 4 || got.Asked+got.Kept != 4 || got.Kept < 2 {
		t.Errorf("%d requests; %+v", asked.Load(), got)
	}
	for _, mark := range marksOf(t, out)[:4] {
		if mark.By != "model" || mark.Model != "m-1" || mark.Usage == nil || mark.Usage.Prompt != 90 {
			t.Errorf("mark %+v", mark)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 3 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
