package export

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// inspectMessages are the messages of an episode as Inspect has them, and the events that led to them.
type inspectMessages struct {
	ep      *episode.Episode
	all     []object
	turnOf  map[int]int
	results map[string]int // the message that answers a call, by turn and id
	calls   map[int][]int  // in the trace, by turn
	n       int            // events
	span    string         // of a subagent
	began   time.Time      // the sample
	cut     bool           // some events do not tell what the model was sent
}

func newInspectMessages(ep *episode.Episode) *inspectMessages {
	m := &inspectMessages{
		ep: ep, began: ep.Started, all: []object{}, turnOf: turnsByMessage(ep), results: map[string]int{}, calls: map[int][]int{},
	}
	failed := map[string]object{}
	for i := range ep.Calls {
		call := &ep.Calls[i]
		m.calls[call.Turn] = append(m.calls[call.Turn], i)
		if call.Parent == "" {
			failed[callKey(call.Turn, call.ID)] = toolError(call)
		}
	}
	turn := -1
	for i := range ep.Messages {
		if t, ok := m.turnOf[i]; ok {
			turn = t
		}
		message := m.message(i, &ep.Messages[i])
		if ep.Messages[i].Role == "tool" {
			key := callKey(turn, ep.Messages[i].ToolCallID)
			message = append(message, field{"error", some(failed[key])})
			m.results[key] = i
		}
		m.all = append(m.all, message)
	}
	return m
}

func (m *inspectMessages) id(message int) string { return fmt.Sprintf("%s-m%d", m.ep.ID, message) }

func (m *inspectMessages) message(i int, from *episode.Message) object {
	content, source, model := inspectContent(from), "", ""
	if turn, ok := m.turnOf[i]; ok && from.Role == "assistant" {
		source, model = "generate", cmp.Or(m.ep.Turns[turn].Model, m.ep.Model)
	} else if !from.Harness && from.Role != "assistant" && from.Role != "tool" {
		source = "input"
	}
	var metadata object
	if from.Harness {
		metadata = object{{"harness", true}}
	}
	if from.Role == "assistant" && from.Reasoning != "" {
		content = []object{{{"type", "reasoning"}, {"reasoning", from.Reasoning}}, {{"type", "text"}, {"text", from.Content}}}
	}
	message := object{
		{"id", m.id(i)}, {"role", from.Role}, {"content", content}, {"source", some(source)}, {"metadata", some(metadata)},
	}
	switch from.Role {
	case "tool":
		return append(message, object{{"tool_call_id", some(from.ToolCallID)}, {"function", some(from.Name)}}...)
	case "assistant":
		return append(message, object{{"tool_calls", some(inspectCalls(from.Calls))}, {"model", some(model)}}...)
	}
	return message
}

func inspectCalls(calls []episode.Call) (list []object) {
	for i := range calls {
		call, problem := &calls[i], ""
		parsed, whole := arguments(call.Arguments)
		if !whole && !isObject(call.Arguments) {
			problem = fmt.Sprintf("the arguments are no JSON object, or nest deeper than %d: %s", maxDepth, call.Arguments)
		}
		list = append(list, object{
			{"id", call.ID}, {"function", call.Name}, {"arguments", parsed}, {"parse_error", some(problem)}, {"type", "function"},
		})
	}
	return list
}

// toolError says in Inspect's words how a call failed; nil when it did not.
func toolError(call *episode.ToolCall) object {
	kind := "unknown"
	switch call.Status {
	case episode.CallOK, "":
		return nil
	case episode.CallTimeout:
		kind = "timeout"
	case episode.CallDenied:
		kind = "approval"
	case episode.CallInvalidArguments, episode.CallUnknownTool:
		kind = "parsing"
	default:
		known := []string{"timeout", "unicode_decode", "permission", "file_not_found", "is_a_directory", "limit", "cancelled"}
		if slices.Contains(known, call.ErrorClass) {
			kind = call.ErrorClass
		}
	}
	return object{{"type", kind}, {"message", cmp.Or(call.ErrorClass, string(call.Status))}}
}

// output is what the model gave in a turn.
func (m *inspectMessages) output(turn int) object {
	t := &m.ep.Turns[turn]
	choices, completion, usage := []object{}, "", any(nil)
	if said := gave(m.ep, turn); said != nil {
		choices, completion = []object{{{"message", m.all[t.Message]}, {"stop_reason", stopReason(t.FinishReason)}}}, said.Content
	}
	if t.Usage.Reported {
		used := newInspectUsage(t.Usage)
		used.TotalCost = t.Cost
		usage = used
	}
	return object{
		{"model", cmp.Or(t.Model, m.ep.Model)},
		{"choices", choices},
		{"completion", completion},
		{"usage", usage},
		{"time", some(t.Elapsed.Seconds())},
	}
}

func stopReason(finish string) string {
	switch finish {
	case "stop", "tool_calls", "content_filter":
		return finish
	case "length":
		return "max_tokens"
	case "function_call":
		return "tool_calls"
	}
	return "unknown"
}

// events are the exchanges with the model and the calls of tools, in their order. They point into the pool, which has each
// message once that a model was sent. A subagent's events stand in a span behind the call that began it.
func (m *inspectMessages) events() (events []object, pool object) {
	events, messages := m.eventsAt(0)
	return events, object{{"messages", messages}, {"calls", []any{}}}
}

// eventsAt are events that point into a pool in which their messages stand behind so many others.
func (m *inspectMessages) eventsAt(base int) (events, messages []object) {
	events = []object{}
	sent := inspectSent{pool: newPool(m.ep)}
	shortens := compactionsByTurn(m.ep)
	refs := make([][][2]int, len(m.ep.Turns))
	for i := range refs {
		refs[i] = sent.refs(i)
		for j := range refs[i] {
			refs[i][j][0], refs[i][j][1] = refs[i][j][0]+base, refs[i][j][1]+base
		}
	}
	m.cut = sent.written > inspectRanges
	messages = slices.Clone(m.all)
	for i := len(m.all); i < len(sent.messages); i++ {
		messages = append(messages, m.message(i, &sent.messages[i]))
	}
	for i := range m.ep.Turns {
		for _, c := range shortens[i] {
			event := m.event("info", m.ep.Turns[i].Started, nil)
			events = append(events, append(event, object{{"source", "trajgen"}, {"data", object{{"compaction", c}}}}...))
		}
		events = append(events, m.modelEvent(i, refs[i]))
		for _, n := range m.calls[i] {
			call := &m.ep.Calls[n]
			events = append(events, m.toolEvent(call))
			for _, child := range m.ep.Children {
				if o := child.Origin; o != nil && o.Turn == call.Turn && o.Call == call.ID && call.Parent == "" {
					inner, more := m.subagent(child, base+len(messages))
					events, messages = append(events, inner...), append(messages, more...)
				}
			}
		}
	}
	if m.ep.Fault != nil {
		event := m.event("error", m.ep.Started.Add(m.ep.Elapsed), nil)
		events = append(events, append(event, field{"error", inspectFault(m.ep.Fault)}))
	}
	return events, messages
}

// subagent is the span of a subagent.
func (m *inspectMessages) subagent(child *episode.Episode, base int) (events, messages []object) {
	s := newInspectMessages(child)
	s.span, s.began = child.ID, m.began
	events, messages = s.eventsAt(base)
	m.cut = m.cut || s.cut
	metadata := object{{"role", child.Origin.Role}, {"outcome", child.Outcome}, {"stop", child.Stop}}
	begin := append(s.event("span_begin", child.Started, metadata), object{
		{"id", child.ID}, {"parent_id", some(m.span)}, {"type", "agent"}, {"name", "subagent"},
	}...)
	end := append(s.event("span_end", child.Started.Add(child.Elapsed), nil), field{"id", child.ID})
	return slices.Concat([]object{begin}, events, []object{end}), messages
}

// event is what all events have.
func (m *inspectMessages) event(kind string, at time.Time, metadata object) object {
	m.n++
	start := 0.0
	if !at.IsZero() && at.After(m.began) {
		start = at.Sub(m.began).Seconds()
	}
	return object{
		{"uuid", fmt.Sprintf("%s-e%d", m.ep.ID, m.n)},
		{"timestamp", inspectTime(cmpTime(at, m.ep.Started))},
		{"working_start", start},
		{"metadata", some(metadata)},
		{"event", kind},
		{"span_id", some(m.span)},
	}
}

// completed is when an event was over, where it is known when it began.
func completed(started time.Time, elapsed time.Duration) any {
	if started.IsZero() {
		return nil
	}
	return inspectTime(started.Add(elapsed))
}

func (m *inspectMessages) modelEvent(turn int, refs [][2]int) object {
	t := &m.ep.Turns[turn]
	tools, metadata := []object{}, object(nil)
	if turn == 0 {
		tools = newInspectTools(m.ep.Tools)
	} else if len(m.ep.Tools) > 0 {
		metadata = object{{"tools", "as in the first model event"}}
	}
	return append(m.event("model", t.Started, metadata), object{
		{"model", cmp.Or(t.Model, m.ep.Model)},
		{"input", []any{}},
		{"input_refs", refs},
		{"tools", tools},
		{"tool_choice", "auto"},
		{"config", newInspectGenerate(m.ep.Sampling)},
		{"output", m.output(turn)},
		{"retries", some(len(t.Retries))},
		{"completed", completed(t.Started, t.Elapsed)},
		{"working_time", (t.Elapsed - min(t.Waited, t.Elapsed)).Seconds()},
	}...)
}

func (m *inspectMessages) toolEvent(call *episode.ToolCall) object {
	parsed, _ := arguments(cmp.Or(string(call.Arguments), call.RawArguments))
	metadata := object{
		{"parent", some(call.Parent)}, {"raw_arguments", call.RawArguments}, {"sandbox_time", call.SandboxTime.Seconds()}, {"status", call.Status},
	}
	var truncated []int
	if call.Truncated {
		truncated = []int{call.ResultBytes, len(call.Result)}
	}
	message := ""
	if i, ok := m.results[callKey(call.Turn, call.ID)]; ok && call.Parent == "" {
		message = m.id(i)
	}
	failed := toolError(call)
	return append(m.event("tool", call.Started, metadata), object{
		{"type", "function"},
		{"id", call.ID},
		{"function", call.Name},
		{"arguments", parsed},
		{"result", call.Result},
		{"truncated", some(truncated)},
		{"error", some(failed)},
		{"completed", completed(call.Started, call.Elapsed)},
		{"working_time", call.Elapsed.Seconds()},
		{"failed", some(failed != nil)},
		{"message_id", some(message)},
	}...)
}
