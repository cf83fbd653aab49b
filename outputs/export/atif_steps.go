package export

import (
	"cmp"
	"strconv"
	"time"

	"trajgen/pipeline/episode"
)

// atifSteps makes the steps of an episode.
type atifSteps struct {
	ep    *episode.Episode
	ids   string
	steps []*atifStep

	turnOf   map[int]int
	callOf   map[string][]int // indices in the trace, by turn and id
	nested   map[string][]int // those that calls of a script made, by the script's call
	shortens map[int][]*episode.Compaction
	open     *atifStep       // the agent's step that results belong to
	turn     int             // of that step
	answers  map[string]bool // ids of its calls

	after                 []episode.Compaction // what was done when the last turn was over
	rawArguments, orphans bool
}

func newATIFSteps(ep *episode.Episode, ids string) *atifSteps {
	s := &atifSteps{ep: ep, ids: ids, turnOf: turnsByMessage(ep), callOf: map[string][]int{}, nested: map[string][]int{}, shortens: compactionsByTurn(ep)}
	for i := range ep.Calls {
		if call := &ep.Calls[i]; call.Parent == "" {
			key := callKey(call.Turn, call.ID)
			s.callOf[key] = append(s.callOf[key], i)
		} else {
			key := callKey(call.Turn, call.Parent)
			s.nested[key] = append(s.nested[key], i)
		}
	}
	return s
}

// callKey identifies a call of an episode: models use one id in several turns.
func callKey(turn int, id string) string { return strconv.Itoa(turn) + "\x00" + id }

func (s *atifSteps) all() []*atifStep {
	for i := range s.ep.Messages {
		m := &s.ep.Messages[i]
		switch m.Role {
		case "assistant":
			s.agent(i, m)
		case "tool":
			s.result(m)
		default:
			source := "user"
			if m.Role != "user" {
				source = "system"
			}
			s.add(&atifStep{Source: source, Message: atifContent(m), Extra: harnessExtra(m)})
		}
	}
	for _, c := range s.shortens[len(s.ep.Turns)] {
		s.after = append(s.after, *c)
	}
	return s.steps
}

func (s *atifSteps) add(step *atifStep) {
	s.open = nil
	step.StepID = len(s.steps) + 1
	s.steps = append(s.steps, step)
}

func harnessExtra(m *episode.Message) map[string]any {
	if !m.Harness {
		return nil
	}
	return map[string]any{"harness": true}
}

// agent adds the step of what the model said, or of words that the harness put into its mouth.
func (s *atifSteps) agent(i int, m *episode.Message) {
	turn, played := s.turnOf[i]
	if played {
		s.shortened(turn)
	}
	step := &atifStep{Source: "agent", Message: m.Content, ReasoningContent: m.Reasoning, Extra: harnessExtra(m)}
	if played {
		t := &s.ep.Turns[turn]
		step.Timestamp, step.ModelName, step.ReasoningEffort = isoTime(t.Started), cmp.Or(t.Model, s.ep.Model), s.ep.Sampling.ReasoningEffort
		step.LLMCallCount = new(1 + len(t.Retries))
		step.Metrics = s.metrics(turn)
	} else {
		step.IsCopiedContext, step.LLMCallCount, step.ReasoningContent = true, new(0), ""
		if m.Reasoning != "" {
			step.note("reasoning", m.Reasoning)
		}
	}
	if len(m.ReasoningDetails) > 0 {
		step.note("reasoning_details", shallow(m.ReasoningDetails))
	}
	answers := map[string]bool{}
	for n := range m.Calls {
		step.ToolCalls = append(step.ToolCalls, s.call(turn, played, &m.Calls[n]))
		answers[m.Calls[n].ID] = true
	}
	s.add(step)
	s.open, s.answers, s.turn = step, answers, turn
}

func (step *atifStep) note(key string, value any) {
	if step.Extra == nil {
		step.Extra = map[string]any{}
	}
	step.Extra[key] = value
}

// call is a call as the model made it, with how it went.
func (s *atifSteps) call(turn int, played bool, c *episode.Call) atifCall {
	parsed, whole := arguments(c.Arguments)
	call := atifCall{ToolCallID: c.ID, FunctionName: c.Name, Arguments: parsed, Extra: map[string]any{}}
	if !whole {
		call.Extra["raw_arguments"] = c.Arguments
		s.rawArguments = s.rawArguments || !isObject(c.Arguments)
	}
	if c.Cut {
		call.Extra["cut"] = true
	}
	key := callKey(turn, c.ID)
	if traces := s.callOf[key]; played && len(traces) > 0 {
		s.callOf[key] = traces[1:]
		trace := &s.ep.Calls[traces[0]]
		call.Extra["status"], call.Extra["duration_ms"] = trace.Status, float64(trace.Elapsed)/float64(time.Millisecond)
		if trace.ErrorClass != "" {
			call.Extra["error_class"] = trace.ErrorClass
		}
		if started := isoTime(trace.Started); started != "" {
			call.Extra["started"] = started
		}
		if len(trace.Coerced) > 0 || trace.Repaired || len(trace.Rewritten) > 0 {
			call.Extra["arguments"] = shallow(trace.Arguments)
		}
		var inner []any
		for _, n := range s.nested[key] {
			made := &s.ep.Calls[n]
			inner = append(inner, map[string]any{
				"tool_call_id": made.ID, "function_name": made.Name, "arguments": made.RawArguments, "status": made.Status, "result": made.Result,
			})
		}
		delete(s.nested, key)
		if len(inner) > 0 {
			call.Extra["calls"] = inner
		}
	}
	if len(call.Extra) == 0 {
		call.Extra = nil
	}
	return call
}

// result adds a tool's message to the step of its call, or as a step of its own when there is none.
func (s *atifSteps) result(m *episode.Message) {
	result := atifResult{SourceCallID: m.ToolCallID, Content: m.Content, Extra: harnessExtra(m)}
	for _, child := range s.ep.Children {
		if child.Origin != nil && child.Origin.Turn == s.turn && child.Origin.Call == m.ToolCallID && len(child.Messages) > 0 {
			result.Subagents = append(result.Subagents, atifSubagent{child.ID, episode.RootOf(child.ID)})
		}
	}
	if s.open == nil || !s.answers[m.ToolCallID] {
		s.orphans = true
		result.SourceCallID, result.Extra = "", map[string]any{"tool_call_id": m.ToolCallID, "function_name": m.Name}
		s.add(&atifStep{Source: "system", Message: "", Observation: &atifObservation{[]atifResult{result}}, Extra: harnessExtra(m)})
		return
	}
	if s.open.Observation == nil {
		s.open.Observation = &atifObservation{}
	}
	s.open.Observation.Results = append(s.open.Observation.Results, result)
}

// shortened adds a step for each compaction before a turn. It was no message of the conversation, which has all of it.
func (s *atifSteps) shortened(turn int) {
	for _, c := range s.shortens[turn] {
		step := &atifStep{Source: "system", Message: c.Summary, Extra: map[string]any{"compaction": c}}
		if c.Usage != nil {
			step.LLMCallCount = new(1)
		}
		s.add(step)
	}
}

func (s *atifSteps) metrics(turn int) *atifMetrics {
	t := &s.ep.Turns[turn]
	m := &atifMetrics{CostUSD: t.Cost}
	if u := t.Usage; u.Reported {
		m.PromptTokens, m.CompletionTokens, m.CachedTokens = &u.Prompt, &u.Completion, &u.Cached
		if u.Reasoning > 0 {
			m.Extra = map[string]any{"reasoning_tokens": u.Reasoning}
		}
	}
	if t.Tokens != nil && s.ids != "none" {
		m.CompletionTokenIDs, m.Logprobs = t.Tokens.Completion, t.Tokens.Logprobs
		if s.ids == "prompt" {
			m.PromptTokenIDs = s.ep.TokensOf(turn).Prompt
		}
	}
	if m.PromptTokens == nil && m.CostUSD == nil && m.CompletionTokenIDs == nil && m.PromptTokenIDs == nil {
		return nil
	}
	return m
}
