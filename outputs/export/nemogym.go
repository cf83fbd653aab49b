package export

import (
	"cmp"
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
)

var nemoGymFormat = Format{
	trains:   true,
	imaging:  inlined,
	About:    "rollouts as NeMo Gym collects them: one line of request, response and reward for each episode",
	Settings: map[string]Setting{"agent": {About: "is the name of the agent that the rows point to (default trajgen)"}},
	open: func(path string, options Options) (target, error) {
		agent, counts, n := cmp.Or(options.Set["agent"], "trajgen"), repetitions{}, notes{}
		return openRowSink(path, rowKind{as: "jsonl", name: "rollouts"}, options, n, func(ep *episode.Episode) (object, error) {
			return newGymRow(ep, agent, counts, n)
		})
	},
}

func newGymRow(ep *episode.Episode, agent string, counts repetitions, n notes) (object, error) {
	switch {
	case len(ep.Messages) == 0:
		return nil, &Refusal{refuseEmpty}
	case ep.Reward == nil:
		return nil, &Refusal{refuseReward}
	}
	truth, err := groundTruth(&ep.Task)
	if err != nil {
		return nil, err
	}
	n.remark(ep)
	if ep.Drift != nil {
		n["rows without their token ids, which NeMo Gym keeps elsewhere"]++
	}
	asks, tools, sampling := len(asked(ep)), gymTools(ep.Tools), ep.Sampling
	request := object{
		{"input", gymItems(ep, 0, asks)},
		{"tools", some(tools)},
		{"model", some(cmp.Or(sampling.Model, ep.Model))},
		{"temperature", some(sampling.Temperature)},
		{"top_p", some(sampling.TopP)},
		{"max_output_tokens", some(sampling.MaxTokens)},
	}
	response := object{
		{"id", "resp_" + ep.ID},
		{"object", "response"},
		{"created_at", seconds(ep.Started)},
		{"model", ep.Model},
		{"output", gymItems(ep, asks, len(ep.Messages))},
		{"tools", tools},
		{"tool_choice", "auto"},
		{"parallel_tool_calls", true},
	}
	if u := ep.Usage; u.Reported {
		response = append(response, field{"usage", object{
			{"input_tokens", u.Prompt},
			{"input_tokens_details", object{{"cached_tokens", u.Cached}}},
			{"output_tokens", u.Completion},
			{"output_tokens_details", object{{"reasoning_tokens", u.Reasoning}}},
			{"total_tokens", u.Prompt + u.Completion},
		}})
	}
	return object{
		{"responses_create_params", request},
		{"agent_ref", object{{"name", agent}}},
		{"response", response},
		{"reward", *ep.Reward},
		{"task_index", ep.Row},
		{"rollout_index", counts.number(ep, n)},
		{"task_id", ep.Key.Task},
		{"rollout_id", ep.ID},
		{"ground_truth", some(truth)},
		{"outcome", ep.Outcome},
		{"rewards", some(ep.Rewards)},
	}, nil
}

// gymTools are tools as the Responses API has them.
func gymTools(tools []json.RawMessage) []object {
	list := []object{}
	for _, tool := range verifiersTools(tools) {
		list = append(list, object{
			{"type", "function"}, {"name", tool.Name}, {"description", some(tool.Description)}, {"parameters", tool.Parameters}, {"strict", false},
		})
	}
	return list
}

// gymItems are the messages from one up to another, as items of the Responses API.
func gymItems(ep *episode.Episode, from, to int) []object {
	items := []object{}
	for i := from; i < to; i++ {
		m, id := &ep.Messages[i], fmt.Sprintf("%s_%d", ep.ID, i)
		switch m.Role {
		case "tool":
			items = append(items, object{{"type", "function_call_output"}, {"call_id", some(m.ToolCallID)}, {"output", m.Content}})
			continue
		case "assistant":
		default:
			items = append(items, object{{"type", "message"}, {"role", some(m.Role)}, {"content", responsesContent(m)}})
			continue
		}
		if m.Reasoning != "" {
			summary := []object{{{"type", "summary_text"}, {"text", m.Reasoning}}}
			items = append(items, object{{"type", "reasoning"}, {"id", "rs_" + id}, {"summary", summary}})
		}
		if m.Content != "" || len(m.Calls) == 0 {
			content := []object{{{"type", "output_text"}, {"text", m.Content}, {"annotations", []any{}}}}
			items = append(items, object{
				{"type", "message"}, {"id", "msg_" + id}, {"role", "assistant"}, {"status", "completed"}, {"content", content},
			})
		}
		for n := range m.Calls {
			call := &m.Calls[n]
			items = append(items, object{
				{"type", "function_call"}, {"id", fmt.Sprintf("fc_%s_%d", id, n)}, {"status", "completed"},
				{"call_id", some(call.ID)}, {"name", some(call.Name)}, {"arguments", call.Arguments},
			})
		}
	}
	return items
}
