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

// format is how the calls of a turn are written. index counts the calls of the conversation. Arguments that are not JSON
// object, as an unreliable model writes them, go where the proper ones would be.
type format struct {
	lead                string // behind a text, if there is one
	open, between, shut string // around all calls and between them
	call                func(c call, index int) string
}

var formats = map[string]format{
	"hermes":        {lead: "\n", between: "\n", call: object("<tool_call>\n", "arguments", "\n</tool_call>")},
	"qwen":          {lead: "\n", between: "\n", call: object("<tool_call>\n", "arguments", "\n</tool_call>")},
	"longcat":       {lead: "\n", between: "\n", call: object("<longcat_tool_call>\n", "arguments", "\n</longcat_tool_call>")},
	"mistral":       {open: "[TOOL_CALLS][", between: ", ", shut: "]", call: object("", "arguments", "")},
	"llama3_json":   {lead: "\n", between: "; ", call: object("", "parameters", "")},
	"llama4_json":   {lead: "\n", between: "\n", call: object("", "parameters", "")},
	"qwen3_coder":   {lead: "\n", between: "\n", call: tagged("<tool_call>\n<function=%s>\n", "<parameter=", "%s>\n%s\n</parameter>\n", "</function>\n</tool_call>")},
	"glm45":         {lead: "\n", between: "\n", call: tagged("<tool_call>%s\n", "<arg_key>", "%s</arg_key>\n<arg_value>%s</arg_value>\n", "</tool_call>")},
	"glm47":         {call: tagged("<tool_call>%s", "<arg_key>", "%s</arg_key><arg_value>%s</arg_value>", "</tool_call>")},
	"deepseek_v3":   {open: "<｜tool▁calls▁begin｜>", between: "\n", shut: "<｜tool▁calls▁end｜>", call: deepseek("function<｜tool▁sep｜>%s\n```json\n%s\n```")},
	"deepseek_v3_1": {open: "<｜tool▁calls▁begin｜>", shut: "<｜tool▁calls▁end｜>", call: deepseek("%s<｜tool▁sep｜>%s")},
	"kimi_k2":       {open: "<|tool_calls_section_begin|>", shut: "<|tool_calls_section_end|>", call: kimi},
}

// write puts the calls behind a text, if there is one, and behind so many calls of the conversation.
func (f format) write(calls []call, behindText bool, before int) string {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = f.call(c, before+i)
	}
	text := f.open + strings.Join(parts, f.between) + f.shut
	if behindText {
		text = f.lead + text
	}
	return text
}

// object is a call as an object with its name and arguments.
func object(open, arguments, shut string) func(call, int) string {
	return func(c call, _ int) string {
		return open + `{"name": ` + literal(c.name) + `, "` + arguments + `": ` + c.args + `}` + shut
	}
}

// tagged is a call with tags around the name and each argument, which begins with open.
func tagged(head, open, argument, shut string) func(call, int) string {
	return func(c call, _ int) string {
		text := fmt.Sprintf(head, c.name)
		fields, ok := arguments(c.args)
		for _, field := range fields {
			text += open + fmt.Sprintf(argument, field.name, field.value)
		}
		if !ok {
			return text + open + c.args
		}
		return text + shut
	}
}

func deepseek(inner string) func(call, int) string {
	return func(c call, _ int) string {
		return "<｜tool▁call▁begin｜>" + fmt.Sprintf(inner, c.name, c.args) + "<｜tool▁call▁end｜>"
	}
}

// kimi writes the id into the call.
func kimi(c call, index int) string {
	id := c.id
	if !strings.HasPrefix(id, "functions.") {
		id = fmt.Sprintf("functions.%s:%d", c.name, index)
	}
	return "<|tool_call_begin|>" + id + "<|tool_call_argument_begin|>" + c.args + "<|tool_call_end|>"
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
		name, _ := dec.Token() // of a valid object
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
