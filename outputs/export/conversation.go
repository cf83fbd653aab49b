package export

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// What formats of conversations leave out, and why they refuse an episode.
const (
	noteShortened = "episodes whose conversation was shortened on its way to the model; the rows have all of it"
	noteReasoning = "episodes whose reasoning was left out, since --set reasoning=drop"
	notePrefilled = "episodes with assistant messages of the dataset or the harness, which are trained on like the model's (--without-harness leaves the harness's out)"
	noteDetails   = "episodes with encrypted or signed reasoning, for which the format has no place"

	refuseSilent  = "no assistant message"
	refuseRole    = "a message of a role that the format does not have"
	refuseResult  = "a result without its call"
	refuseCall    = "a call without its result"
	refuseCallID  = "calls of one turn without ids of their own"
	refuseThought = "reasoning with </think> in it"

	refuseArguments = "arguments that are no JSON object, in whose place none was sent back to the model"
	noteResent      = "episodes with arguments that are no JSON object, in whose place stands what was sent back to the model"
)

// conversation checks what formats of chat messages need: messages of the four roles, one of them the model's, and each
// result right behind the turn that has its call, with one result for each call. Only the last turn's calls may have none.
func conversation(ep *episode.Episode) error {
	messages := ep.Messages
	if len(ep.Spoken()) == 0 {
		return &Refusal{refuseSilent}
	}
	open := map[string]bool{} // calls of the turn that are not answered
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case "tool":
			if !open[m.ToolCallID] {
				return &Refusal{refuseResult}
			}
			delete(open, m.ToolCallID)
			continue
		case "system", "user", "assistant":
		default:
			return &Refusal{refuseRole}
		}
		if len(open) > 0 {
			return &Refusal{refuseCall}
		}
		for _, call := range m.Calls {
			if m.Role != "assistant" || call.ID == "" || open[call.ID] {
				return &Refusal{refuseCallID}
			}
			open[call.ID] = true
		}
	}
	if len(open) > 0 && messages[len(messages)-1].Role == "tool" {
		return &Refusal{refuseCall}
	}
	return nil
}

// failedTurns are the messages of the model with a call that failed.
func failedTurns(ep *episode.Episode) map[int]bool {
	failed := map[int]bool{}
	for i := range ep.Calls {
		call := &ep.Calls[i]
		if call.Parent == "" && call.Status != episode.CallOK && call.Turn >= 0 && call.Turn < len(ep.Turns) {
			failed[ep.Turns[call.Turn].Message] = true
		}
	}
	return failed
}

// remark notes what of an episode's conversation its messages do not tell.
func (n notes) remark(ep *episode.Episode) {
	if slices.ContainsFunc(ep.Compactions, func(c episode.Compaction) bool {
		return c.Failed == "" && c.Turn < len(ep.Turns) && (c.To > c.From || len(c.Replaced) > 0)
	}) {
		n[noteShortened]++
	}
	if slices.ContainsFunc(ep.Messages, func(m episode.Message) bool { return len(m.ReasoningDetails) > 0 }) {
		n[noteDetails]++
	}
}

// remarkPrefill notes words that others put into the model's mouth, for formats that cannot tell them from the model's. What
// stands before from is not trained on.
func (n notes) remarkPrefill(ep *episode.Episode, from int) {
	spoken := ep.Spoken()
	for i := from; i < len(ep.Messages); i++ {
		if ep.Messages[i].Role == "assistant" && !spoken[i] {
			n[notePrefilled]++
			return
		}
	}
}

// reasons says whether a message of the episode has reasoning.
func reasons(ep *episode.Episode) bool {
	return slices.ContainsFunc(ep.Messages, func(m episode.Message) bool { return m.Reasoning != "" })
}

// argumentsOf are the arguments of a call as they stand in a row. Values are objects: where the model's are none, what was
// sent back to it in their place.
func argumentsOf(c *episode.Call, values bool) (string, error) {
	switch {
	case !values, isObject(c.Arguments):
		return c.Arguments, nil
	case isObject(c.Sent):
		return c.Sent, nil
	}
	return "", &Refusal{refuseArguments}
}

// remarkResent notes arguments that stand as they were sent back and not as the model made them.
func (n notes) remarkResent(ep *episode.Episode) {
	if slices.ContainsFunc(ep.Messages, func(m episode.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c episode.Call) bool { return !isObject(c.Arguments) })
	}) {
		n[noteResent]++
	}
}

// isObject says whether a text is a JSON object that stands in a document as what it says.
func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\n\r"), "{") && !deep(text) && json.Valid([]byte(text))
}

// asObject is a JSON object, or nil when the text is something else.
func asObject(text []byte) json.RawMessage {
	if !isObject(string(text)) {
		return nil
	}
	return text
}

// maxDepth is how deep JSON of strangers may nest in a document: parsers of those who read it give up, or die, at some
// depth, and with them the whole file. What is deeper stands as a text.
const maxDepth = 100

func deep(text string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// shallow is JSON as it stands in a document.
func shallow(raw json.RawMessage) json.RawMessage {
	if deep(string(raw)) {
		return quoted(string(raw))
	}
	return raw
}

// withThinking is the content of a message behind its reasoning in <think> tags.
func withThinking(m *episode.Message) (string, error) {
	if m.Reasoning == "" || m.Role != "assistant" {
		return m.Content, nil
	}
	if strings.Contains(m.Reasoning, "</think>") {
		return "", &Refusal{refuseThought}
	}
	if m.Content == "" {
		return "<think>\n" + m.Reasoning + "\n</think>", nil
	}
	return "<think>\n" + m.Reasoning + "\n</think>\n\n" + m.Content, nil
}

// opening is the index of the model's first message; there is one.
func opening(ep *episode.Episode) int { return slices.Min(slices.Collect(maps.Keys(ep.Spoken()))) }

func shallowAll(raw []json.RawMessage) []json.RawMessage {
	all := slices.Clone(raw)
	for i := range all {
		all[i] = shallow(all[i])
	}
	return all
}
