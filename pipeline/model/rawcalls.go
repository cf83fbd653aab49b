package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/rawtext"
)

// The values of Config.ToolFormat beside the names of rawtext.Formats.
const (
	// ToolFormatNative accepts only the server's own tool calls, and leaves every content unchanged.
	ToolFormatNative = "native"
	// ToolFormatAuto chooses the format by the model's name or by the content, and only reads calls that cannot be plain text.
	ToolFormatAuto = "auto"
)

// checkToolFormat refuses an unknown format.
func checkToolFormat(format string) error {
	names := append([]string{ToolFormatAuto, ToolFormatNative}, rawtext.Formats()...)
	if format != "" && !slices.Contains(names, format) {
		return fmt.Errorf("tool format is %q (want one of %s)", format, strings.Join(names, ", "))
	}
	return nil
}

// readRawCalls moves calls that the server did not parse out of the content, if tools were offered and the server returned no
// calls itself. The error means that a call stays in the content, which is then not an answer.
func (r *reader) readRawCalls(req *Request, m *episode.Message, d *draft) error {
	format, auto := r.cfg.ToolFormat, r.cfg.ToolFormat == ToolFormatAuto // which only reads calls that cannot be plain text
	if len(req.Tools) == 0 || len(m.Calls) > 0 || format == ToolFormatNative {
		return nil
	}
	if auto {
		format = rawtext.Detect(r.cfg.Name)
	}
	ended := d.finish != "" && d.finish != "length"
	var read rawtext.Result
	if format != "" && (!auto || rawtext.Opens(format, m.Content)) {
		read = rawtext.Parser{Format: format, Tools: req.Tools, Ended: ended}.Calls(m.Content)
		d.repairs = append(d.repairs, read.Repairs...)
	}
	if len(read.Calls) == 0 {
		found := rawtext.Find(m.Content, req.Tools, ended)
		switch {
		case found.Format != "" && auto:
			format, read = found.Format, found.Result
			d.repairs = append(d.repairs, read.Repairs...)
		case d.finish == "length": // a reply that was cut is not an answer anyway
		case found.Format != "":
			return r.unread(found.Calls[0].Name, fmt.Sprintf("it is in the format %s: set tool_format to that or to auto", found.Format))
		case found.Unread != "":
			return r.unread(found.Unread, "start the server with the parser of its model's calls; tool_format: native takes such texts for answers")
		}
	}
	if len(read.Calls) == 0 {
		return nil
	}
	d.keepContent()
	d.repairs = slices.Insert(d.repairs, 0, "parsed:"+format)
	m.Content = read.Content
	for _, call := range read.Calls {
		m.Calls = append(m.Calls, episode.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Cut: call.Cut})
	}
	d.repairs = append(d.repairs, identify(m.Calls, len(req.Messages), format)...)
	return nil
}

// unread is the error of a text with a call in it. It warns of the first one: the server may parse no calls at all.
func (r *reader) unread(tool, advice string) error {
	message := fmt.Sprintf("the text of the reply has a call of %s that was not read; %s", tool, advice)
	r.unreads.Do(func() {
		r.cfg.Logger.Warn("a reply's text has a call that trajgen could not read: the episode does not count as the agent's failure", "tool", tool, "said", message)
	})
	return &refusal{class: ClassUnread, message: message}
}

// identify gives every call a unique id, and returns notes of the ids that it changed. messages is the number of messages in
// the request.
func identify(calls []episode.Call, messages int, format string) (renamed []string) {
	seen := map[string]int{} // how often each id was wanted
	for i := range calls {
		given := calls[i].ID
		id := cmp.Or(given, rawtext.CallID(format, messages, i), fmt.Sprintf("call_%d_%d", messages, i))
		for wanted := id; seen[id] > 0; {
			seen[wanted]++
			id = fmt.Sprintf("%s_%d", cmp.Or(given, "call"), seen[wanted])
		}
		if seen[id]++; given != "" && id != given {
			renamed = append(renamed, "renamed call: "+lineOf(given, longestWord))
		}
		calls[i].ID = id
	}
	return renamed
}

// cutLast marks the last call of a reply if the token limit cut it.
func cutLast(calls []episode.Call, finish string) bool {
	if finish != "length" || len(calls) == 0 {
		return false
	}
	last := &calls[len(calls)-1]
	last.Cut = !json.Valid([]byte(last.Arguments))
	return last.Cut
}
