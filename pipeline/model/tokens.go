package model

import (
	"cmp"
	"encoding/json"

	"trajgen/pipeline/episode"
)

// Known is a count of tokens that the server has made of the beginning of a conversation.
type Known struct {
	Messages int // the first so many messages, with the tools
	Tokens   int // 0 knows nothing
}

// What a server puts around a conversation.
const (
	preamble    = 1024 // tokens of a template's own words: a default system prompt, how tools are used
	perMessage  = 64   // tokens that mark where a message, a call or a tool begins and ends
	bytesPer    = 4    // of a text, for a token, where nothing was measured
	perEstimate = 4    // tokens around a message, where nothing was measured
)

// PromptBound is the most tokens that the prompt of a request can have. A token is a byte at least; what the server has
// counted before is as long as it was then; arguments and schemas may be written anew with spaces in them.
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
		for _, call := range m.Calls {
			n += perMessage + len(call.ID) + len(call.Name) + 2*len(cmp.Or(call.Sent, call.Arguments))
		}
	}
	return n
}

// Counter estimates the tokens of one episode's conversations, by what the server has said of earlier ones.
type Counter struct {
	known Known
	bytes int // of the conversation that was counted last, with the tools
	all   int // tokens of it
}

// Learn takes the server's count of a prompt that consisted of these messages and tools.
func (c *Counter) Learn(messages []episode.Message, tools []json.RawMessage, prompt int) {
	if prompt <= 0 {
		return
	}
	c.known = Known{Messages: len(messages), Tokens: prompt}
	c.bytes, c.all = textOf(messages)+schemas(tools), prompt
}

// Forget says that the conversation does not go on from the one that was counted. The ratio of bytes to tokens stays.
func (c *Counter) Forget() { c.known = Known{} }

// Known is what the server has counted of the conversation.
func (c *Counter) Known() Known { return c.known }

// Count is how many tokens the prompt has: counted as far as that goes, and estimated beyond.
func (c *Counter) Count(messages []episode.Message, tools []json.RawMessage) int {
	if c.known.Tokens > 0 && c.known.Messages <= len(messages) {
		return c.known.Tokens + c.tokens(textOf(messages[c.known.Messages:]), len(messages)-c.known.Messages)
	}
	return c.tokens(textOf(messages)+schemas(tools), len(messages))
}

// Ratio is how many tokens a byte is, by what the server has counted.
func (c *Counter) Ratio() float64 {
	if c.all > 0 && c.bytes > 0 {
		return float64(c.all) / float64(c.bytes)
	}
	return 1.0 / bytesPer
}

// tokens estimates a text of so many bytes in so many messages.
func (c *Counter) tokens(bytes, messages int) int {
	if c.all > 0 {
		return int(float64(bytes)*c.Ratio()) + 1
	}
	return bytes/bytesPer + perEstimate*messages
}

func textOf(messages []episode.Message) (n int) {
	const around = 8 // bytes that a message weighs by itself
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
