package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ToolFormats lists the names that Config.ToolFormat takes: how a model writes tool calls into its text, where no
// server makes calls of them.
func ToolFormats() []string { return slices.Sorted(maps.Keys(formats)) }

// A format writes calls behind a text, if there is one. Arguments that are no JSON object, as an unreliable model
// writes them, go where the proper ones would be. callsBefore counts the calls of the conversation so far.
var formats = map[string]func(calls []call, behindText bool, callsBefore int) string{
	"hermes":      inTags("<tool_call>\n", "\n</tool_call>"),
	"qwen":        inTags("<tool_call>\n", "\n</tool_call>"),
	"longcat":     inTags("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
	"qwen3_coder": each("\n", writeCoder),
	"glm45":       each("\n", writeGLM("\n")),
	"glm47":       each("", writeGLM("")),
	"mistral":     writeMistral,
	"llama3_json": writeLlama("; "),
	"llama4_json": writeLlama("\n"),
	"deepseek_v3": within("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>", func(c call, _ int) string {
		return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + c.name + "\n```json\n" + c.args + "\n```<｜tool▁call▁end｜>"
	}),
	"deepseek_v3_1": within("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>", func(c call, _ int) string {
		return "<｜tool▁call▁begin｜>" + c.name + "<｜tool▁sep｜>" + c.args + "<｜tool▁call▁end｜>"
	}),
	"kimi_k2": within("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>", func(c call, index int) string {
		return "<|tool_call_begin|>" + callID(c, index) + "<|tool_call_argument_begin|>" + c.args + "<|tool_call_end|>"
	}),
}

// named is a call as an object with its name and arguments.
func named(c call, key string) string {
	return `{"name": ` + literal(c.name) + `, "` + key + `": ` + c.args + `}`
}

// callID is the id that Kimi's models write into their calls.
func callID(c call, index int) string {
	if strings.HasPrefix(c.id, "functions.") {
		return c.id
	}
	return fmt.Sprintf("functions.%s:%d", c.name, index)
}

// each writes the calls one behind the other.
func each(between string, write func(call) string) func([]call, bool, int) string {
	return func(calls []call, behindText bool, _ int) string {
		var b strings.Builder
		for i, c := range calls {
			if behindText || i > 0 {
				b.WriteString(between)
			}
			b.WriteString(write(c))
		}
		return b.String()
	}
}

func inTags(open, shut string) func([]call, bool, int) string {
	return each("\n", func(c call) string { return open + named(c, "arguments") + shut })
}

// within puts all the calls into one section.
func within(open, between, shut string, write func(c call, index int) string) func([]call, bool, int) string {
	return func(calls []call, _ bool, before int) string {
		parts := make([]string, len(calls))
		for i, c := range calls {
			parts[i] = write(c, before+i)
		}
		return open + strings.Join(parts, between) + shut
	}
}

func writeMistral(calls []call, _ bool, _ int) string {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = named(c, "arguments")
	}
	return "[TOOL_CALLS][" + strings.Join(parts, ", ") + "]"
}

func writeLlama(between string) func([]call, bool, int) string {
	return func(calls []call, behindText bool, _ int) string {
		parts := make([]string, len(calls))
		for i, c := range calls {
			parts[i] = named(c, "parameters")
		}
		start := ""
		if behindText {
			start = "\n"
		}
		return start + strings.Join(parts, between)
	}
}

func writeCoder(c call) string {
	var b strings.Builder
	b.WriteString("<tool_call>\n<function=" + c.name + ">\n")
	fields, ok := arguments(c.args)
	for _, field := range fields {
		b.WriteString("<parameter=" + field.name + ">\n" + field.value + "\n</parameter>\n")
	}
	if !ok {
		b.WriteString("<parameter=" + c.args)
		return b.String()
	}
	return b.String() + "</function>\n</tool_call>"
}

func writeGLM(line string) func(call) string {
	return func(c call) string {
		var b strings.Builder
		b.WriteString("<tool_call>" + c.name + line)
		fields, ok := arguments(c.args)
		for _, field := range fields {
			b.WriteString("<arg_key>" + field.name + "</arg_key>" + line + "<arg_value>" + field.value + "</arg_value>" + line)
		}
		if !ok {
			b.WriteString("<arg_key>" + c.args)
			return b.String()
		}
		return b.String() + "</tool_call>"
	}
}

type field struct{ name, value string }

// arguments takes an object apart in its order: texts as they are, all else as JSON. False when it is no object.
func arguments(args string) ([]field, bool) {
	dec := json.NewDecoder(strings.NewReader(args))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') || !json.Valid([]byte(args)) {
		return nil, false
	}
	var fields []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, false
		}
		f := field{name: name.(string), value: string(raw)}
		if raw[0] == '"' {
			json.Unmarshal(raw, &f.value)
		}
		fields = append(fields, f)
	}
	return fields, true
}
