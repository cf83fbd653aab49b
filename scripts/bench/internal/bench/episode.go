package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The scripts that the server answers from.
const (
	scriptAnswer  = "answer"  // one request: a final answer
	scriptEpisode = "episode" // five: four tool calls, then a final answer
)

const (
	modelName = "bench"
	answer    = "The file says hello."
	system    = "You are an agent on a Linux machine. Work in the current directory, use the tools that you have, and when the task is done say in one sentence what came out."
	verifier  = "grep -q hello f.txt"
)

// call is a tool call of the standard episode.
type call struct {
	tool, arguments string
	command         string // that does the same in a shell
	result          string // what a tool returns that does nothing
}

// calls are those of the standard episode, one a turn.
var calls = []call{
	{"terminal", `{"command":"echo hello > f.txt"}`, `echo hello > f.txt`, `{"output":"","exit_code":0,"error":null}`},
	{"write_file", `{"path":"g.txt","content":"a second file\n"}`, `printf 'a second file\n' > g.txt`, `{"path":"/workspace/g.txt","bytes_written":14,"created":true}`},
	{"read_file", `{"path":"g.txt"}`, `cat g.txt`, `{"content":"     1\ta second file\n","total_lines":1}`},
	{"terminal", `{"command":"cat f.txt"}`, `cat f.txt`, `{"output":"hello\n","exit_code":0,"error":null}`},
}

// toolsets are what the model is shown: with the answer alone a single small tool, as a run has to have one.
func toolsets(script string) []string {
	if script == scriptAnswer {
		return []string{"clarify"}
	}
	return []string{"file", "terminal"}
}

// prompt is what the n-th task asks, in about so many bytes.
func prompt(n, bytes int) string {
	text := fmt.Sprintf("Task %d: write hello into f.txt, put a second file beside it, read it back, and say what f.txt says.", n)
	if more := bytes - len(text); more > 0 {
		text += strings.Repeat(" Take care with each of the steps, and look at what comes back.", more/63+1)[:more]
	}
	return text
}

// writeDataset writes n distinct tasks, which a command in the sandbox judges, or else their answer.
func writeDataset(path string, n, promptBytes int, command bool) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make a dataset: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<16)
	encoder := json.NewEncoder(w)
	verify := map[string]string{"exact": answer}
	if command {
		verify = map[string]string{"command": verifier}
	}
	type task struct {
		ID     string              `json:"id"`
		System string              `json:"system"`
		Prompt string              `json:"prompt"`
		Verify []map[string]string `json:"verify"`
	}
	for i := range n {
		if err := encoder.Encode(task{fmt.Sprintf("task-%07d", i), system, prompt(i, promptBytes), []map[string]string{verify}}); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}

// turns are how many requests a script takes.
func turns(script string) int {
	if script == scriptAnswer {
		return 1
	}
	return len(calls) + 1
}

// reply is the body that a script answers its n-th request with.
func reply(script string, turn int) []byte {
	message, finish := map[string]any{"role": "assistant", "content": answer}, "stop"
	if turn < turns(script)-1 {
		c := calls[turn]
		message, finish = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": fmt.Sprintf("call_%d", turn), "type": "function",
			"function": map[string]any{"name": c.tool, "arguments": c.arguments},
		}}}, "tool_calls"
	}
	body, err := json.Marshal(map[string]any{
		"id": "chatcmpl-bench", "object": "chat.completion", "created": 1, "model": modelName,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 100 + 50*turn, "completion_tokens": 20, "total_tokens": 120 + 50*turn},
	})
	if err != nil {
		panic(err) // texts and numbers of ours
	}
	return body
}
