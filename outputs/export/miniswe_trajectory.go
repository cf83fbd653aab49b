package export

import (
	"cmp"
	"encoding/json"

	"trajgen/pipeline/episode"
)

// miniDocument is a .traj.json of mini-SWE-agent.
type miniDocument struct {
	TrajectoryFormat string        `json:"trajectory_format"`
	InstanceID       string        `json:"instance_id"`
	Info             miniInfo      `json:"info"`
	Messages         []chatMessage `json:"messages"`
}

type miniInfo struct {
	ModelStats   miniStats      `json:"model_stats"`
	Config       map[string]any `json:"config"`
	MiniVersion  string         `json:"mini_version"`
	ExitStatus   string         `json:"exit_status"`
	Submission   string         `json:"submission"`
	Traceback    *string        `json:"traceback,omitempty"`
	ExceptionStr string         `json:"exception_str,omitempty"`
}

type miniStats struct {
	InstanceCost *float64 `json:"instance_cost"` // null when not all of it is known
	APICalls     int      `json:"api_calls"`
}

// miniAction is a call of the agent's, as mini-SWE-agent runs commands. What is no command is named.
type miniAction struct {
	Command    string `json:"command"`
	ToolCallID string `json:"tool_call_id"`
	Tool       string `json:"tool,omitempty"`
	Arguments  string `json:"arguments,omitempty"`
}

func miniTrajectory(ep *episode.Episode, instance, patch string, run *Run) any {
	document := miniDocument{
		TrajectoryFormat: "mini-swe-agent-1.1", InstanceID: instance, Messages: newChatMessages(ep.Messages),
		Info: miniInfo{
			ModelStats: miniStats{ep.CostUSD, len(ep.Turns)}, MiniVersion: "trajgen " + cmp.Or(run.Version, "unknown"),
			ExitStatus: exitStatus(ep), Submission: patch,
			Config: map[string]any{
				"agent":       map[string]any{"step_limit": ep.Task.Limits.Turns},
				"model":       map[string]any{"model_name": cmp.Or(ep.Sampling.Model, ep.Model), "model_kwargs": ep.Sampling},
				"environment": map[string]any{"image": ep.Task.Image, "cwd": ep.Task.Cwd},
				"tools":       shallowAll(ep.Tools),
			},
		},
	}
	if ep.Fault != nil {
		document.Info.Traceback, document.Info.ExceptionStr = new(""), ep.Fault.Message
	}
	for i := range ep.Messages {
		if actions := miniActions(&ep.Messages[i]); len(actions) > 0 {
			document.Messages[i].Extra = map[string]any{"actions": actions}
		}
		if ep.Messages[i].Harness {
			document.Messages[i].Extra = map[string]any{"harness": true}
		}
	}
	for i := range ep.Turns {
		t := &ep.Turns[i]
		if gave(ep, i) == nil {
			continue
		}
		extra := document.Messages[t.Message].Extra
		if extra == nil {
			extra = map[string]any{"actions": []miniAction{}}
		}
		if t.Cost != nil {
			extra["cost"] = *t.Cost
		}
		if at := seconds(t.Started); at > 0 {
			extra["timestamp"] = at
		}
		if t.Usage.Reported {
			extra["response"] = map[string]any{"id": t.RequestID, "model": t.Model, "usage": verifiersUsage{t.Usage.Prompt, t.Usage.Completion}}
		}
		document.Messages[t.Message].Extra = extra
	}
	traceResults(ep, func(message int, call *episode.ToolCall) {
		extra := map[string]any{"status": call.Status, "raw_output": call.Result}
		if code, ok := exitCode(call.Result); ok {
			extra["returncode"] = code
		}
		if at := seconds(call.Started.Add(call.Elapsed)); at > 0 {
			extra["timestamp"] = at
		}
		document.Messages[message].Extra = extra
	})
	document.Messages = append(document.Messages, chatMessage{
		Role: "exit", Content: patch, Extra: map[string]any{"exit_status": document.Info.ExitStatus, "submission": patch},
	})
	return document
}

func miniActions(m *episode.Message) (actions []miniAction) {
	for _, call := range m.Calls {
		var given struct {
			Command string `json:"command"`
		}
		_ = json.Unmarshal([]byte(call.Arguments), &given) // what is no command is told by its name
		action := miniAction{Command: given.Command, ToolCallID: call.ID}
		if given.Command == "" {
			action.Tool, action.Arguments = call.Name, call.Arguments
		}
		actions = append(actions, action)
	}
	return actions
}

// traceResults pairs the messages of tools with the traces of their calls.
func traceResults(ep *episode.Episode, pair func(message int, call *episode.ToolCall)) {
	traces := map[string][]int{}
	for i := range ep.Calls {
		if call := &ep.Calls[i]; call.Parent == "" {
			key := callKey(call.Turn, call.ID)
			traces[key] = append(traces[key], i)
		}
	}
	turn, at := -1, 0
	for i := range ep.Messages {
		for at < len(ep.Turns) && ep.Turns[at].Message <= i {
			turn, at = at, at+1
		}
		if ep.Messages[i].Role != "tool" {
			continue
		}
		key := callKey(turn, ep.Messages[i].ToolCallID)
		if list := traces[key]; len(list) > 0 {
			pair(i, &ep.Calls[list[0]])
			traces[key] = list[1:]
		}
	}
}

// exitCode is the status with which a command ended, where a result has one.
func exitCode(result string) (int, bool) {
	var printed struct {
		ExitCode *int `json:"exit_code"`
	}
	if json.Unmarshal([]byte(result), &printed) != nil || printed.ExitCode == nil {
		return 0, false
	}
	return *printed.ExitCode, true
}

// exitStatus is how an episode ended, in mini-SWE-agent's words where it has them.
func exitStatus(ep *episode.Episode) string {
	switch {
	case ep.Fault != nil:
		return string(ep.Fault.Outcome) + "." + ep.Fault.Class
	case ep.Stop == episode.StopAnswered:
		return "Submitted"
	case ep.Stop == episode.StopTimeout:
		return "TimeExceeded"
	case ep.Stop == episode.StopMaxTurns, ep.Stop == episode.StopMaxTokens, ep.Stop == episode.StopMaxCost:
		return "LimitsExceeded"
	}
	return cmp.Or(string(ep.Stop), string(ep.Outcome))
}
