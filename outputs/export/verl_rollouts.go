package export

import (
	"slices"

	"trajgen/pipeline/episode"
)

var verlRolloutsFormat = Format{
	trains: true,
	About:  "what verl's agent loop would have given for each episode (Parquet), from recorded token ids",
	open: func(path string, options Options) (target, error) {
		n := notes{}
		return openRowSink(path, rowKind{as: "parquet", name: "verl-rollouts", id: "id"}, options, n, n.verlRollout)
	},
}

// verlRollout is an AgentLoopOutput of verl's.
type verlRollout struct {
	ID               string        `parquet:"id"`
	PromptIDs        []int32       `parquet:"prompt_ids,list"`
	ResponseIDs      []int32       `parquet:"response_ids,list"`
	ResponseMask     []int32       `parquet:"response_mask,list"`              // 1 where the model sampled
	ResponseLogprobs []float32     `parquet:"response_logprobs,optional,list"` // null when the server did not give all of them
	RewardScore      *float64      `parquet:"reward_score,optional"`
	NumTurns         int32         `parquet:"num_turns"`
	Metrics          verlMetrics   `parquet:"metrics"`
	ExtraFields      verlRollExtra `parquet:"extra_fields"`
}

// verlMetrics are in seconds.
type verlMetrics struct {
	GenerateSequences float64 `parquet:"generate_sequences"`
	ToolCalls         float64 `parquet:"tool_calls"`
	NumPreempted      int32   `parquet:"num_preempted"` // -1: not known
}

type verlRollExtra struct {
	TaskID        string  `parquet:"task_id"`
	Index         int64   `parquet:"index"`
	Sample        int32   `parquet:"sample"`
	Attempt       int32   `parquet:"attempt"`
	Outcome       string  `parquet:"outcome,dict"`
	Stop          string  `parquet:"stop,dict"`
	Model         *string `parquet:"model,optional,dict"`
	WeightVersion *string `parquet:"weight_version,optional,dict"` // of the last turn
}

const (
	noteLogprobs = "rows without logprobs, as the server told not those of every turn"
	noteReward   = "rows whose reward is null: it was not judged, or not the agent's doing"
)

func (n notes) verlRollout(ep *episode.Episode) (*verlRollout, error) {
	ids, spans, err := sequence(ep)
	if err != nil {
		return nil, err
	}
	from := spans[0].Start
	row := &verlRollout{
		ID: ep.ID, PromptIDs: ids[:from], ResponseIDs: ids[from:], ResponseMask: mask(len(ids), spans),
		ResponseLogprobs: logprobs(ep, len(ids), spans), RewardScore: ep.Reward,
		NumTurns: int32(len(slices.DeleteFunc(slices.Clone(ep.Messages), func(m episode.Message) bool { return m.Role == "system" }))),
		Metrics:  verlMetrics{ep.Phases.Model.Seconds(), ep.Phases.Tools.Seconds(), -1},
		ExtraFields: verlRollExtra{
			TaskID: ep.Key.Task, Index: int64(ep.Row), Sample: int32(ep.Key.Sample), Attempt: int32(ep.Attempt),
			Outcome: string(ep.Outcome), Stop: string(ep.Stop), Model: present(ep.Model),
			WeightVersion: present(ep.Turns[len(ep.Turns)-1].WeightVersion),
		},
	}
	if row.ResponseLogprobs == nil {
		n[noteLogprobs]++
	}
	if row.RewardScore == nil {
		n[noteReward]++
	}
	return row, nil
}
