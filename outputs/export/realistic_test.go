package export_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// realistic makes episodes as a run of a coding agent has them, about 20 KB of JSON each: four samples a task, the same
// tools and system prompt in all, and source code, which was really written by somebody, in what tools return: the
// samples of a task look around in the same few files.
type realistic struct {
	corpus []string // lines
	prosy  []string // comments among them
	tools  []json.RawMessage
	system string
}

const (
	realisticTools = 6 // of each episode
	realisticFiles = 5 // of each task
)

// newRealistic reads the Go files below a directory, some 20 MB of them, as what the agent works on.
func newRealistic(source fs.FS) (*realistic, error) {
	r := &realistic{}
	size := 0
	err := fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		if size > 20<<20 {
			return fs.SkipAll
		}
		text, err := fs.ReadFile(source, path)
		size += len(text)
		r.corpus = append(r.corpus, strings.Split(strings.ToValidUTF8(string(text), "?"), "\n")...)
		return err
	})
	if err != nil || len(r.corpus) < 1000 {
		return nil, fmt.Errorf("read a corpus of Go files: %d lines: %w", len(r.corpus), err)
	}
	for _, line := range r.corpus {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
			r.prosy = append(r.prosy, comment)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range realisticTools {
		tool := map[string]any{"type": "function", "function": map[string]any{
			"name": fmt.Sprint("tool_", n), "description": r.prose(rng, 250),
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string", "description": r.prose(rng, 80)}}},
		}}
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		r.tools = append(r.tools, raw)
	}
	r.system = r.prose(rng, 800)
	return r, nil
}

// Episode makes the n-th.
func (r *realistic) Episode(n int) *episode.Episode {
	row, sample := n/4, n%4
	key := episode.Key{Seed: 1, Task: fmt.Sprint("task-", row), Sample: sample}
	rng := key.Rand("realistic")
	ofTask := episode.Key{Task: key.Task}.Rand("task")
	prompt := r.prose(ofTask, 700)
	var places [realisticFiles]int
	for i := range places {
		places[i] = ofTask.IntN(len(r.corpus) - 1000)
	}
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC).Add(time.Duration(n) * time.Second)
	ep := &episode.Episode{
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: row, Run: "f1e2d3c4b5a69788", Attempt: 1,
		Task: episode.Task{
			ID: key.Task, Row: row, Prompt: []episode.Message{{Role: "user", Content: prompt}},
			Verify: []episode.Check{{Name: "tests", Command: "go test ./..."}}, Labels: episode.Labels{Tags: []string{"go"}, Difficulty: "medium"},
		},
		Distribution: "default", Toolsets: []string{"files", "terminal"}, LogP: -1.5, Tools: r.tools,
		Messages: []episode.Message{{Role: "system", Content: r.system}, {Role: "user", Content: prompt}},
		Outcome:  episode.Success, Stop: episode.StopAnswered, Model: "some-model-32b", Reward: new(float64(n % 2)),
		Rewards: []episode.Reward{{Name: "tests", Value: float64(n % 2), Weight: 1}},
		Sandbox: episode.Sandbox{Backend: "native", Level: "user", Limits: map[string]string{"memory": "hard", "processes": "hard"}, Opened: true},
		Started: began, Elapsed: time.Duration(rng.IntN(1e9)) * 60,
	}
	turns := 5 + rng.IntN(4)
	for turn := range turns {
		at := began.Add(time.Duration(turn) * 7 * time.Second)
		usage := episode.Usage{Prompt: 2000 + 400*turn + rng.IntN(200), Completion: 80 + rng.IntN(300), Reported: true}
		ep.Usage = ep.Usage.Add(usage)
		message := episode.Message{Role: "assistant", Content: r.prose(rng, 100+rng.IntN(200))}
		ep.Turns = append(ep.Turns, episode.Turn{
			Index: turn, Message: len(ep.Messages), Model: ep.Model, RequestID: fmt.Sprintf("chatcmpl-%016x", rng.Uint64()), FinishReason: "tool_calls",
			Usage: usage, Started: at, Elapsed: time.Duration(rng.IntN(9e9)),
		})
		if turn == turns-1 {
			ep.Answer = message.Content
			ep.Messages = append(ep.Messages, message)
			break
		}
		id := fmt.Sprintf("call_%012x", rng.Uint64()>>16)
		arguments := fmt.Sprintf(`{"path":"src/pkg%d/file%d.go","offset":%d}`, rng.IntN(40), rng.IntN(20), rng.IntN(900))
		name := fmt.Sprint("tool_", rng.IntN(realisticTools))
		result, _ := json.Marshal(map[string]any{"content": r.code(places[rng.IntN(realisticFiles)]+10*rng.IntN(20), 500+rng.IntN(1000)), "exit_code": 0})
		message.Calls = []episode.Call{{ID: id, Name: name, Arguments: arguments}}
		ep.Messages = append(ep.Messages, message, episode.Message{Role: "tool", Content: string(result), ToolCallID: id, Name: name})
		ep.Calls = append(ep.Calls, episode.ToolCall{
			ID: id, Turn: turn, Name: name, Toolset: "files", RawArguments: arguments, Arguments: json.RawMessage(arguments), Status: episode.CallOK,
			Result: string(result), ResultBytes: len(result), Started: at.Add(3 * time.Second), Elapsed: time.Duration(rng.IntN(1e8)), SandboxTime: time.Duration(rng.IntN(1e7)),
		})
	}
	ep.Usage.Reported = true
	return ep
}

// code is lines of the corpus with their numbers, about n bytes.
func (r *realistic) code(from, n int) string {
	var text strings.Builder
	for at := from; text.Len() < n && at < len(r.corpus); at++ {
		fmt.Fprintf(&text, "%6d|%s\n", at%2000, r.corpus[at])
	}
	return text.String()
}

// prose is comments of the corpus, about n bytes.
func (r *realistic) prose(rng *rand.Rand, n int) string {
	var text strings.Builder
	for at := rng.IntN(len(r.prosy)); text.Len() < n; at = (at + 1) % len(r.prosy) {
		text.WriteString(r.prosy[at])
		text.WriteByte(' ')
	}
	return text.String()
}
