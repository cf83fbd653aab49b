package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// ToolFormats lists the names that Config.ToolFormat takes: how a model writes tool calls into its text, where no
// server makes calls of them.
func ToolFormats() []string { return slices.Sorted(maps.Keys(formats)) }

// format is how the calls of a turn are written. Of a call, %[1]s is the name, %[2]s the name as JSON, %[3]s the arguments
// and %[4]s the id.
type format struct {
	lead                string // behind a text, if there is one
	open, between, shut string // around all calls and between them
	call                string
	argumentsOpen       string // before each argument where each is written for itself;
	argument            string // how it goes on, with its name and value
}

const hermes = "<tool_call>\n{\"name\": %[2]s, \"arguments\": %[3]s}\n</tool_call>"

var formats = map[string]format{
	"hermes":      {lead: "\n", between: "\n", call: hermes},
	"qwen":        {lead: "\n", between: "\n", call: hermes},
	"longcat":     {lead: "\n", between: "\n", call: strings.ReplaceAll(hermes, "tool_call>", "longcat_tool_call>")},
	"mistral":     {open: "[TOOL_CALLS][", between: ", ", shut: "]", call: `{"name": %[2]s, "arguments": %[3]s}`},
	"llama3_json": {lead: "\n", between: "; ", call: `{"name": %[2]s, "parameters": %[3]s}`},
	"llama4_json": {lead: "\n", between: "\n", call: `{"name": %[2]s, "parameters": %[3]s}`},
	"qwen3_coder": {lead: "\n", between: "\n", call: "<tool_call>\n<function=%[1]s>\n%[3]s</function>\n</tool_call>",
		argumentsOpen: "<parameter=", argument: "%s>\n%s\n</parameter>\n"},
	"glm45": {lead: "\n", between: "\n", call: "<tool_call>%[1]s\n%[3]s</tool_call>",
		argumentsOpen: "<arg_key>", argument: "%s</arg_key>\n<arg_value>%s</arg_value>\n"},
	"glm47": {call: "<tool_call>%[1]s%[3]s</tool_call>",
		argumentsOpen: "<arg_key>", argument: "%s</arg_key><arg_value>%s</arg_value>"},
	"deepseek_v3": {open: "<｜tool▁calls▁begin｜>", between: "\n", shut: "<｜tool▁calls▁end｜>",
		call: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>%[1]s\n```json\n%[3]s\n```<｜tool▁call▁end｜>"},
	"deepseek_v3_1": {open: "<｜tool▁calls▁begin｜>", shut: "<｜tool▁calls▁end｜>",
		call: "<｜tool▁call▁begin｜>%[1]s<｜tool▁sep｜>%[3]s<｜tool▁call▁end｜>"},
	"kimi_k2": {open: "<|tool_calls_section_begin|>", shut: "<|tool_calls_section_end|>",
		call: "<|tool_call_begin|>%[4]s<|tool_call_argument_begin|>%[3]s<|tool_call_end|>"},
}

// write puts the calls behind a text, if there is one, and behind so many calls of the conversation. Arguments that are no
// JSON object, as an unreliable model writes them, go where the proper ones would be.
func (f format) write(calls []call, behindText bool, before int) string {
	parts := make([]string, len(calls))
	for i, c := range calls {
		id := c.id // which only Kimi's models write
		if !strings.HasPrefix(id, "functions.") {
			id = fmt.Sprintf("functions.%s:%d", c.name, before+i)
		}
		text, args := f.call, c.args
		if fields, ok := ordered(c.args); f.argument != "" && ok {
			args = ""
			for _, field := range fields {
				args += f.argumentsOpen + fmt.Sprintf(f.argument, field.Name, field.Value)
			}
		} else if f.argument != "" {
			head, _, _ := strings.Cut(f.call, "%[3]s")
			text, args = head+"%[3]s", f.argumentsOpen+c.args
		}
		parts[i] = fmt.Sprintf(text, c.name, literal(c.name), args, id)
	}
	text := f.open + strings.Join(parts, f.between) + f.shut
	if behindText {
		text = f.lead + text
	}
	return text
}

// ordered takes an object apart in its order: texts as they are, all else as JSON. False when it is not an object.
func ordered(args string) ([]episode.Member, bool) {
	if !json.Valid([]byte(args)) {
		return nil, false
	}
	fields, err := episode.Members([]byte(args))
	for i, f := range fields {
		if text := ""; f.Value[0] == '"' && json.Unmarshal(f.Value, &text) == nil {
			fields[i].Value = json.RawMessage(text)
		}
	}
	return fields, err == nil
}
