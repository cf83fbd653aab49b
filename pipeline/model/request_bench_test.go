package model_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// cheapServer answers every request with the same reply, at the cost of a read and a write.
func cheapServer(b *testing.B) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	body := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"echo hello > f.txt\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
	reply := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReaderSize(c, 32<<10)
				for {
					length := 0
					for {
						line, err := in.ReadSlice('\n')
						if err != nil {
							return
						}
						if line = bytes.TrimSpace(line); len(line) == 0 {
							break
						}
						if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
							length, _ = strconv.Atoi(string(rest))
						}
					}
					if _, err := in.Discard(length); err != nil {
						return
					}
					if _, err := c.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/v1"
}

// BenchmarkRequest is the third request of an episode with three tools, beside that of a loop over go-openai alone.
func BenchmarkRequest(b *testing.B) {
	url := cheapServer(b)
	var tools []json.RawMessage
	var same []openai.Tool
	for _, name := range []string{"terminal", "write_file", "read_file"} {
		parameters := json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"` + strings.Repeat("what it is ", 80) + `"}},"required":["command"]}`)
		tools = append(tools, json.RawMessage(`{"type":"function","function":{"name":"`+name+`","description":"`+strings.Repeat("what it does ", 80)+`","parameters":`+string(parameters)+`}}`))
		same = append(same, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: name, Description: strings.Repeat("what it does ", 80), Parameters: parameters}})
	}
	const system, prompt, result = "You are an agent that works in a sandbox. Do what the user asks.", "Write hello into f.txt and read it back.", `{"output":"hello\n","exit_code":0}`
	messages := []episode.Message{{Role: "system", Content: system}, {Role: "user", Content: prompt}}
	history := []openai.ChatCompletionMessage{{Role: "system", Content: system}, {Role: "user", Content: prompt}}
	for i := range 2 {
		id := fmt.Sprint(i)
		messages = append(messages, episode.Message{Role: "assistant", Calls: []episode.Call{{ID: id, Name: "terminal", Arguments: `{"command":"ls"}`}}},
			episode.Message{Role: "tool", ToolCallID: id, Content: result})
		history = append(history, openai.ChatCompletionMessage{Role: "assistant", ToolCalls: []openai.ToolCall{{ID: id, Type: "function", Function: openai.FunctionCall{Name: "terminal", Arguments: `{"command":"ls"}`}}}},
			openai.ChatCompletionMessage{Role: "tool", ToolCallID: id, Content: result})
	}
	b.Run("limit", func(b *testing.B) {
		config := openai.DefaultConfig("none")
		config.BaseURL = url
		config.HTTPClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
		client := openai.NewClientWithConfig(config)
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := client.CreateChatCompletion(b.Context(), openai.ChatCompletionRequest{Model: "m", Messages: history, Tools: same}); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("trajgen", func(b *testing.B) {
		client := open(b, model.Config{Settings: model.Settings{Name: "m", BaseURL: url}, Patience: model.Patience{MinInFlight: 100}, Concurrency: 100})
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := client.Complete(b.Context(), model.Request{Messages: messages, Tools: tools}); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
