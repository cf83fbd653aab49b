package sinktest

import (
	"encoding/json"
	"fmt"
	"time"

	"trajgen/pipeline/episode"
)

// Episodes makes n episodes in dataset order, two samples a task, always the same. Between them they have every
// outcome, nulls and empty lists in every column that can have them, text in many scripts, and arguments that are no
// JSON.
func Episodes(n int) []*episode.Episode {
	episodes := make([]*episode.Episode, n)
	for i := range episodes {
		episodes[i] = Episode(i/2, i%2)
	}
	return episodes
}

// Tree makes an episode with two subagents, the first of which has one of its own.
func Tree(row int) *episode.Episode {
	root := Episode(row, 0)
	root.Reward, root.Outcome, root.Fault = new(1.0), episode.Success, nil
	root.Children = []*episode.Episode{subagent(root, root, 0, 1), subagent(root, root, 1, 1)}
	root.Children[0].Children = []*episode.Episode{subagent(root, root.Children[0], 0, 2)}
	return root
}

func subagent(root, parent *episode.Episode, number, depth int) *episode.Episode {
	ep := Episode(root.Row, 0)
	ep.Key = parent.Key.Child(0, 0, number)
	ep.ID, ep.Outcome, ep.Reward, ep.Rewards, ep.Fault, ep.Earlier = ep.Key.ID(), episode.Success, nil, nil, nil, nil
	ep.Answer, ep.Usage.Completion = "report "+ep.Key.Path, 1000
	ep.Origin = &episode.Origin{
		Parent: parent.ID, Call: parent.Calls[0].ID, Depth: depth, Role: episode.RoleLeaf, RootReward: root.Reward,
	}
	return ep
}

// Episode makes one episode of a task at the given row of a dataset.
func Episode(row, sample int) *episode.Episode {
	task := fmt.Sprintf("task-%04d", row)
	key := episode.Key{Seed: 1<<63 + 7, Task: task, Sample: sample}
	i := 2*row + sample
	outcome := episode.Outcomes()[i%len(episode.Outcomes())]
	began := time.Date(2026, 5, 6, 7, 8, 9, 123_456_000, time.UTC).Add(time.Duration(i) * time.Second)
	var proof *episode.Proof
	if row%2 == 1 {
		proof = &episode.Proof{
			Digest: "d1", Gold: new(1.0), Faults: map[string]string{"noop": "timeout"}, Attacks: map[string]*float64{"preload": new(0.5), "reward-file": nil},
		}
	}
	ep := &episode.Episode{
		Proof:  proof,
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: row, Run: "f1e2d3", Attempt: 1,
		Task: episode.Task{
			ID: task, Row: row,
			Prompt: []episode.Message{{Role: "user", Content: "Schreib „Größe“ — 写一个文件 🙂 & <b>"}},
		},
		Toolsets: []string{"files", "terminal"}, LogP: -0.25 * float64(i),
		Tools: []json.RawMessage{
			json.RawMessage(`{"type":"function","function":{"name":"terminal","description":"run <x> & \"y\"","parameters":{"type":"object"}}}`),
		},
		Messages: []episode.Message{
			{Role: "system", Content: "You are\nhelpful.\u2028"},
			{Role: "user", Content: "Schreib „Größe“ — 写一个文件 🙂 & <b>"},
		},
		Web: "replay", Outcome: outcome, Stop: episode.StopAnswered, Answer: fmt.Sprint("answer ", i),
		Model: "scripted", Sandbox: episode.Sandbox{
			Backend: "local", Level: "namespaces", Opened: true, Forked: true, Limits: map[string]string{"memory": "hard", "cpu": "none"},
			Connections: []episode.Connection{
				{Host: "example.org", Port: 443, Address: "93.184.216.34", Started: time.Unix(1700000001, 123456000).UTC(), Sent: 517, Received: 1 << 33},
				{Host: "10.0.0.1", Port: 80, Started: time.Unix(1700000002, 654321000).UTC(), Refused: "a private address"},
			},
		},
		Usage: episode.Usage{Prompt: 100 + i, Completion: 20, Reasoning: 5, Cached: 64, Reported: true}, CostUSD: new(0.25),
		Started: began, Elapsed: time.Duration(1500+i) * time.Millisecond,
		Phases: episode.Phases{Open: 3 * time.Millisecond, Setup: 1, Agent: 1200 * time.Millisecond, Model: time.Second,
			Tools: 200 * time.Millisecond, Verify: 7 * time.Millisecond, Close: time.Millisecond},
	}
	addTurn(ep, i, began)
	switch {
	case outcome == episode.Success:
		ep.Reward = new(1.0)
		ep.Rewards = []episode.Reward{{Name: "tests", Value: 1, Weight: 2, Detail: "3 passed"}, {Name: "style", Value: 1, Weight: 1}}
	case outcome.AgentsDoing():
		ep.Reward = new(0.0)
		ep.Rewards = []episode.Reward{{Name: "tests", Value: 0, Weight: 1, Detail: "1 failed\nexpected \x00?"}}
		ep.Stop = episode.StopMaxTurns
	default:
		ep.Fault = &episode.Fault{Outcome: outcome, Class: "timeout", Message: "no answer within 10s"}
		ep.Stop, ep.Answer = episode.StopFault, ""
		ep.Attempt = 2
		ep.Earlier = episode.Attempts{{Attempt: 1, Outcome: outcome, Fault: &episode.Fault{Outcome: outcome, Class: "rate_limit"}}}
	}
	if i%3 == 0 {
		enrich(ep)
	}
	addTokens(ep, i)
	if i%7 == 3 {
		bare(ep)
	}
	return ep
}

// addTurn adds an exchange with a call whose arguments are JSON and one whose are not.
func addTurn(ep *episode.Episode, i int, began time.Time) {
	ep.Messages = append(ep.Messages,
		episode.Message{Role: "assistant", Reasoning: "think, ça va", Calls: []episode.Call{
			{ID: "call_1", Name: "terminal", Arguments: `{"command":"echo \"hi\" > a.txt", "timeout":"5"}`},
			{ID: "call_2", Name: "terminal", Arguments: `{"command": unclosed`},
		}},
		episode.Message{Role: "tool", Content: `{"output":"","exit_code":0}`, ToolCallID: "call_1", Name: "terminal"},
		episode.Message{Role: "tool", Content: `{"error":"arguments are not JSON"}`, ToolCallID: "call_2", Name: "terminal"},
		episode.Message{Role: "user", Content: "Go on.", Harness: true},
	)
	ep.Turns = []episode.Turn{{
		Index: 0, Message: 2, Model: "scripted-2026", RequestID: fmt.Sprint("req-", i), FinishReason: "tool_calls",
		Usage:   episode.Usage{Prompt: 100 + i, Completion: 20, Reasoning: 5, Cached: 64, Reported: true},
		Started: began, Elapsed: 900 * time.Millisecond,
		Retries: []episode.Fault{{Outcome: episode.ModelError, Class: "rate_limit", Message: "429"}},
	}, {Index: 1, Message: 5, FinishReason: "stop"}}
	ep.Calls = []episode.ToolCall{{
		ID: "call_1", Turn: 0, Index: 0, Name: "terminal", Toolset: "terminal",
		RawArguments: ep.Messages[2].Calls[0].Arguments, Arguments: json.RawMessage(`{"command":"echo \"hi\" > a.txt","timeout":5}`),
		Coerced: []string{"timeout"}, Status: episode.CallOK, Result: ep.Messages[3].Content, ResultBytes: 27, ExitCode: new(0),
		Rewritten: []string{"approver"}, Via: "tool_call", Masked: []string{"api key"}, Notice: "the same call failed twice",
		Verdict: &episode.Verdict{Verdict: "ask", Rule: "delete", Reason: "deletes a tree", Decision: "approved by model",
			Usage: &episode.Usage{Prompt: 210, Completion: 12, Reported: true}},
		Started: began.Add(time.Second), Elapsed: time.Duration(800+i) * time.Microsecond, SandboxTime: 640 * time.Microsecond,
	}, {
		ID: "call_2", Turn: 0, Index: 1, Name: "terminal", Toolset: "terminal",
		RawArguments: ep.Messages[2].Calls[1].Arguments, Status: episode.CallInvalidArguments, ErrorClass: "not_json",
		Result: ep.Messages[4].Content, ResultBytes: 34, Started: began.Add(time.Second),
	}, {
		ID: "call_1.1", Parent: "call_1", Turn: 0, Index: 0, Name: "wirte_file", RawArguments: "",
		Status: episode.CallUnknownTool, ErrorClass: "unknown_tool", Result: `{"error":"?"}`, Truncated: true, ResultBytes: 1 << 20,
		Stored: "/tmp/trajgen-results/call_1.1.json", Untrusted: "web", Source: json.RawMessage(`{"mode":"replay","by":"exa/1"}`), Runner: true, SameAs: "call_2",
	}}
}

// addTokens gives most episodes token ids: without drift, with one, after a compaction, or not those of every turn.
func addTokens(ep *episode.Episode, i int) {
	said := []episode.Tokens{
		{Prompt: episode.IDs{151644, 8948, int32(i)}, Completion: episode.IDs{0, 1<<31 - 1}, Logprobs: []float32{-0.25, -9999}},
		{Prompt: episode.IDs{151644, 8948, int32(i), 0, 1<<31 - 1, 198}, Completion: episode.IDs{40, 151645}, Logprobs: []float32{0, -0.0001}},
	}
	switch i % 6 {
	case 0:
		return
	case 1:
		said[1].Prompt[4] = 7
	case 2:
		said[1].Prompt = nil
	case 3:
		said[0].Logprobs = nil
	case 4:
		said[1].Prompt = episode.IDs{151644, 9}
		ep.Compactions = []episode.Compaction{{Turn: 1, Strategy: episode.CompactDrop}}
	}
	turns := ep.Turns
	ep.Turns = nil
	for n, turn := range turns {
		turn.Tokens = ep.KeepTokens(said[n])
		if turn.Usage.Reported {
			turn.Usage = episode.Usage{Prompt: len(said[n].Prompt), Completion: len(said[n].Completion), Reported: true}
		}
		ep.Turns = append(ep.Turns, turn)
	}
	ep.Drift = ep.FindDrift()
}

// enrich fills what an episode may leave empty.
func enrich(ep *episode.Episode) {
	ep.Distribution = "default"
	ep.Task.Memory = &episode.Memory{Memory: []string{"Größe <b>\nzwei Zeilen"}, User: []string{"prefers tabs"}}
	ep.Task.User = &episode.User{Model: true, Persona: "knows the \"color\""}
	ep.Memory, ep.Recalled, ep.Ephemeral = &episode.Memory{}, "\n\nWhat you remember", "\n\nAnswer in “Größe”."
	ep.Skills = &episode.Skills{Mode: "with", LogP: -0.5, Written: episode.Files{"ä/SKILL.md": episode.File("---\n<b>")}, Events: []episode.SkillEvent{
		{Kind: episode.SkillOffered, Skill: "pdf", Digest: "sha256:1", Bytes: 12, Rank: 1}, {Turn: 1, Kind: episode.SkillScript, Skill: "pdf", File: "scripts/ä.py"},
	}}
	ep.Sampling = episode.Sampling{Model: "scripted", ReasoningEffort: "low", Temperature: new(0.0), TopP: new(0.95), MaxTokens: 512}
	ep.User = &episode.UserTrace{Questions: 2, Model: "user-model", Usage: episode.Usage{Prompt: 30, Completion: 4, Reported: true}}
	ep.Turns[0].Fallback, ep.Turns[0].Waited, ep.Turns[0].Retries[0].Pause = "other", 250*time.Millisecond, 1500*time.Microsecond
	ep.Compactions = []episode.Compaction{
		{Turn: 1, Strategy: episode.CompactDrop, Before: 900, After: 300, Counted: 120, Replaced: []episode.Replacement{{Message: 3, Content: "[left out] ä"}, {Message: 4}}},
		{Turn: 1, Strategy: episode.CompactSummarize, Refused: true, Before: 300, After: 100, From: 2, To: 4, Summary: "It said „hi“.", Model: "small",
			Usage: &episode.Usage{Prompt: 40, Completion: 9, Reported: true}},
		{Turn: 1, Strategy: episode.CompactSummarize, Before: 100, Failed: "timeout"},
	}
	ep.Messages[2].ReasoningDetails = json.RawMessage(`[{"type":"reasoning.text","text":"<ça>","signature":"x=="}]`)
	ep.Messages[2].Calls[1].Cut, ep.Messages[2].Calls[1].Sent = true, `{"invalid_arguments":"{\"command\": unclosed"}`
	ep.Turns[0].Raw = `{"content":"<think>\u00e4</think>\ud83d"}`
	ep.Turns[0].Endpoint, ep.Turns[0].Repairs = "10.0.0.1:8000", []string{"parsed:hermes", "truncated call: terminal"}
	ep.Turns[0].Service = episode.Service{Provider: "Some & Co", SystemFingerprint: "fp_1", WeightVersion: "step-7",
		ServiceTier: "default", NativeFinishReason: "tool_use", Cost: new(0.00123)}
	ep.Task.System, ep.Task.Setup = "Be brief.", "pip install x"
	ep.Task.Image, ep.Task.Cwd, ep.Task.Network = "python:3.12", "/work", "none"
	ep.Task.Env = map[string]string{"B": "2", "A": "", "Ü": "ß"}
	ep.Task.Toolsets, ep.Task.Distribution = []string{"files"}, "default"
	ep.Task.Verify = []episode.Check{{Name: "tests", Command: "pytest -q && echo <ok>", Weight: 2, Timeout: time.Minute}}
	ep.Task.Limits = episode.Limits{Turns: 5, Tokens: 10_000, Time: time.Minute}
	ep.Task.Tags, ep.Task.Difficulty = []string{"python", "bugfix"}, "hard"
	ep.Task.Metadata = json.RawMessage(`{"a":null,"b":12345678901234567890,"c":"é"}`)
}

// bare empties what can be empty.
func bare(ep *episode.Episode) {
	ep.Toolsets, ep.Tools, ep.Messages, ep.Turns, ep.Calls = nil, nil, nil, nil, nil
	ep.Rewards, ep.Usage, ep.Model, ep.Run = nil, episode.Usage{}, "", ""
	ep.Drift, ep.Compactions = nil, nil
	ep.Sandbox, ep.Started, ep.Elapsed, ep.Phases = episode.Sandbox{}, time.Time{}, 0, episode.Phases{}
	ep.Task.Prompt = nil
}

// Plant makes episodes such as runs with planted faults have: each has a call with one, and some are twins.
func Plant(episodes []*episode.Episode) {
	for i, ep := range episodes {
		if len(ep.Calls) == 0 {
			continue
		}
		ep.Calls[0].Planted = &episode.Planted{
			Class: "wrong_value", Variant: "date", Effect: episode.EffectDone, P: 0.05, From: 0, Retries: 2, RealStatus: episode.CallOK, RealResult: `"2026-01-02"`,
			Target: &episode.PlantedTarget{Pointer: "/output", True: "2026-01-02", Wrong: "2026-01-12"},
		}
		switch i % 3 {
		case 0:
			ep.Planted = &episode.PlantedLevel{Level: 0.1, LogP: -2.5}
			continue
		case 1:
			ep.Twin = &episode.Twin{Role: episode.TwinPlacebo, Of: "clean", Class: "none", P: 0.5, Prefix: episode.PrefixReplayed}
		case 2:
			ep.Twin = &episode.Twin{
				Role: episode.TwinFault, Of: "clean", Class: "wrong_value", Variant: "date", P: 0.25, Turn: 1, Index: 2, Nested: 1, Ordinal: 4, Replicate: 1,
				Prefix: episode.PrefixRecorded, PrefixTokens: 99, Reactions: []string{"retry", "says"}, UsedWrong: new(true), UsedTrue: new(false),
				SafeSuccess: new(false), Recoverable: new(true),
			}
		}
		ep.Key.Twin = ep.Twin.Name()
		ep.ID = ep.Key.ID()
	}
}
