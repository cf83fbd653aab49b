// Package rawtext reads the tool calls that a model writes into its text, in the format that its chat template taught
// it. Servers without a parser for a model hand that text on as the content of the reply.
//
// Two rules decide every doubtful case. No call is invented: what stands in a think block, a code fence or backticks
// is text, and so is what cannot be read as a call. And no call runs with other arguments than the model meant: what
// the model wrote is handed on byte for byte, and arguments that ended too early are marked rather than completed.
//
// The formats are those of the chat templates, as the parsers of servers read them: vLLM's tool_parsers (deepseekv32,
// minimax, minimax_m2, llama4_pythonic, pythonic, olmo3, granite, phi4mini, internlm2, nemotron_json, seed_oss, step3, ...)
// and SGLang's function_call (deepseekv32, gpt_oss, lfm2, glm4_moe with its escaped values, ...).
package rawtext

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is a reply taken apart.
type Result struct {
	Content   string // what is neither thinking nor a call; white space around a call goes with the call
	Reasoning string
	Calls     []Call
	// Repairs says what was not as the format wants it, e.g. "truncated call: write_file".
	Repairs []string
}

// Call is one tool call.
type Call struct {
	ID   string // as the model wrote it; most formats have none, see CallID
	Name string
	// Arguments is what the model wrote where its format carries JSON, valid or not; other formats are encoded in the
	// order in which they were written.
	Arguments string
	// Repaired says that something around the arguments was missing, such as the closing tag. They are whole.
	Repaired bool
	// Cut says that the arguments are not whole: the text ended, or became unreadable, within them. Arguments is then
	// the text as far as it came. It is there to be refused: what is missing cannot be guessed.
	Cut bool
}

// Parser reads the replies of one model.
type Parser struct {
	Format string
	// Tools are those that the model was shown. They give the values of key-value formats their types, and a format
	// without tags can only call what is among them.
	Tools []json.RawMessage
	// Ended says that the model stopped by itself, so that a missing closing tag at the end cuts nothing off. It was
	// left out, or the server took it for a stop word.
	Ended bool
}

// Calls reads a content that SplitThinking has been through.
func (p Parser) Calls(content string) Result {
	f, ok := formats[p.Format]
	if !ok || !f.opens(content) {
		return Result{Content: content}
	}
	w := walker{text: content, format: p.Format, tools: tools{all: p.Tools}, ended: p.Ended}
	w.walk(f)
	return w.Result
}

// opens is a quick look for anything to read.
func (f format) opens(text string) bool {
	if f.tag != "" {
		return strings.Contains(text, f.tag)
	}
	return slices.ContainsFunc(f.openers, func(opener string) bool { return strings.Contains(text, opener) })
}

// tagged is opens for what is more than a bracket.
func (f format) tagged(text string) bool {
	return strings.Contains(text, f.tag) && slices.ContainsFunc(f.openers, func(opener string) bool { return len(opener) > 1 && strings.Contains(text, opener) })
}

// Formats lists the names of the formats, in order.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Opens says whether a text has what unmistakably begins a call of the format. The formats without tags are as
// unmistakable as they get when JSON begins a line.
func Opens(format, text string) bool {
	if format == "llama3_json" || format == "llama4_json" {
		return strings.Contains(text, pythonTag) || strings.Contains(text, "\n{") || strings.HasPrefix(strings.TrimLeft(text, " \t\r\n["), "{")
	}
	f, ok := formats[format]
	return ok && f.opens(text)
}

// CallID makes an id for a call whose format carries none: the index-th call of a reply to so many messages. It is ""
// where any id will do; the templates of Mistral take nine letters and digits alone.
func CallID(format string, messages, index int) string {
	if format != "mistral" {
		return ""
	}
	return fmt.Sprintf("%05d%04d", messages%100_000, index%10_000)
}
