package rawtext

import "strings"

// thinkTags are what models put around their thinking. Those of the second half are in the prompt of some templates,
// so that a reply begins within the block.
var thinkTags = []struct {
	open, shut string
	prompted   bool
}{
	{"<think>", "</think>", true},
	{"<longcat_think>", "</longcat_think>", true},
	{"<seed:think>", "</seed:think>", true},
	{"◁think▷", "◁/think▷", true}, // Kimi-VL, Kimi-Dev
	{"<thinking>", "</thinking>", false},
	{"[THINK]", "[/THINK]", false}, // Mistral
}

// SplitThinking takes the think blocks off the start of a text. A block that never ends was cut by the token limit: all
// of it is thinking. One that only ends began in the prompt, if prompted says that this may be: what is in front of the
// closing tag is thinking, unless the tag is quoted there. Tags further on are content, whatever they hold.
func SplitThinking(text string, prompted bool) (thinking, content string, found bool) {
	content = text
	var blocks []string
	for {
		block, rest, ok := leadingBlock(content)
		if !ok {
			break
		}
		found, content = true, rest
		if block != "" {
			blocks = append(blocks, block)
		}
	}
	if !found && prompted {
		if block, rest, ok := promptedBlock(text); ok {
			return block, rest, true
		}
	}
	return strings.Join(blocks, "\n\n"), content, found
}

func leadingBlock(text string) (block, rest string, ok bool) {
	start := text[space(text, 0):]
	for _, tags := range thinkTags {
		if inner, ok := strings.CutPrefix(start, tags.open); ok {
			block, rest, _ = strings.Cut(inner, tags.shut)
			return strings.Trim(block, "\r\n"), strings.TrimLeft(rest, "\r\n"), true
		}
	}
	return "", text, false
}

// promptedBlock is a block whose opening tag was in the prompt.
func promptedBlock(text string) (block, rest string, ok bool) {
	for _, tags := range thinkTags {
		block, rest, ok := strings.Cut(text, tags.shut)
		if !tags.prompted || !ok || strings.Contains(block, tags.open) {
			continue
		}
		var c code
		c.read(block)
		if c.inside() {
			continue
		}
		return strings.Trim(block, "\r\n"), strings.TrimLeft(rest, "\r\n"), true
	}
	return "", text, false
}
