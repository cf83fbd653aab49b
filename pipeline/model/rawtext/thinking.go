package rawtext

import (
	"cmp"
	"strings"
)

// thinkTags are what models put around their thinking. Those that are prompted are in the prompt of some templates, so
// that a reply begins within the block.
var thinkTags = []struct {
	open, shut string
	prompted   bool
}{
	{"<think>", "</think>", true},
	{"<longcat_think>", "</longcat_think>", true},
	{"<seed:think>", "</seed:think>", true},
	{"◁think▷", "◁/think▷", true}, // Kimi-VL, Kimi-Dev
	{"<thinking>", "</thinking>", false},
	{"[THINK]", "[/THINK]", false},                       // Mistral
	{"<|START_THINKING|>", "<|END_THINKING|>", false},    // Cohere
	{"<|channel|>analysis<|message|>", "<|end|>", false}, // gpt-oss
}

// A Lone says what a closing tag is to which no text has the opening one.
type Lone int

const (
	LoneText Lone = iota // content: the model's template opens no block in the prompt
	LoneLine             // the end of the thinking where it stands on a line of its own: the model is not known
	LoneTag              // the end of the thinking: the template opens the block
)

// What SplitThinking has found.
const (
	ThinkingFound    = "thinking in the content"
	ThinkingUnclosed = "unclosed thinking in the content" // it was cut, or the model never ended it
	FinalFound       = "channel in the content"           // gpt-oss's, around the answer
)

// SplitThinking takes the think blocks off the start of a text. A block that never ends is thinking to the end of the
// text. What ends a block that began in the prompt is up to lone, and never quoted. Tags further on are content, whatever
// they hold. found is empty where the content is the text.
func SplitThinking(text string, lone Lone) (thinking, content, found string) {
	content = text
	var blocks []string
	for {
		block, rest, ok, closed := leadingBlock(content)
		if !ok {
			break
		}
		content, found = rest, ThinkingFound
		if !closed {
			found = ThinkingUnclosed
		}
		if block != "" {
			blocks = append(blocks, block)
		}
	}
	if found == "" && lone != LoneText {
		if block, rest, ok := promptedBlock(text, lone); ok {
			return block, rest, ThinkingFound
		}
	}
	if answer, ok := strings.CutPrefix(afterRole(content), "<|channel|>final<|message|>"); ok { // gpt-oss
		content, found = strings.TrimSuffix(strings.TrimSuffix(answer, "<|return|>"), "<|end|>"), cmp.Or(found, FinalFound)
	}
	return strings.Join(blocks, "\n\n"), content, found
}

func leadingBlock(text string) (block, rest string, ok, closed bool) {
	start := afterRole(text[space(text, 0):])
	for _, tags := range thinkTags {
		if inner, ok := strings.CutPrefix(start, tags.open); ok {
			block, rest, closed = strings.Cut(inner, tags.shut)
			return strings.Trim(block, "\r\n"), strings.TrimLeft(rest, "\r\n"), true, closed
		}
	}
	return "", text, false, false
}

// afterRole skips what stands before each message of gpt-oss.
func afterRole(text string) string { return strings.TrimPrefix(text, "<|start|>assistant") }

// promptedBlock is a block whose opening tag was in the prompt.
func promptedBlock(text string, lone Lone) (block, rest string, ok bool) {
	for _, tags := range thinkTags {
		if !tags.prompted {
			continue
		}
		var c code
		opened := find(text, 0, tags.open)
		for from := 0; ; {
			at := find(text, from, tags.shut)
			if at >= opened {
				break
			}
			c.read(text[from:at])
			end := at + len(tags.shut)
			if !c.inside() && (lone == LoneTag || ownLine(text, at, end)) {
				return strings.Trim(text[:at], "\r\n"), strings.TrimLeft(text[end:], "\r\n"), true
			}
			c.read(tags.shut)
			from = end
		}
	}
	return "", text, false
}

// ownLine says whether nothing but white space stands beside text[at:end] on its line.
func ownLine(text string, at, end int) bool {
	const blank = " \t\r"
	for at > 0 && strings.IndexByte(blank, text[at-1]) >= 0 {
		at--
	}
	for end < len(text) && strings.IndexByte(blank, text[end]) >= 0 {
		end++
	}
	return (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n')
}
