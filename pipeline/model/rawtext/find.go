package rawtext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Found is what a text holds of calls, whatever model wrote it.
type Found struct {
	Result
	// Format is the one in which the calls are; "" when there is none that could be read.
	Format string
	// Unread is a tool of which the text has a call that is not among Calls: more text follows it, or it cannot be read.
	// It is "" when there is none.
	Unread string
}

// Find reads the calls of a text in whatever format they are. Only calls of tools that the model was shown count, and what
// stands in a think block, a code fence or backticks never does. A call that stands where a model ends its turn with one,
// which is at the end of the text and not within a sentence, is read; others are reported as unread, but for those that a
// text explains: within a line that goes on, or behind a colon and in front of more text.
func Find(text string, shown []json.RawMessage, ended bool) (found Found) {
	found.Content = text
	end := strings.TrimRight(text, " \t\r\n;")
	closes := end != "" && strings.IndexByte(">}])", end[len(end)-1]) >= 0 // as a call does at the end of a text
	for _, name := range looked {
		f := formats[name]
		if !f.tagged(text) && (!closes || !f.opens(text)) {
			continue
		}
		w := walker{text: text, format: name, tools: tools{all: shown}, ended: ended}
		w.walk(f)
		known := slices.IndexFunc(w.Calls, func(c Call) bool { return w.tools.find(c.Name) != nil })
		if known < 0 {
			continue
		}
		switch w.standing() {
		case isCall:
			switch {
			case name == "deepseek_v3_2" && !strings.Contains(text, "｜DSML｜"):
				name = "minimax_m2"
			case name == "qwen3_coder" && !strings.Contains(text, functionOpen):
				name = "hermes"
			}
			return Found{Result: w.Result, Format: name}
		case isDoubtful:
			found.Unread = w.Calls[known].Name
		}
		return found
	}
	if closes {
		found.Unread = unreadable(text, &tools{all: shown})
	}
	return found
}

// standing says what the place of the calls tells about them.
type standing int

const (
	isCall standing = iota
	isDoubtful
	isText
)

// endTokens are what a server may leave behind the end of a turn.
var endTokens = regexp.MustCompile(`^(\s|</s>|<\|(im_end|eot_id|eom_id|eot|eom|end|call|return|endoftext|END_OF_TURN_TOKEN)\|>|<｜end▁of▁sentence｜>)*`)

// made are results that a model goes on to make up.
var made = regexp.MustCompile(`^(</|<\||<｜|<(tool|function)_(response|result|output)|\[TOOL_RESULTS)`)

// standing judges the calls that were read. Bare ones, without tags, are JSON or Python as an answer may be.
func (w *walker) standing() standing {
	lead, tail := w.text[:w.first], w.text[w.last:]
	tail = tail[len(endTokens.FindString(tail)):]
	last := tail == "" || made.MatchString(tail)
	line := lead[strings.LastIndexByte(lead, '\n')+1:]
	within := strings.TrimSpace(line) != ""
	introduced := strings.HasSuffix(strings.TrimSpace(lead), ":")
	bare := w.opener == "{" || w.opener == "["
	token := strings.ContainsAny(w.opener, "|｜") || strings.HasPrefix(w.opener, "[T")
	switch {
	case bare && last && strings.TrimSpace(lead) == "", w.opener != recipient && strings.HasSuffix(w.opener, recipient):
		return isCall
	case bare && (within || introduced || !last), within && !last, within && !token && strings.HasSuffix(line, " "):
		return isText
	case bare:
		return isDoubtful
	case last:
		return isCall
	case introduced:
		return isText
	}
	return isDoubtful
}

// unreadable is the tool of a call that stands where a call does and that no format reads.
func unreadable(text string, shown *tools) string {
	var c code
	seen := 0
	for _, m := range begun.FindAllStringSubmatchIndex(text, 32) {
		c.read(text[seen:m[0]])
		seen = m[0]
		name := strings.TrimSuffix(text[m[2]:m[3]], ":")
		if c.inside() || shown.find(name) == nil {
			continue
		}
		if line := text[strings.LastIndexByte(text[:m[0]], '\n')+1 : m[0]]; strings.TrimSpace(line) == "" || !strings.HasSuffix(line, " ") {
			return name
		}
	}
	return ""
}
