package model

import (
	"cmp"
	"encoding/json"

	"trajgen/pipeline/episode"
)

// Known is the server's token count of the beginning of a conversation.
type Known struct {
	Messages int // how many messages it covers, with the tools
	Tokens   int // 0 when unknown
}

// What a server's template adds to a conversation.
const (
	preamble    = 1024 // tokens of the template: a default system prompt, how tools are used
	perMessage  = 64   // tokens that mark the beginning and end of a message, a call or a tool
	bytesPer    = 4    // bytes of text per token, without a measurement
	perEstimate = 4    // tokens around a message, without a measurement
)

// pixelsPer is the pixels of an image per token. Anthropic documents tokens = width * height / 750, which is above the 28 by 28
// pixels of Qwen2-VL's and later models, and above OpenAI's 170 for each tile of 512 by 512.
const pixelsPer = 750

// videoBytesPer is the bytes of a video per token: Gemini documents about 300 tokens a second, for which a megabit and a half is usual.
const videoBytesPer = 600

// imageTokens estimates the tokens of messages' images.
func imageTokens(messages []episode.Message) (n int) {
	for i := range messages {
		for _, part := range messages[i].Parts {
			n += ImageTokens(part)
		}
	}
	return n
}

// ImageTokens estimates the tokens of an image, by its pixels, or of a video, by its bytes.
func ImageTokens(part episode.Part) int {
	switch part.Type {
	case episode.PartVideo:
		return part.Bytes / videoBytesPer
	case episode.PartText:
		return 0
	}
	return (part.Width*part.Height + pixelsPer - 1) / pixelsPer
}

// PromptBound is the most tokens that the prompt of a request can have. A token has at least one byte; the counted beginning
// has as many tokens as before; the template may write arguments and schemas with additional spaces. Images are estimated.
func PromptBound(req Request) int {
	if k := req.Known; k.Tokens > 0 && k.Messages <= len(req.Messages) {
		return k.Tokens + boundOf(req.Messages[k.Messages:])
	}
	n := preamble + boundOf(req.Messages)
	for _, tool := range req.Tools {
		n += perMessage + 2*len(tool)
	}
	return n
}

func boundOf(messages []episode.Message) (n int) {
	for i := range messages {
		m := &messages[i]
		n += perMessage + len(m.Role) + len(m.Content) + len(m.Reasoning) + len(m.ReasoningDetails) + len(m.ToolCallID) + len(m.Name)
		for _, part := range m.Parts {
			n += perMessage + ImageTokens(part)
		}
		for _, call := range m.Calls {
			n += perMessage + len(call.ID) + len(call.Name) + 2*len(cmp.Or(call.Sent, call.Arguments))
		}
	}
	return n
}

// Counter estimates the tokens of one episode's conversations from the server's counts of earlier ones.
type Counter struct {
	known Known
	bytes int // of the last counted conversation, with the tools
	all   int // tokens of the last counted conversation, without its images
}

// Learn takes the server's count of a prompt that consisted of these messages and tools.
func (c *Counter) Learn(messages []episode.Message, tools []json.RawMessage, prompt int) {
	if prompt <= 0 {
		return
	}
	c.known = Known{Messages: len(messages), Tokens: prompt}
	c.bytes, c.all = textOf(messages)+schemas(tools), prompt
	c.all = max(prompt-imageTokens(messages), c.bytes/(2*bytesPer), 1) // images may cost less than was estimated
}

// Forget says that the conversation does not continue the one that was counted. The ratio of bytes to tokens stays.
func (c *Counter) Forget() { c.known = Known{} }

// Known is the server's count of the conversation's beginning.
func (c *Counter) Known() Known { return c.known }

// Count is the tokens of the prompt: the server's count of its beginning, and an estimate of the rest.
func (c *Counter) Count(messages []episode.Message, tools []json.RawMessage) int {
	if c.known.Tokens > 0 && c.known.Messages <= len(messages) {
		news := messages[c.known.Messages:]
		return c.known.Tokens + c.tokens(textOf(news), len(news)) + imageTokens(news)
	}
	return c.tokens(textOf(messages)+schemas(tools), len(messages)) + imageTokens(messages)
}

// Ratio is the tokens per byte, as measured by the server's counts.
func (c *Counter) Ratio() float64 {
	if c.all > 0 && c.bytes > 0 {
		return float64(c.all) / float64(c.bytes)
	}
	return 1.0 / bytesPer
}

// tokens estimates the tokens of a text by its bytes and its messages.
func (c *Counter) tokens(bytes, messages int) int {
	if c.all > 0 {
		return int(float64(bytes)*c.Ratio()) + 1
	}
	return bytes/bytesPer + perEstimate*messages
}

func textOf(messages []episode.Message) (n int) {
	const around = 8 // bytes for a message itself
	for i := range messages {
		m := &messages[i]
		n += around + len(m.Content) + len(m.Name)
		for _, call := range m.Calls {
			n += around + len(call.Name) + len(cmp.Or(call.Sent, call.Arguments))
		}
	}
	return n
}

func schemas(tools []json.RawMessage) (n int) {
	for _, tool := range tools {
		n += len(tool)
	}
	return n
}
