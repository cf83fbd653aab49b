package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// ShareGPT is what the conversation of a ShareGPT row says.
type ShareGPT struct {
	System   string            // the words before those about the tools, where Hermes's own system prompt is not the whole of it
	Tools    []json.RawMessage // as {name, description, parameters, required}
	Messages []episode.Message // without the first system message; ids of calls are known where they have results
}

// ReadShareGPT parses the turns of a row in the envelope of Hermes.
func ReadShareGPT(turns []ShareGPTTurn) (c ShareGPT, err error) {
	if len(turns) == 0 || turns[0].From != "system" {
		return c, errors.New("no system turn (want one first, with the list of tools)")
	}
	if c.System, c.Tools, err = readSystem(turns[0].Value); err != nil {
		return c, fmt.Errorf("turn 0: %w", err)
	}
	for i, turn := range turns[1:] {
		last := len(c.Messages) - 1
		switch turn.From {
		case "human":
			c.Messages = append(c.Messages, episode.Message{Role: "user", Content: turn.Value})
		case "gpt":
			m, err := readSaid(turn.Value)
			if err != nil {
				return c, fmt.Errorf("turn %d: %w", i+1, err)
			}
			c.Messages = append(c.Messages, m)
		case "tool":
			if last < 0 || c.Messages[last].Role != "assistant" {
				return c, fmt.Errorf("turn %d: results behind no turn of gpt", i+1)
			}
			results, err := readResults(turn.Value, c.Messages[last].Calls)
			if err != nil {
				return c, fmt.Errorf("turn %d: %w", i+1, err)
			}
			c.Messages = append(c.Messages, results...)
		default:
			return c, fmt.Errorf("turn %d is from %q (want human, gpt or tool)", i+1, turn.From)
		}
	}
	return c, nil
}

func readSystem(value string) (system string, tools []json.RawMessage, err error) {
	from := strings.LastIndex(value, sharegptPreamble)
	if from >= 0 {
		system = strings.TrimSuffix(value[:from], "\n\n")
		value = value[from:]
	}
	_, rest, ok := strings.Cut(value, "<tools>\n")
	list, _, ok2 := strings.Cut(rest, "\n</tools>")
	if !ok || !ok2 {
		return "", nil, errors.New("no list of tools between <tools> and </tools>, on lines of their own")
	}
	if err := json.Unmarshal([]byte(list), &tools); err != nil {
		return "", nil, fmt.Errorf("the list of tools is not a JSON list: %w", err)
	}
	return system, tools, nil
}

// readSaid parses a turn of gpt.
func readSaid(value string) (episode.Message, error) {
	m := episode.Message{Role: "assistant"}
	rest, ok := strings.CutPrefix(value, openThink)
	if !ok {
		return m, errors.New("gpt's turn does not begin with <think> and a line break")
	}
	if after, empty := strings.CutPrefix(rest, closeThink); empty {
		rest = after
	} else if m.Reasoning, rest, ok = strings.Cut(rest, "\n"+closeThink); !ok {
		return m, errors.New("<think> without </think> at the beginning of a line")
	}
	rest = strings.TrimPrefix(rest, "\n")
	blocks, found := strings.CutPrefix(rest, openCall)
	if !found {
		m.Content, blocks, found = strings.Cut(rest, "\n"+openCall)
	}
	for _, tag := range envelope {
		if strings.Contains(m.Reasoning, tag) || strings.Contains(m.Content, tag) {
			return m, fmt.Errorf("%s in the plain text of gpt's turn", tag)
		}
	}
	if !found {
		return m, nil
	}
	bodies, err := split(blocks, openCall, closeCall)
	if err != nil {
		return m, err
	}
	for _, body := range bodies {
		var call sharegptCall
		if err := json.Unmarshal([]byte(body), &call); err != nil {
			return m, fmt.Errorf("a <tool_call> that is not a JSON object with name and arguments: %w", err)
		}
		m.Calls = append(m.Calls, episode.Call{Name: call.Name, Arguments: unquoted(call.Arguments)})
	}
	return m, nil
}

// readResults parses a turn of results, and gives the calls their ids.
func readResults(value string, calls []episode.Call) ([]episode.Message, error) {
	blocks, ok := strings.CutPrefix(value, openResponse)
	if !ok {
		return nil, errors.New("a turn of results does not begin with <tool_response> and a line break")
	}
	bodies, err := split(blocks, openResponse, closeResponse)
	if err != nil {
		return nil, err
	}
	if len(bodies) != len(calls) {
		return nil, fmt.Errorf("%d results of %d calls; they are paired by their places", len(bodies), len(calls))
	}
	var messages []episode.Message
	for i, body := range bodies {
		var response sharegptResponse
		if err := json.Unmarshal([]byte(body), &response); err != nil {
			return nil, fmt.Errorf("a <tool_response> that is not a JSON object: %w", err)
		}
		calls[i].ID = response.ToolCallID
		messages = append(messages, episode.Message{
			Role: "tool", ToolCallID: response.ToolCallID, Name: response.Name, Content: unquoted(response.Content),
		})
	}
	return messages, nil
}

// split parts blocks between tags, the first of which is gone already.
func split(blocks, open, end string) (bodies []string, err error) {
	for {
		body, rest, ok := strings.Cut(blocks, end)
		if !ok {
			return nil, fmt.Errorf("%s without %s", strings.TrimSpace(open), strings.TrimSpace(end))
		}
		bodies = append(bodies, body)
		if rest == "" {
			return bodies, nil
		}
		if blocks, ok = strings.CutPrefix(rest, "\n"+open); !ok {
			return nil, fmt.Errorf("something else than %s behind %s", strings.TrimSpace(open), strings.TrimSpace(end))
		}
	}
}

// unquoted is a text that stands as a JSON text, and the JSON of everything else.
func unquoted(value json.RawMessage) string {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// same holds that a row reads back as what the episode has, as far as the format carries it.
func (w sharegptWay) same(written *sharegptRow, ep *episode.Episode) error {
	var row sharegptRow
	bare := *written
	bare.Images = nil // what is marked for them is in the turns
	text, err := encode(bare)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return &Refusal{"a row that is not JSON"}
	}
	got, err := ReadShareGPT(row.Conversations)
	if err != nil {
		return &Refusal{"a row that breaks the envelope"}
	}
	want := slices.Clone(ep.Messages)
	for i := range want {
		if n := results(want[i+1:]); want[i].Role == "assistant" {
			copy(want[i+1:], byCall(want[i].Calls, want[i+1:i+1+n]))
		}
		if want[i].Role == "user" {
			want[i].Content, _ = w.heard(&want[i]) // which turns has refused
		}
	}
	if want[0].Role == "system" {
		want = want[1:]
	}
	if w.own && got.System != systemOf(ep) || !w.own && got.System != "" || !slices.EqualFunc(ep.Tools, got.Tools, sameTool) ||
		!slices.EqualFunc(want, got.Messages, sameMessage) {
		return &Refusal{"a row that does not read back the same"}
	}
	return nil
}

func sameTool(want, got json.RawMessage) bool {
	f, err := functionOf(want)
	if err != nil {
		return false
	}
	text, err := json.Marshal(sharegptTool{function: f})
	return err == nil && sameJSON(string(text), string(got))
}

func sameMessage(want, got episode.Message) bool {
	same := want.Content == got.Content
	if want.Role == "tool" && isContainer(want.Content) {
		same = sameJSON(want.Content, got.Content)
	}
	return same && want.Role == got.Role && want.Reasoning == got.Reasoning && want.ToolCallID == got.ToolCallID &&
		slices.EqualFunc(want.Calls, got.Calls, sameCall)
}

func sameCall(want, got episode.Call) bool {
	arguments := want.Arguments == got.Arguments
	if isObject(want.Arguments) {
		arguments = sameJSON(want.Arguments, got.Arguments)
	}
	return arguments && want.Name == got.Name && (got.ID == "" || want.ID == got.ID)
}

// sameJSON compares what two texts say, numbers digit by digit.
func sameJSON(a, b string) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(a)) == nil && compact.String() == b {
		return true
	}
	var values [2]any
	for i, text := range []string{a, b} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// The most that CheckShareGPT reads in one line, and says in all.
const (
	maxShareGPTLine = 1 << 30
	maxShareGPTSaid = 100
)

// CheckShareGPT reads a file of ShareGPT rows as Hermes writes them, and says everything that is wrong with it, by line.
func CheckShareGPT(r io.Reader) (rows int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxShareGPTLine)
	var errs []error
	for n := 1; lines.Scan() && len(errs) < maxShareGPTSaid; n++ {
		rows++
		if err := checkShareGPTRow(lines.Bytes()); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		}
	}
	return rows, errors.Join(append(errs, lines.Err())...)
}

func checkShareGPTRow(line []byte) error {
	var keys map[string]json.RawMessage
	var row sharegptRow
	if err := json.Unmarshal(line, &keys); err != nil {
		return fmt.Errorf("no JSON object: %w", err)
	}
	var errs []error
	for _, key := range []string{"prompt_index", "conversations", "metadata", "completed", "partial", "api_calls", "toolsets_used", "tool_stats", "tool_error_counts"} {
		if _, ok := keys[key]; !ok {
			errs = append(errs, fmt.Errorf("no %s", key))
		}
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, name := range sortedKeys(row.ToolStats) {
		n := row.ToolStats[name]
		if n.Count != n.Success+n.Failure || row.ToolErrors[name] != n.Failure {
			errs = append(errs, fmt.Errorf("tool %q: %d calls, %d successes, %d failures, %d in tool_error_counts", name, n.Count, n.Success, n.Failure, row.ToolErrors[name]))
		}
	}
	marked := 0
	for _, turn := range row.Conversations {
		marked += strings.Count(turn.Value, imageMark)
	}
	if row.Images != nil && marked != len(row.Images) {
		errs = append(errs, fmt.Errorf("%d images, and %s stands %d times in the turns", len(row.Images), imageMark, marked))
	}
	_, err := ReadShareGPT(row.Conversations)
	return errors.Join(append(errs, err)...)
}
