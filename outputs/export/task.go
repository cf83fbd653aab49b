package export

import (
	"encoding/json"
	"slices"
	"strconv"

	"trajgen/pipeline/episode"
)

// What formats of tasks leave out, and why they refuse an episode.
const (
	noteUnchecked = "tasks without a check; their ground truth is empty"
	noteLater     = "tasks with later user messages, for which the format has no place"

	refusePrompt  = "no prompt"
	refuseSample  = "a further sample of its task"
	refusePrefill = "a tool call in the prompt"
	refuseReward  = "no reward"
	refuseIDs     = "no token ids"
	refuseUnknown = "token ids that are not known of every turn"
	refuseDrift   = "token ids that drifted: a prompt does not begin with the turn before it"
	refuseShort   = "token ids of a conversation that was shortened"
	refuseResent  = "token ids of a conversation in which arguments were sent back otherwise than they were sampled"
)

// asked is the conversation as it stood when the model was first asked.
func asked(ep *episode.Episode) []episode.Message {
	if len(ep.Turns) > 0 {
		return ep.Messages[:ep.Turns[0].Message]
	}
	if len(ep.Messages) > 0 {
		return ep.Messages
	}
	var messages []episode.Message
	if ep.Task.System != "" {
		messages = append(messages, episode.Message{Role: "system", Content: ep.Task.System})
	}
	first := slices.IndexFunc(ep.Task.Prompt, func(m episode.Message) bool { return m.Role == "user" })
	return append(messages, ep.Task.Prompt[:first+1]...)
}

// gave is the message that a turn gave; nil when what the harness said was left out and it was nothing else.
func gave(ep *episode.Episode, turn int) *episode.Message {
	at := ep.Turns[turn].Message
	if at >= len(ep.Messages) || ep.Messages[at].Role != "assistant" {
		return nil
	}
	return &ep.Messages[at]
}

// turnsByMessage are the turns of an episode by the message that each gave.
func turnsByMessage(ep *episode.Episode) map[int]int {
	turns := make(map[int]int, len(ep.Turns))
	for i := range ep.Turns {
		turns[ep.Turns[i].Message] = i
	}
	return turns
}

// compactionsByTurn are those before each turn, and behind the last one under the number of turns.
func compactionsByTurn(ep *episode.Episode) map[int][]*episode.Compaction {
	shortens := map[int][]*episode.Compaction{}
	for i := range ep.Compactions {
		c := &ep.Compactions[i]
		shortens[c.Turn] = append(shortens[c.Turn], c)
	}
	return shortens
}

// question is the last that the user said in a conversation.
func question(messages []episode.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == "user" {
			return m.Content
		}
	}
	return ""
}

// answerOf is what a task's answer is compared with; empty when it is judged otherwise, or by more than one check.
func answerOf(task *episode.Task) string {
	if len(task.Verify) != 1 {
		return ""
	}
	switch check := task.Verify[0]; {
	case len(check.Exact) == 1 && check.Comparison == episode.Comparison{}:
		return check.Exact[0]
	case check.Number != nil && check.Unit == "":
		return strconv.FormatFloat(*check.Number, 'f', -1, 64)
	}
	return ""
}

// groundTruth is what an environment needs to judge a task: the answer, or else the checks as JSON.
func groundTruth(task *episode.Task) (string, error) {
	if answer := answerOf(task); answer != "" || len(task.Verify) == 0 {
		return answer, nil
	}
	checks, err := encode(task.Verify)
	return string(checks), err
}

// remarkTask notes what of a task a row of its prompt does not tell.
func (n notes) remarkTask(ep *episode.Episode) {
	if len(ep.Task.Verify) == 0 {
		n[noteUnchecked]++
	}
	users := 0
	for _, m := range ep.Task.Prompt {
		if m.Role == "user" {
			users++
		}
	}
	if users > 1 {
		n[noteLater]++
	}
}

// firsts tells the first sample of each task in dataset order from those behind it. Merged runs can have several tasks at
// a row, whose samples take turns.
type firsts struct {
	row  int
	seen map[string]bool // tasks at the row
}

func (f *firsts) first(ep *episode.Episode) bool {
	if f.seen == nil || f.row != ep.Row {
		f.row, f.seen = ep.Row, map[string]bool{}
	}
	if f.seen[ep.Key.Task] {
		return false
	}
	f.seen[ep.Key.Task] = true
	return true
}

// repetitions number the samples of each task, for formats that know an episode by its task and a number alone. The number
// is the sample's own, unless one before it has come so far: merged runs of several seeds have the same samples of a task.
// It holds 16 bytes for each task.
type repetitions map[uint64]int // by the digest of the task: the next number

const noteRepetition = "episodes with another number than their sample's, which one of the same task had already (of another seed)"

func (r repetitions) number(ep *episode.Episode, n notes) int {
	task := digest(ep.Key.Task)
	number := max(ep.Key.Sample, r[task])
	r[task] = number + 1
	if number != ep.Key.Sample {
		n[noteRepetition]++
	}
	return number
}

// sequence is every token of an episode and where the model sampled, or the reason why it cannot be trained on.
func sequence(ep *episode.Episode) (episode.IDs, []episode.Span, error) {
	if ids, spans := ep.Sequence(); len(spans) > 0 {
		return ids, spans, nil
	}
	switch {
	case ep.Drift == nil, ep.Drift.Verdict == episode.DriftNone: // there is no turn
		return nil, nil, &Refusal{refuseIDs}
	case ep.Drift.Verdict == episode.DriftFound:
		return nil, nil, &Refusal{refuseDrift}
	case ep.Drift.Verdict == episode.DriftCompacted:
		return nil, nil, &Refusal{refuseShort}
	case ep.Drift.Verdict == episode.DriftRepaired:
		return nil, nil, &Refusal{refuseResent}
	}
	return nil, nil, &Refusal{refuseUnknown}
}

// logprobs are those of the ids from the first completion on, zero where the model did not sample; nil when those of a
// turn are missing.
func logprobs(ep *episode.Episode, length int, spans []episode.Span) []float32 {
	from := spans[0].Start
	all := make([]float32, length-from)
	for i, span := range spans {
		sampled := ep.Turns[i].Tokens.Logprobs
		if len(sampled) != span.End-span.Start {
			return nil
		}
		copy(all[span.Start-from:], sampled)
	}
	return all
}

// mask is 1 where the model sampled, for the ids from the first completion on.
func mask(length int, spans []episode.Span) []int32 {
	from := spans[0].Start
	sampled := make([]int32, length-from)
	for _, span := range spans {
		for at := span.Start; at < span.End; at++ {
			sampled[at-from] = 1
		}
	}
	return sampled
}

// function is a tool that a model was shown.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func functionOf(tool json.RawMessage) (function, error) {
	var shown struct {
		Function function `json:"function"`
	}
	err := json.Unmarshal(tool, &shown)
	return shown.Function, err
}

// functionNames are the names of tools; "" is the name of one that has none.
func functionNames(tools []json.RawMessage) []string {
	names := make([]string, len(tools))
	for i, tool := range tools {
		if f, err := functionOf(tool); err == nil {
			names[i] = f.Name
		}
	}
	return names
}
