package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// words make up text that compresses about as source code and talk about it do.
var words = strings.Fields(`the of a to in is it for that not err nil return func if range string int len append struct
	type map key value error context file line read write open close buffer reader writer test result option config
	handler request response server client stream token model tool call turn reward episode task sample sandbox journal
	parse encode decode marshal index cache lock wait group channel select case default switch break continue defer
	package import const var interface method field pointer slice array byte rune bool true false package main`)

// prose is about so many bytes of lines.
func prose(rng *rand.Rand, bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		for range 4 + rng.IntN(9) {
			b.WriteString(words[int(float64(len(words))*rng.Float64()*rng.Float64())])
			b.WriteByte(' ')
		}
		if rng.IntN(3) == 0 {
			fmt.Fprintf(&b, "%x", rng.Uint32())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// generate makes the n-th episode of a coding agent, about 20 KB of JSON. Four are samples of one task, and look at the
// same files.
func generate(n int) (*episode.Episode, error) {
	key := episode.Key{Seed: 1, Task: fmt.Sprint("task-", n/4), Sample: n % 4}
	rng, ofTask := key.Rand("bench"), episode.Key{Task: key.Task}.Rand("bench")
	began := time.Unix(1_700_000_000+int64(n), 0).UTC()
	reward, asked := float64(rng.IntN(2)), prose(ofTask, 700)
	ep := &episode.Episode{
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: n / 4, Run: "bench", Attempt: 1,
		Task:     episode.Task{ID: key.Task, Row: n / 4, Prompt: []episode.Message{{Role: "user", Content: asked}}},
		Toolsets: []string{"file", "terminal"}, Model: modelName, Started: began, Elapsed: 40 * time.Second,
		Messages: []episode.Message{{Role: "system", Content: system}, {Role: "user", Content: asked}},
		Outcome:  episode.Success, Stop: episode.StopAnswered, Reward: &reward, Rewards: []episode.Reward{{Name: "tests", Value: reward, Weight: 1}},
	}
	var files []string
	for range 5 {
		files = append(files, prose(ofTask, 3000))
	}
	const turns = 6
	for turn := range turns {
		at := began.Add(time.Duration(turn) * 7 * time.Second)
		id, message := fmt.Sprintf("call_%012x", rng.Uint64()>>16), episode.Message{Role: "assistant", Content: prose(rng, 200)}
		ep.Turns = append(ep.Turns, episode.Turn{
			Index: turn, Message: len(ep.Messages), Model: modelName, FinishReason: "tool_calls", Started: at, Elapsed: time.Duration(rng.IntN(9e9)),
			Usage: episode.Usage{Prompt: 2000 + 400*turn, Completion: 80 + rng.IntN(300), Reported: true},
		})
		if turn == turns-1 {
			ep.Answer = message.Content
			ep.Messages = append(ep.Messages, message)
			break
		}
		arguments := fmt.Sprintf(`{"path":"src/file_%d.go","limit":%d}`, rng.IntN(5), 100+rng.IntN(400))
		text := files[rng.IntN(len(files))]
		content, err := json.Marshal(map[string]string{"content": text[:500+rng.IntN(1000)]})
		if err != nil {
			return nil, err
		}
		result := string(content)
		message.Calls = []episode.Call{{ID: id, Name: "read_file", Arguments: arguments}}
		ep.Messages = append(ep.Messages, message, episode.Message{Role: "tool", Content: result, ToolCallID: id, Name: "read_file"})
		ep.Calls = append(ep.Calls, episode.ToolCall{
			ID: id, Turn: turn, Name: "read_file", Toolset: "file", RawArguments: arguments, Arguments: json.RawMessage(arguments), Status: episode.CallOK,
			Result: result, ResultBytes: len(result), Started: at.Add(3 * time.Second), Elapsed: time.Duration(rng.IntN(1e8)),
		})
	}
	return ep, nil
}
