package export

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"trajgen/pipeline/episode"
)

var skyrlFormat = Format{
	trains: true,
	About:  "what SkyRL's generator would have given for the episodes (one JSON document of parallel lists), from recorded token ids",
	Settings: map[string]Setting{
		"steps": {
			About: "is episode (default), which has one entry for each, or turn: one for each turn, for step-wise training and for conversations that were shortened",
			words: []string{"episode", "turn"},
		},
		"logprobs": {
			About: "is given (default), which leaves all of them out as soon as one episode has none, or required: such an episode is refused",
			words: []string{"given", "required"},
		},
	},
	open: openSkyRL,
}

// skyrlSink keeps each list beside the file until all are complete: they stand one behind the other in it.
type skyrlSink struct {
	*file
	notes
	stepwise, required bool
	lists              []*list // as skyrlLists names them
	unsaid             int     // episodes without logprobs
	episodes           int64
	metrics            skyrlMetrics
	counts             repetitions
}

// skyrlLists are the lists of a GeneratorOutput, in the order in which they are written.
var skyrlLists = []string{
	"prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs", "trajectory_ids",
	"trajectory_generation_times", "trajectory_time_splits", "is_last_step", "env_metrics",
}

const (
	listLogprobs = 5
	listLast     = 9
)

const (
	noteAllLogprobs    = "episodes without logprobs, because of which rollout_logprobs is null for all (--set logprobs=required leaves them out instead)"
	refuseLogprobs     = "no logprobs"
	skyrlExpertsUnsaid = `,"rollout_expert_indices":null,"pixel_values":null,"image_grid_thw":null}` + "\n"
)

func openSkyRL(path string, options Options) (target, error) {
	f, err := openFile(path, "rollouts.json")
	if err != nil {
		return nil, err
	}
	s := &skyrlSink{file: f, notes: notes{}, counts: repetitions{}}
	s.stepwise, s.required = options.Set["steps"] == "turn", options.Set["logprobs"] == "required"
	for range skyrlLists {
		l, err := openList(path)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.lists = append(s.lists, l)
	}
	return s, nil
}

// skyrlStep is what one entry has in the lists: an episode, or a turn of it.
type skyrlStep struct {
	prompt, response []int32
	mask             []int32
	logprobs         []float32 // nil when they are not known
	last             bool
}

func (s *skyrlSink) add(ep *episode.Episode) error {
	take := episodeStep
	if s.stepwise {
		take = turnSteps
	}
	steps, spoken, err := take(ep)
	switch {
	case err != nil:
		return err
	case ep.Reward == nil:
		return &Refusal{refuseReward}
	case !spoken && s.required:
		return &Refusal{refuseLogprobs}
	}
	number := s.counts.number(ep, s.notes)
	for step := range steps {
		if err := s.entry(ep, number, &step); err != nil {
			return err
		}
	}
	if !spoken {
		s.unsaid++
	}
	s.episodes++
	return nil
}

// episodeStep is the one entry of an episode as a whole, and whether its logprobs are known.
func episodeStep(ep *episode.Episode) (steps iter.Seq[skyrlStep], spoken bool, err error) {
	ids, spans, err := sequence(ep)
	if err != nil {
		return nil, false, err
	}
	from := spans[0].Start
	step := skyrlStep{
		prompt: ids[:from], response: ids[from:], mask: mask(len(ids), spans), logprobs: logprobs(ep, len(ids), spans), last: true,
	}
	return slices.Values([]skyrlStep{step}), step.logprobs != nil, nil
}

// turnSteps are the turns of an episode, one at a time: each has its whole prompt.
func turnSteps(ep *episode.Episode) (steps iter.Seq[skyrlStep], spoken bool, err error) {
	if ep.Drift == nil || len(ep.Turns) == 0 {
		return nil, false, &Refusal{refuseIDs}
	}
	spoken = true
	for i := range ep.Turns {
		t := ep.Turns[i].Tokens
		if ep.Drift.Verdict == episode.DriftUnknown || t == nil || t.Shared+len(t.Prompt) == 0 || len(t.Completion) == 0 {
			return nil, false, &Refusal{refuseUnknown}
		}
		spoken = spoken && len(t.Logprobs) == len(t.Completion)
	}
	return func(yield func(skyrlStep) bool) {
		for i := range ep.Turns {
			t := ep.TokensOf(i)
			step := skyrlStep{prompt: t.Prompt, response: t.Completion, mask: make([]int32, len(t.Completion)), last: i == len(ep.Turns)-1}
			for at := range step.mask {
				step.mask[at] = 1
			}
			if len(t.Logprobs) == len(t.Completion) {
				step.logprobs = t.Logprobs
			}
			if !yield(step) {
				return
			}
		}
	}, spoken, nil
}

// skyrlStop is why an episode stopped, in SkyRL's words where it has them.
func skyrlStop(ep *episode.Episode) string {
	switch ep.Stop {
	case episode.StopAnswered:
		return "stop"
	case episode.StopLength, episode.StopContext, episode.StopMaxTokens:
		return "length"
	}
	return cmp.Or(string(ep.Stop), "stop")
}

// entry appends an entry to every list. The reward stands at the last one of an episode, as an environment gives it.
func (s *skyrlSink) entry(ep *episode.Episode, number int, step *skyrlStep) error {
	reward, stop := 0.0, "stop"
	if step.last {
		reward, stop = *ep.Reward, skyrlStop(ep)
	}
	values := []any{
		episode.IDs(step.prompt), episode.IDs(step.response), reward, episode.IDs(step.mask), stop, step.logprobs,
		object{{"instance_id", ep.Key.Task}, {"repetition_id", number}},
		ep.Elapsed.Seconds(),
		object{{"llm", ep.Phases.Model.Seconds()}, {"env", (ep.Elapsed - ep.Phases.Model).Seconds()}},
		step.last,
		object{
			{"turns", len(ep.Turns)}, {"tool_calls", len(ep.Calls)}, {"failed_tool_calls", failedCalls(ep)}, {"outcome", ep.Outcome},
		},
	}
	for i, value := range values {
		if err := s.lists[i].add(value); err != nil {
			return err
		}
	}
	s.metrics.add(len(step.response), reward)
	return nil
}

// failedCalls counts the calls that did not do what they were made for.
func failedCalls(ep *episode.Episode) (n int) {
	for i := range ep.Calls {
		if ep.Calls[i].Status != episode.CallOK {
			n++
		}
	}
	return n
}

// finish joins the lists.
func (s *skyrlSink) finish() ([]FileInfo, error) {
	for i, name := range skyrlLists {
		lead := ","
		if i == 0 {
			lead = "{"
		}
		if _, err := fmt.Fprintf(s.file, `%s"%s":`, lead, name); err != nil {
			return nil, err
		}
		var err error
		if i == listLogprobs && s.unsaid > 0 || i == listLast && !s.stepwise {
			_, err = io.WriteString(s.file, "null")
		} else {
			err = s.lists[i].copyTo(s.file)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.unsaid > 0 {
		s.notes[noteAllLogprobs] = s.unsaid
	}
	metrics, err := json.Marshal(s.metrics.values())
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(s.file, `,"rollout_metrics":%s%s`, metrics, skyrlExpertsUnsaid); err != nil {
		return nil, err
	}
	return s.commit(s.episodes)
}

func (s *skyrlSink) close() error {
	err := s.file.close()
	for _, l := range s.lists {
		err = errors.Join(err, l.Close())
	}
	return err
}
