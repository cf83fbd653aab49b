package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// BenchmarkComplete is one call of an episode that is twenty turns old, client and server together.
func BenchmarkComplete(b *testing.B) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "fine"}}}
	url := play(b, scripted.Config{Policy: scripted.Oracle}, task)
	messages := hello
	for i := range 20 {
		id := fmt.Sprint(i)
		messages = append(messages,
			episode.Message{Role: "assistant", Calls: []episode.Call{{ID: id, Name: "terminal", Arguments: `{"command":"ls"}`}}},
			episode.Message{Role: "tool", ToolCallID: id, Content: strings.Repeat("x", 1000)})
	}
	var tools []json.RawMessage
	for range 8 {
		tools = append(tools, json.RawMessage(`{"type":"function","function":{"name":"terminal","description":"`+strings.Repeat("x", 1000)+`"}}`))
	}
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			client := open(b, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: stream}})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.Complete(b.Context(), model.Request{Messages: messages, Tools: tools}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
