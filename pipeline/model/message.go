package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/rawtext"
)

// This file turns a draft into a message, and keeps the original of each field that it changes.

func (d *draft) note(format string, args ...any) {
	d.repairs = append(d.repairs, fmt.Sprintf(format, args...))
}

// keep keeps the original of a field that our message changes or leaves out.
func (d *draft) keep(name string, value []byte) {
	d.kept = append(d.kept, episode.Member{Name: name, Value: value})
}

// raw is the kept fields as JSON, see episode.Turn.
func (d *draft) raw() string {
	if d.kept == nil {
		return ""
	}
	return strings.ToValidUTF8(string(episode.Object(d.kept)), "\uFFFD")
}

// texts fills in content, refusal and reasoning.
func (d *draft) texts(m *episode.Message) {
	m.Role, m.Content, m.ReasoningDetails = "assistant", d.content.String(), d.details.list()
	if d.content.damaged(m.Content) {
		d.note("invalid characters: content")
		d.keep("content", d.content)
	}
	switch refused := d.refused.String(); {
	case refused == "":
	case m.Content == "":
		m.Content = refused
		d.note("refusal")
		if d.refused.damaged(refused) {
			d.note("invalid characters: refusal")
			d.keep("refusal", d.refused)
		}
	default:
		d.note("refusal beside the content")
		d.keep("refusal", d.refused)
	}
	for i, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		thinking := d.reasonings[i].String()
		switch {
		case m.Reasoning == "":
			m.Reasoning = thinking
			if d.reasonings[i].damaged(thinking) {
				d.note("invalid characters: %s", name)
				d.keep(name, d.reasonings[i])
			}
		case name == "reasoning" && thinking != "" && thinking != m.Reasoning:
			d.note("another reasoning")
			d.keep(name, d.reasonings[i])
		}
	}
}

// damaged reports whether decoding replaced invalid characters, such as half of a surrogate pair.
func (t wireText) damaged(text string) bool {
	n := strings.Count(text, "\uFFFD")
	return n > 0 && n != bytes.Count(t, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(t), []byte(`\ufffd`))
}

// keepContent keeps the content, or the refusal that took its place, unless it is kept already.
func (d *draft) keepContent() {
	kept := "" // these two are the first
	if len(d.kept) > 0 {
		kept = d.kept[0].Name
	}
	switch {
	case kept == "content", kept == "refusal" && len(d.content) <= len(`""`):
	case len(d.content) > len(`""`):
		d.keep("content", d.content)
	default:
		d.keep("refusal", d.refused)
	}
}

// think moves think blocks from the start of the content to the reasoning. A server that gives a reasoning has already removed
// a block that began in the prompt.
func (d *draft) think(m *episode.Message, lone rawtext.Lone) {
	if m.Reasoning != "" {
		lone = rawtext.LoneText
	}
	thinking, content, found := rawtext.SplitThinking(m.Content, lone)
	if found == "" {
		return
	}
	d.keepContent()
	d.note("%s", found)
	if m.Reasoning != "" && thinking != "" {
		thinking = m.Reasoning + "\n\n" + thinking
	}
	m.Reasoning, m.Content = cmp.Or(thinking, m.Reasoning), content
}

// finishedCalls orders the calls. messages is the number of messages in the request, from which calls without an id get one.
func (d *draft) finishedCalls(messages int) []episode.Call {
	if len(d.calls) == 0 {
		return nil
	}
	order := slices.Clone(d.calls)
	slices.SortStableFunc(order, func(a, b *draftCall) int { return cmp.Compare(a.index, b.index) })
	calls := make([]episode.Call, len(order))
	var damaged []map[string]json.RawMessage
	for i, c := range order {
		calls[i] = episode.Call{ID: c.id, Name: c.name, Arguments: c.args.String()}
		if c.args.damaged(calls[i].Arguments) {
			d.note("invalid characters: %s", c.name)
			damaged = append(damaged, map[string]json.RawMessage{"name": episode.MustJSON(c.name), "arguments": json.RawMessage(c.args)})
		}
	}
	if damaged != nil {
		list, _ := json.Marshal(damaged) // of valid JSON
		d.keep("tool_calls", list)
	}
	d.repairs = append(d.repairs, identify(calls, messages, "")...)
	return calls
}

// lostCall finds finish reasons of calls, and of calls that the server could not read.
var lostCall = regexp.MustCompile(`(?i)^(tool_?calls?|tool_use|function_?call|unexpected_tool_call|too_many_tool_calls)$|malformed`)

// lost reports whether the model made a call that is missing from the message.
func (d *draft) lost() bool {
	native := d.service.NativeFinishReason
	return d.oldCall || lostCall.MatchString(d.finish) || strings.Contains(strings.ToLower(native), "malformed")
}

func (d *draft) loss() string {
	if d.oldCall || d.finish == "function_call" {
		return "the server answers with a function_call, the form before tool_calls, which it was not asked for"
	}
	return fmt.Sprintf("the reply has no call, and ended with finish reason %q", cmp.Or(d.finish, d.service.NativeFinishReason))
}
