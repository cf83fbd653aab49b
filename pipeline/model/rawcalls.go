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

// How calls are found that a server left in the content, beside the names of rawtext.Formats.
const (
	// ToolFormatNative takes the server's own tool calls alone. It is what "" means.
	ToolFormatNative = "native"
	// ToolFormatAuto goes by the model's name, and reads a content only that unmistakably begins a call.
	ToolFormatAuto = "auto"
)

// CheckToolFormat says whether there is such a format.
func CheckToolFormat(format string) error {
	names := append([]string{ToolFormatAuto, ToolFormatNative}, rawtext.Formats()...)
	if format != "" && !slices.Contains(names, format) {
		return fmt.Errorf("tool format is %q (want one of %s)", format, strings.Join(names, ", "))
	}
	return nil
}

// rawFormat is the format in which contents are read, "" when they are not, and whether only unmistakable ones are.
func rawFormat(cfg Config) (format string, unmistakable bool) {
	switch cfg.ToolFormat {
	case ToolFormatNative:
		return "", false
	case ToolFormatAuto:
		return rawtext.Detect(cfg.Name), true
	}
	return cfg.ToolFormat, false
}

// readRawCalls moves the calls out of a content that the server did not read, if tools were offered and it gave no
// calls itself.
func (c *Client) readRawCalls(req *Request, reply *Reply) {
	m, format := &reply.Message, c.rawFormat
	if format == "" || len(req.Tools) == 0 || len(m.Calls) > 0 || c.unmistakable && !rawtext.Opens(format, m.Content) {
		return
	}
	ended := reply.FinishReason != "" && reply.FinishReason != "length"
	found := rawtext.Parser{Format: format, Tools: req.Tools, Ended: ended}.Calls(m.Content)
	reply.Repairs = append(reply.Repairs, found.Repairs...)
	if len(found.Calls) == 0 {
		return
	}
	reply.Repairs = slices.Insert(reply.Repairs, 0, "parsed:"+format)
	m.Content = found.Content
	for _, call := range found.Calls {
		m.Calls = append(m.Calls, episode.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Cut: call.Cut})
	}
	identify(m.Calls, len(req.Messages), format)
}

// identify sees to it that every call can be answered by an id of its own. messages is the number in the request.
func identify(calls []episode.Call, messages int, format string) {
	seen := map[string]int{} // how often each id was wanted
	for i := range calls {
		given := calls[i].ID
		id := cmp.Or(given, rawtext.CallID(format, messages, i), fmt.Sprintf("call_%d_%d", messages, i))
		for wanted := id; seen[id] > 0; {
			seen[wanted]++
			id = fmt.Sprintf("%s_%d", cmp.Or(given, "call"), seen[wanted])
		}
		seen[id]++
		calls[i].ID = id
	}
}

// cutLast marks the last call of a reply that the token limit ended in the middle of it.
func cutLast(calls []episode.Call, finish string) bool {
	if finish != "length" || len(calls) == 0 {
		return false
	}
	last := &calls[len(calls)-1]
	last.Cut = !json.Valid([]byte(last.Arguments))
	return last.Cut
}
