package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

type inspectMessage struct {
	ID         string            `json:"id"`
	Role       string            `json:"role"`
	Content    any               `json:"content"`
	Source     string            `json:"source,omitempty"`
	Metadata   map[string]any    `json:"metadata,omitempty"`
	ToolCalls  []inspectCall     `json:"tool_calls,omitempty"`
	Model      string            `json:"model,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	Function   string            `json:"function,omitempty"`
	Error      *inspectToolError `json:"error,omitempty"`
}

// inspectText and inspectReasoning are the parts of a content that is no plain text.
type inspectText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type inspectReasoning struct {
	Type      string `json:"type"`
	Reasoning string `json:"reasoning"`
}

type inspectCall struct {
	ID         string          `json:"id"`
	Function   string          `json:"function"`
	Arguments  json.RawMessage `json:"arguments"`
	ParseError string          `json:"parse_error,omitempty"`
	Type       string          `json:"type"`
}

type inspectToolError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type inspectOutput struct {
	Model      string          `json:"model"`
	Choices    []inspectChoice `json:"choices"`
	Completion string          `json:"completion"`
	Usage      *inspectUsage   `json:"usage,omitempty"`
	Time       float64         `json:"time,omitempty"`
}

type inspectChoice struct {
	Message    inspectMessage `json:"message"`
	StopReason string         `json:"stop_reason"`
}

// inspectPool has each message once that a model was sent; the events point into it.
type inspectPool struct {
	Messages []inspectMessage `json:"messages"`
	Calls    []any            `json:"calls"`
}

type inspectEvent struct {
	UUID         string         `json:"uuid"`
	Timestamp    string         `json:"timestamp"`
	WorkingStart float64        `json:"working_start"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	Event        string         `json:"event"`
}

type inspectModelEvent struct {
	inspectEvent
	Model       string          `json:"model"`
	Input       []any           `json:"input"`
	InputRefs   [][2]int        `json:"input_refs"`
	Tools       []inspectTool   `json:"tools"`
	ToolChoice  string          `json:"tool_choice"`
	Config      inspectGenerate `json:"config"`
	Output      inspectOutput   `json:"output"`
	Retries     int             `json:"retries,omitempty"`
	Completed   string          `json:"completed,omitempty"`
	WorkingTime float64         `json:"working_time"`
}

type inspectToolEvent struct {
	inspectEvent
	Type        string            `json:"type"`
	ID          string            `json:"id"`
	Function    string            `json:"function"`
	Arguments   json.RawMessage   `json:"arguments"`
	Result      string            `json:"result"`
	Truncated   []int             `json:"truncated,omitempty"`
	Error       *inspectToolError `json:"error,omitempty"`
	Completed   string            `json:"completed,omitempty"`
	WorkingTime float64           `json:"working_time"`
	Failed      bool              `json:"failed,omitempty"`
	MessageID   string            `json:"message_id,omitempty"`
}

type inspectInfoEvent struct {
	inspectEvent
	Source string `json:"source"`
	Data   any    `json:"data"`
}

// inspectMessages are the messages of an episode as Inspect has them, and the events that led to them.
type inspectMessages struct {
	ep      *episode.Episode
	all     []inspectMessage
	turnOf  map[int]int
	results map[string]int // the message that answers a call, by turn and id
	calls   map[int][]int  // in the trace, by turn
	n       int            // events
	cut     bool           // some events do not tell what the model was sent
}

func newInspectMessages(ep *episode.Episode) *inspectMessages {
	m := &inspectMessages{ep: ep, all: []inspectMessage{}, turnOf: turnsByMessage(ep), results: map[string]int{}, calls: map[int][]int{}}
	failed := map[string]*inspectToolError{}
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
		if message.Role == "tool" {
			key := callKey(turn, message.ToolCallID)
			message.Error = failed[key]
			m.results[key] = i
		}
		m.all = append(m.all, message)
	}
	return m
}

func (m *inspectMessages) message(i int, from *episode.Message) inspectMessage {
	message := inspectMessage{ID: fmt.Sprintf("%s-m%d", m.ep.ID, i), Role: from.Role, Content: from.Content}
	if from.Harness {
		message.Metadata = map[string]any{"harness": true}
	}
	switch from.Role {
	case "tool":
		message.ToolCallID, message.Function = from.ToolCallID, from.Name
		return message
	case "assistant":
	default:
		if !from.Harness {
			message.Source = "input"
		}
		return message
	}
	if turn, ok := m.turnOf[i]; ok {
		message.Source, message.Model = "generate", cmp.Or(m.ep.Turns[turn].Model, m.ep.Model)
	}
	if from.Reasoning != "" {
		message.Content = []any{inspectReasoning{"reasoning", from.Reasoning}, inspectText{"text", from.Content}}
	}
	for n := range from.Calls {
		c := &from.Calls[n]
		parsed, whole := arguments(c.Arguments)
		call := inspectCall{ID: c.ID, Function: c.Name, Arguments: parsed, Type: "function"}
		if !whole && !isObject(c.Arguments) {
			call.ParseError = fmt.Sprintf("the arguments are no JSON object, or nest deeper than %d: %s", maxDepth, c.Arguments)
		}
		message.ToolCalls = append(message.ToolCalls, call)
	}
	return message
}

// toolError says in Inspect's words how a call failed; nil when it did not.
func toolError(call *episode.ToolCall) *inspectToolError {
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
	return &inspectToolError{kind, cmp.Or(call.ErrorClass, string(call.Status))}
}

// output is what the model gave in a turn.
func (m *inspectMessages) output(turn int) inspectOutput {
	t := &m.ep.Turns[turn]
	output := inspectOutput{Model: cmp.Or(t.Model, m.ep.Model), Time: t.Elapsed.Seconds(), Choices: []inspectChoice{}}
	if said := gave(m.ep, turn); said != nil {
		output.Choices = []inspectChoice{{m.all[t.Message], stopReason(t.FinishReason)}}
		output.Completion = said.Content
	}
	if t.Usage.Reported {
		output.Usage = new(newInspectUsage(t.Usage))
		output.Usage.TotalCost = t.Cost
	}
	return output
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

// events are the exchanges with the model and the calls of tools, in their order.
func (m *inspectMessages) events() ([]any, inspectPool) {
	events := []any{}
	sent := inspectSent{pool: newPool(m.ep)}
	shortens := compactionsByTurn(m.ep)
	for i := range m.ep.Turns {
		t := &m.ep.Turns[i]
		for _, c := range shortens[i] {
			events = append(events, inspectInfoEvent{m.event("info", t.Started), "trajgen", map[string]any{"compaction": c}})
		}
		event := inspectModelEvent{
			inspectEvent: m.event("model", t.Started), Model: cmp.Or(t.Model, m.ep.Model), Input: []any{}, InputRefs: sent.refs(i),
			Tools: []inspectTool{}, ToolChoice: "auto", Config: newInspectGenerate(m.ep.Sampling), Output: m.output(i), Retries: len(t.Retries),
			WorkingTime: (t.Elapsed - min(t.Waited, t.Elapsed)).Seconds(),
		}
		if i == 0 {
			event.Tools = newInspectTools(m.ep.Tools)
		} else if len(m.ep.Tools) > 0 {
			event.Metadata = map[string]any{"tools": "as in the first model event"}
		}
		if !t.Started.IsZero() {
			event.Completed = inspectTime(t.Started.Add(t.Elapsed))
		}
		events = append(events, event)
		for _, n := range m.calls[i] {
			events = append(events, m.toolEvent(&m.ep.Calls[n]))
		}
	}
	if m.ep.Fault != nil {
		events = append(events, struct {
			inspectEvent
			Error *inspectFault `json:"error"`
		}{m.event("error", m.ep.Started.Add(m.ep.Elapsed)), newInspectFault(m.ep.Fault)})
	}
	pooled := inspectPool{Messages: slices.Clone(m.all), Calls: []any{}}
	m.cut = sent.told > inspectRanges
	for i := len(m.all); i < len(sent.messages); i++ {
		pooled.Messages = append(pooled.Messages, m.message(i, &sent.messages[i]))
	}
	return events, pooled
}

func (m *inspectMessages) event(kind string, at time.Time) inspectEvent {
	m.n++
	event := inspectEvent{UUID: fmt.Sprintf("%s-e%d", m.ep.ID, m.n), Event: kind, Timestamp: inspectTime(cmpTime(at, m.ep.Started))}
	if !at.IsZero() && at.After(m.ep.Started) {
		event.WorkingStart = at.Sub(m.ep.Started).Seconds()
	}
	return event
}

func (m *inspectMessages) toolEvent(call *episode.ToolCall) inspectToolEvent {
	given := string(call.Arguments)
	if given == "" {
		given = call.RawArguments
	}
	parsed, _ := arguments(given)
	event := inspectToolEvent{
		inspectEvent: m.event("tool", call.Started), Type: "function", ID: call.ID, Function: call.Name, Arguments: parsed, Result: call.Result,
		Error: toolError(call), WorkingTime: call.Elapsed.Seconds(),
	}
	event.Failed = event.Error != nil
	event.Metadata = map[string]any{"status": call.Status, "raw_arguments": call.RawArguments, "sandbox_time": call.SandboxTime.Seconds()}
	if call.Parent != "" {
		event.Metadata["parent"] = call.Parent
	}
	if call.Truncated {
		event.Truncated = []int{call.ResultBytes, len(call.Result)}
	}
	if !call.Started.IsZero() {
		event.Completed = inspectTime(call.Started.Add(call.Elapsed))
	}
	if i, ok := m.results[callKey(call.Turn, call.ID)]; ok && call.Parent == "" {
		event.MessageID = m.all[i].ID
	}
	return event
}
