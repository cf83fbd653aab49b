package model_test

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// A client against a scripted server, which is at hand where a real endpoint is not.
func Example() {
	task := &episode.Task{
		ID: "count", Prompt: []episode.Message{{Role: "user", Content: "How many files are here?"}},
		Gold: []episode.Step{
			{Calls: []episode.GoldCall{{Name: "terminal", Arguments: json.RawMessage(`{"command":"ls | wc -l"}`)}}},
			{Content: "There are 3."},
		},
	}
	server, err := scripted.New(scripted.Config{Policy: scripted.Oracle})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Learn(task)
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}

	client, err := model.Open(model.Config{Settings: model.Settings{Name: scripted.DefaultModel, BaseURL: url}, Patience: model.Patience{Retries: 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.Probe(ctx); err != nil {
		fmt.Println(err)
		return
	}
	tools := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"terminal"}}`)}
	messages := task.Prompt
	for {
		reply, err := client.Complete(ctx, model.Request{Messages: messages, Tools: tools})
		if err != nil {
			fmt.Println(err)
			return
		}
		messages = append(messages, reply.Message)
		for _, call := range reply.Message.Calls {
			fmt.Println(call.Name, call.Arguments)
			messages = append(messages, episode.Message{Role: "tool", ToolCallID: call.ID, Content: `{"output":"3"}`})
		}
		if len(reply.Message.Calls) == 0 {
			fmt.Println(reply.Message.Content)
			return
		}
	}
	// Output:
	// terminal {"command":"ls | wc -l"}
	// There are 3.
}
