package export_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// talk is an episode of three turns whose server told the ids of all. With shortened, a result of a tool was replaced
// before the second turn, and all before the third turn's messages summed up.
func talk(shortened bool) *episode.Episode {
	key := episode.Key{Seed: 1<<63 + 7, Task: "task-0000"}
	ep := &episode.Episode{
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Attempt: 1, Task: episode.Task{ID: key.Task},
		Messages: []episode.Message{
			{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Sort it."},
			{Role: "assistant", Content: "Look.", Reasoning: "first", Calls: []episode.Call{
				{ID: "a", Name: "terminal", Arguments: `{"command":"ls"}`}, {ID: "b", Name: "terminal", Arguments: `{"command": `},
			}},
			{Role: "tool", Content: "{\"output\":\"x\",\"exit_code\":0}", ToolCallID: "a", Name: "terminal"},
			{Role: "tool", Content: "no JSON", ToolCallID: "b", Name: "terminal"},
			{Role: "assistant", Content: "", Calls: []episode.Call{{ID: "a", Name: "terminal", Arguments: `{ "command":"sort x" }`}}},
			{Role: "tool", Content: "", ToolCallID: "a", Name: "terminal"},
			{Role: "user", Content: "Hurry.", Harness: true},
			{Role: "assistant", Content: "Done."},
		},
		Outcome: episode.Success, Stop: episode.StopAnswered, Answer: "Done.", Reward: new(1.0),
		Rewards: []episode.Reward{{Name: "tests", Value: 1, Weight: 3}, {Name: "style", Value: 1, Weight: 1}},
	}
	said := []episode.Tokens{
		{Prompt: episode.IDs{1, 2, 3}, Completion: episode.IDs{4, 5}, Logprobs: []float32{-0.5, 0}},
		{Prompt: episode.IDs{1, 2, 3, 4, 5, 6}, Completion: episode.IDs{7}, Logprobs: []float32{-1}},
		{Prompt: episode.IDs{1, 2, 3, 4, 5, 6, 7, 8, 9}, Completion: episode.IDs{10, 11}, Logprobs: []float32{-2, -3}},
	}
	if shortened {
		said[1].Prompt, said[2].Prompt = episode.IDs{1, 2, 3, 99}, episode.IDs{1, 50}
		ep.Compactions = []episode.Compaction{
			{Turn: 1, Strategy: episode.CompactDrop, Replaced: []episode.Replacement{{Message: 3, Content: "[left out]"}}},
			{Turn: 2, Strategy: episode.CompactSummarize, From: 2, To: 6, Summary: "It sorted x."},
		}
	}
	for i, message := range []int{2, 5, 8} {
		ep.Turns = append(ep.Turns, episode.Turn{Index: i, Message: message, FinishReason: "stop", Tokens: ep.KeepTokens(said[i])})
	}
	ep.Drift = ep.FindDrift()
	for i, call := range []episode.Call{ep.Messages[2].Calls[0], ep.Messages[2].Calls[1], ep.Messages[5].Calls[0]} {
		status := episode.CallOK
		if i == 1 {
			status = episode.CallInvalidArguments
		}
		ep.Calls = append(ep.Calls, episode.ToolCall{ID: call.ID, Turn: i / 2, Name: call.Name, RawArguments: call.Arguments, Status: status})
	}
	return ep
}

// resent is talk with a call that was sent back otherwise than it was written.
func resent() *episode.Episode {
	ep := talk(false)
	ep.Messages[2].Calls[1].Sent = `{"invalid_arguments":"{\"command\": "}`
	for i, said := range []episode.Tokens{
		{Prompt: episode.IDs{1, 2, 3}, Completion: episode.IDs{4, 5}}, {Prompt: episode.IDs{1, 2, 3, 4, 6}, Completion: episode.IDs{7}},
		{Prompt: episode.IDs{1, 2, 3, 4, 6, 7, 8, 9}, Completion: episode.IDs{10, 11}},
	} {
		turns := ep.Turns
		ep.Turns = turns[:i]
		tokens := ep.KeepTokens(said)
		ep.Turns = turns
		ep.Turns[i].Tokens = tokens
	}
	ep.Drift = ep.FindDrift()
	return ep
}

// Ids that differ for what we sent are not said to have drifted.
func TestResentArgumentsAreNoDrift(t *testing.T) {
	_, result := wrote(t, "verl-rollouts", "out.parquet", export.Options{}, resent())
	const reason = "token ids of a conversation in which arguments were sent back otherwise than they were sampled"
	if result.Episodes != 0 || result.Dropped[reason] != 1 {
		t.Errorf("%d episodes, left out: %v", result.Episodes, result.Dropped)
	}
}

// words are a message as it was sent, with the arguments of its calls as Inspect has them.
func words(t *testing.T, m episode.Message) string {
	text := m.Role + ": " + m.Content
	for _, call := range m.Calls {
		switch {
		case call.Sent != "":
			text += " " + call.Sent
		case json.Valid([]byte(call.Arguments)):
			text += " " + compact(t, json.RawMessage(call.Arguments))
		default:
			text += " {}" // beside an error
		}
	}
	return text
}

// What ATIF says of the messages is all of them, to the byte.
func TestATIFKeepsTheConversation(t *testing.T) {
	for _, shortened := range []bool{false, true} {
		ep := talk(shortened)
		path, _ := wrote(t, "atif-lines", "out.jsonl", export.Options{Set: map[string]string{"ids": "prompt"}}, ep)
		var got []episode.Message
		turn := 0
		for i, step := range jsonLines(t, path)[0]["steps"].([]any) {
			step := step.(object)
			if number(t, step["step_id"]) != i+1 {
				t.Errorf("step %d has id %v", i, step["step_id"])
			}
			extra, _ := step["extra"].(object)
			if extra["compaction"] != nil {
				continue
			}
			message := episode.Message{Role: map[any]string{"system": "system", "user": "user", "agent": "assistant"}[step["source"]]}
			message.Content = step["message"].(string)
			message.Reasoning, _ = step["reasoning_content"].(string)
			message.Harness = extra["harness"] == true
			calls, _ := step["tool_calls"].([]any)
			names := map[string]string{}
			for _, c := range calls {
				c := c.(object)
				call := episode.Call{ID: c["tool_call_id"].(string), Name: c["function_name"].(string)}
				if raw, ok := c["extra"].(object)["raw_arguments"].(string); ok {
					call.Arguments = raw
				} else {
					call.Arguments = compact(t, c["arguments"])
				}
				names[call.ID] = call.Name
				message.Calls = append(message.Calls, call)
			}
			got = append(got, message)
			if observation, ok := step["observation"].(object); ok {
				for _, r := range observation["results"].([]any) {
					r := r.(object)
					id := r["source_call_id"].(string)
					got = append(got, episode.Message{Role: "tool", Content: r["content"].(string), ToolCallID: id, Name: names[id]})
				}
			}
			if metrics, ok := step["metrics"].(object); ok {
				want := ep.TokensOf(turn)
				if diff := cmp.Diff([]string{compact(t, want.Prompt), compact(t, want.Completion), compact(t, want.Logprobs)},
					[]string{compact(t, metrics["prompt_token_ids"]), compact(t, metrics["completion_token_ids"]), compact(t, metrics["logprobs"])}); diff != "" {
					t.Errorf("tokens of turn %d (-want +got):\n%s", turn, diff)
				}
				turn++
			}
		}
		if diff := cmp.Diff(ep.Messages, got); diff != "" || turn != 3 {
			t.Errorf("shortened %v: %d turns, messages (-want +got):\n%s", shortened, turn, diff)
		}
	}
}

// Inspect's model events point to what the model was sent, also where that was shortened.
func TestInspectPointsToWhatWasSent(t *testing.T) {
	for name, ep := range map[string]*episode.Episode{"whole": talk(false), "shortened": talk(true), "resent": resent()} {
		path, _ := wrote(t, "inspect", "out.json", export.Options{}, ep)
		var log struct{ Samples []object }
		readJSON(t, path, &log)
		sample := log.Samples[0]
		if n := len(sample["messages"].([]any)); n != len(ep.Messages) {
			t.Errorf("%d messages, want %d", n, len(ep.Messages))
		}
		pool := sample["events_data"].(object)["messages"].([]any)
		turn := 0
		for _, event := range sample["events"].([]any) {
			event := event.(object)
			if event["event"] != "model" {
				continue
			}
			var want, got []string
			for _, m := range ep.Sent(turn) {
				want = append(want, words(t, m))
			}
			for _, r := range event["input_refs"].([]any) {
				r := r.([]any)
				for i := number(t, r[0]); i < number(t, r[1]); i++ {
					m := pool[i].(object)
					content, ok := m["content"].(string)
					if !ok {
						content = m["content"].([]any)[1].(object)["text"].(string)
					}
					said := m["role"].(string) + ": " + content
					calls, _ := m["tool_calls"].([]any)
					for _, call := range calls {
						said += " " + compact(t, call.(object)["arguments"])
					}
					got = append(got, said)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: sent for turn %d (-want +got):\n%s", name, turn, diff)
			}
			turn++
		}
		if turn != 3 {
			t.Errorf("%d model events, want 3", turn)
		}
	}
}

// A branch of verifiers' graph is what the model was sent, and its tokens are those that it was sent and sampled.
func TestVerifiersBranches(t *testing.T) {
	for name, ep := range map[string]*episode.Episode{"whole": talk(false), "shortened": talk(true), "resent": resent()} {
		shortened := name != "whole"
		path, result := wrote(t, "verifiers", "out", export.Options{}, ep)
		trace := jsonLines(t, filepath.Join(path, "traces.jsonl"))[0]["traces"].([]any)[0].(object)
		nodes := trace["nodes"].([]any)
		for turn, call := range trace["calls"].([]any) {
			var got []string
			var ids, mask []any
			for at := call.(object)["node"]; at != nil; {
				node := nodes[number(t, at)].(object)
				said := node["message"].(object)["role"].(string) + ": " + node["message"].(object)["content"].(string)
				calls, _ := node["message"].(object)["tool_calls"].([]any)
				for _, call := range calls {
					said += " " + call.(object)["arguments"].(string)
				}
				got = append(got, said)
				ids, mask = append(node["token_ids"].([]any), ids...), append(node["mask"].([]any), mask...)
				at = node["parent"]
			}
			slices.Reverse(got)
			var want []string
			sent := ep.Sent(turn)
			for i, m := range append(slices.Clone(sent), ep.Messages[ep.Turns[turn].Message]) {
				said := m.Role + ": " + m.Content
				for _, call := range m.Calls {
					if i < len(sent) && call.Sent != "" {
						call.Arguments = call.Sent
					}
					said += " " + call.Arguments
				}
				want = append(want, said)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: branch of turn %d (-want +got):\n%s", name, turn, diff)
			}
			if shortened {
				if len(ids) > 0 {
					t.Errorf("turn %d has ids %v, which do not follow each other", turn, ids)
				}
				continue
			}
			tokens := ep.TokensOf(turn)
			if want := compact(t, append(slices.Clone(tokens.Prompt), tokens.Completion...)); compact(t, ids) != want || len(mask) != len(ids) {
				t.Errorf("turn %d: ids %s with a mask of %d, want %s", turn, compact(t, ids), len(mask), want)
			}
		}
		if noted(result.Notes, "traces without their token ids") != shortened {
			t.Errorf("%s: notes %q", name, result.Notes)
		}
		if diff := cmp.Diff(`{"style":{"score":1,"weight":0.25},"tests":{"score":1,"weight":0.75}}`, compact(t, trace["rewards"])); diff != "" {
			t.Errorf("rewards (-want +got):\n%s", diff)
		}
	}
}

type skyrlOutput struct {
	Prompts   []episode.IDs `json:"prompt_token_ids"`
	Responses []episode.IDs `json:"response_ids"`
	Masks     [][]int       `json:"loss_masks"`
	Logprobs  [][]float32   `json:"rollout_logprobs"`
	Rewards   []float64     `json:"rewards"`
	Stops     []string      `json:"stop_reasons"`
	Last      []bool        `json:"is_last_step"`
}

func TestSkyRLKeepsTheSequence(t *testing.T) {
	path, _ := wrote(t, "skyrl", "out.json", export.Options{}, talk(false))
	var got skyrlOutput
	readJSON(t, path, &got)
	want := skyrlOutput{
		Prompts: []episode.IDs{{1, 2, 3}}, Responses: []episode.IDs{{4, 5, 6, 7, 8, 9, 10, 11}}, Masks: [][]int{{1, 1, 0, 1, 0, 0, 1, 1}},
		Logprobs: [][]float32{{-0.5, 0, 0, -1, 0, 0, -2, -3}}, Rewards: []float64{1}, Stops: []string{"stop"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as a whole (-want +got):\n%s", diff)
	}

	_, result := wrote(t, "skyrl", "out.json", export.Options{}, talk(true))
	if diff := cmp.Diff(map[string]int{"token ids of a conversation that was shortened": 1}, result.Dropped); diff != "" {
		t.Errorf("a conversation that was shortened, dropped (-want +got):\n%s", diff)
	}

	path, _ = wrote(t, "skyrl", "out.json", export.Options{Set: map[string]string{"steps": "turn"}}, talk(true))
	got = skyrlOutput{}
	readJSON(t, path, &got)
	want = skyrlOutput{
		Prompts: []episode.IDs{{1, 2, 3}, {1, 2, 3, 99}, {1, 50}}, Responses: []episode.IDs{{4, 5}, {7}, {10, 11}}, Masks: [][]int{{1, 1}, {1}, {1, 1}},
		Logprobs: [][]float32{{-0.5, 0}, {-1}, {-2, -3}}, Rewards: []float64{0, 0, 1}, Stops: []string{"stop", "stop", "stop"}, Last: []bool{false, false, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("turn by turn (-want +got):\n%s", diff)
	}
}

// One episode without logprobs leaves no room for those of the others, unless it is to be left out.
func TestSkyRLLogprobs(t *testing.T) {
	silent := talk(false)
	silent.ID, silent.Turns[1].Tokens.Logprobs = "silent", nil
	var got skyrlOutput
	path, result := wrote(t, "skyrl", "out.json", export.Options{}, talk(false), silent)
	readJSON(t, path, &got)
	if got.Logprobs != nil || len(got.Rewards) != 2 || !noted(result.Notes, "episodes without logprobs") {
		t.Errorf("logprobs %v of %d, notes %q", got.Logprobs, len(got.Rewards), result.Notes)
	}
	got = skyrlOutput{}
	path, result = wrote(t, "skyrl", "out.json", export.Options{Set: map[string]string{"logprobs": "required"}}, talk(false), silent)
	readJSON(t, path, &got)
	if len(got.Logprobs) != 1 || len(got.Rewards) != 1 || result.Dropped["no logprobs"] != 1 {
		t.Errorf("logprobs %v, dropped %v", got.Logprobs, result.Dropped)
	}
}

func TestVerlRolloutsKeepTheSequence(t *testing.T) {
	path, _ := wrote(t, "verl-rollouts", "out.parquet", export.Options{}, talk(false))
	row := arrowFile(t, path)[0]
	var got []string
	for _, column := range []string{"prompt_ids", "response_ids", "response_mask", "response_logprobs"} {
		got = append(got, compact(t, row[column]))
	}
	if diff := cmp.Diff([]string{"[1,2,3]", "[4,5,6,7,8,9,10,11]", "[1,1,0,1,0,0,1,1]", "[-0.5,0,0,-1,0,0,-2,-3]"}, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func compact(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func number(t *testing.T, value any) int {
	t.Helper()
	n, err := value.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}
