package export

import (
	"cmp"
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
)

var nemoGymFormat = Format{
	About:    "rollouts as NeMo Gym collects them: one line of request, response and reward for each episode",
	Settings: map[string]Setting{"agent": {About: "is the name of the agent that the rows point to (default trajgen)"}},
	open: func(path string, options Options) (target, error) {
		agent, counts, n := cmp.Or(options.Set["agent"], "trajgen"), repetitions{}, notes{}
		return openRowSink(path, rowKind{as: "jsonl", name: "rollouts"}, options, n, func(ep *episode.Episode) (*gymRow, error) {
			return newGymRow(ep, agent, counts, n)
		})
	},
}

type gymRow struct {
	Request      gymRequest       `json:"responses_create_params"`
	AgentRef     gymAgent         `json:"agent_ref"`
	Response     gymResponse      `json:"response"`
	Reward       float64          `json:"reward"`
	TaskIndex    int              `json:"task_index"`
	RolloutIndex int              `json:"rollout_index"`
	TaskID       string           `json:"task_id"`
	RolloutID    string           `json:"rollout_id"`
	GroundTruth  string           `json:"ground_truth,omitempty"`
	Outcome      episode.Outcome  `json:"outcome"`
	Rewards      []episode.Reward `json:"rewards,omitempty"`
}

type gymAgent struct {
	Name string `json:"name"`
}

type gymRequest struct {
	Input           []gymItem `json:"input"`
	Tools           []gymTool `json:"tools,omitempty"`
	Model           string    `json:"model,omitempty"`
	Temperature     *float64  `json:"temperature,omitempty"`
	TopP            *float64  `json:"top_p,omitempty"`
	MaxOutputTokens int       `json:"max_output_tokens,omitempty"`
}

// gymTool is a tool as the Responses API has it.
type gymTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type gymResponse struct {
	ID                string    `json:"id"`
	Object            string    `json:"object"`
	CreatedAt         float64   `json:"created_at"`
	Model             string    `json:"model"`
	Output            []gymItem `json:"output"`
	Tools             []gymTool `json:"tools"`
	ToolChoice        string    `json:"tool_choice"`
	ParallelToolCalls bool      `json:"parallel_tool_calls"`
	Usage             *gymUsage `json:"usage,omitempty"`
}

type gymUsage struct {
	InputTokens  int `json:"input_tokens"`
	InputDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int `json:"total_tokens"`
}

// gymItem is an item of a conversation in the Responses API.
type gymItem struct {
	Type      string    `json:"type"`
	ID        string    `json:"id,omitempty"`
	Role      string    `json:"role,omitempty"`
	Status    string    `json:"status,omitempty"`
	Content   any       `json:"content,omitempty"`
	Summary   []gymText `json:"summary,omitempty"`
	CallID    string    `json:"call_id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Arguments *string   `json:"arguments,omitempty"`
	Output    *string   `json:"output,omitempty"`
}

type gymText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
}

func newGymRow(ep *episode.Episode, agent string, counts repetitions, n notes) (*gymRow, error) {
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
	asks, tools := len(asked(ep)), gymTools(ep.Tools)
	row := &gymRow{
		Request: gymRequest{
			Input: gymItems(ep, 0, asks), Tools: tools, Model: cmp.Or(ep.Sampling.Model, ep.Model), Temperature: ep.Sampling.Temperature,
			TopP: ep.Sampling.TopP, MaxOutputTokens: ep.Sampling.MaxTokens,
		},
		AgentRef: gymAgent{agent}, Reward: *ep.Reward, TaskIndex: ep.Row, RolloutIndex: counts.number(ep, n), TaskID: ep.Key.Task, RolloutID: ep.ID,
		GroundTruth: truth, Outcome: ep.Outcome, Rewards: ep.Rewards,
		Response: gymResponse{
			ID: "resp_" + ep.ID, Object: "response", CreatedAt: seconds(ep.Started), Model: ep.Model, Output: gymItems(ep, asks, len(ep.Messages)),
			Tools: tools, ToolChoice: "auto", ParallelToolCalls: true,
		},
	}
	if u := ep.Usage; u.Reported {
		usage := &gymUsage{InputTokens: u.Prompt, OutputTokens: u.Completion, TotalTokens: u.Prompt + u.Completion}
		usage.InputDetails.CachedTokens, usage.OutputDetails.ReasoningTokens = u.Cached, u.Reasoning
		row.Response.Usage = usage
	}
	return row, nil
}

func gymTools(tools []json.RawMessage) []gymTool {
	list := []gymTool{}
	for _, tool := range verifiersTools(tools) {
		list = append(list, gymTool{Type: "function", Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	return list
}

// gymItems are the messages from one up to another.
func gymItems(ep *episode.Episode, from, to int) []gymItem {
	items := []gymItem{}
	for i := from; i < to; i++ {
		m, id := &ep.Messages[i], fmt.Sprintf("%s_%d", ep.ID, i)
		switch m.Role {
		case "tool":
			items = append(items, gymItem{Type: "function_call_output", CallID: m.ToolCallID, Output: &m.Content})
			continue
		case "assistant":
		default:
			items = append(items, gymItem{Type: "message", Role: m.Role, Content: m.Content})
			continue
		}
		if m.Reasoning != "" {
			items = append(items, gymItem{Type: "reasoning", ID: "rs_" + id, Summary: []gymText{{Type: "summary_text", Text: m.Reasoning}}})
		}
		if m.Content != "" || len(m.Calls) == 0 {
			items = append(items, gymItem{
				Type: "message", ID: "msg_" + id, Role: "assistant", Status: "completed",
				Content: []gymText{{Type: "output_text", Text: m.Content, Annotations: []any{}}},
			})
		}
		for n := range m.Calls {
			call := &m.Calls[n]
			items = append(items, gymItem{
				Type: "function_call", ID: fmt.Sprintf("fc_%s_%d", id, n), Status: "completed", CallID: call.ID, Name: call.Name, Arguments: &call.Arguments,
			})
		}
	}
	return items
}
