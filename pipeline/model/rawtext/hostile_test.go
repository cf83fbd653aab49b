package rawtext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/model/rawtext"
)

// whole are replies as each model's template writes them, with everything in the arguments that could be mistaken.
var whole = map[string]string{
	"hermes": "I see.\n<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"ä/😀\", \"content\": \"</tool_call> \\\"x\\\" {[ \\\\\", \"lines\": [1, -2.5e3], \"at\": {\"a\": {\"b\": [null, true]}}}}\n</tool_call>\n" +
		"<tool_call>\n{\"name\": \"list_files\", \"arguments\": {}}\n</tool_call>",
	"longcat": "I see.\n<longcat_tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"ä\", \"content\": \"<tool_call>\"}}\n</longcat_tool_call>\n" +
		"<longcat_tool_call>\n{\"name\": \"list_files\", \"arguments\": {}}\n</longcat_tool_call>",
	"qwen3_coder": "I see.\n<tool_call>\n<function=write_file>\n<parameter=path>\nä/😀\n</parameter>\n<parameter=content>\n</parameter> <tool_call> </function>\n\"x\" {\n</parameter>\n<parameter=mode>\n12\n</parameter>\n<parameter=lines>\n[1, 2]\n</parameter>\n</function>\n</tool_call>\n" +
		"<tool_call>\n<function=list_files>\n</function>\n</tool_call>",
	"glm45": "I see.\n<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>ä/😀</arg_value>\n<arg_key>content</arg_key>\n<arg_value></tool_call> </arg_value> x</arg_value>\n<arg_key>mode</arg_key>\n<arg_value>12</arg_value>\n</tool_call>\n" +
		"<tool_call>list_files\n</tool_call>",
	"glm47":       "I see.<tool_call>write_file<arg_key>path</arg_key><arg_value>ä/😀</arg_value><arg_key>lines</arg_key><arg_value>[1, 22]</arg_value></tool_call><tool_call>list_files</tool_call>",
	"mistral":     `I see.[TOOL_CALLS] [{"name": "write_file", "arguments": {"path": "ä", "content": "[TOOL_CALLS] ]}"}}, {"name": "list_files", "arguments": {}}]`,
	"llama3_json": `{"name": "write_file", "parameters": {"path": "ä", "content": "; {\"name\": \"list_files\", \"parameters\": {}}"}}; {"name": "list_files", "parameters": {}}`,
	"deepseek_v3": "I see.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file\n```json\n{\"path\": \"ä\", \"content\": \"```<｜tool▁call▁end｜>\"}\n```<｜tool▁call▁end｜>\n" +
		"<｜tool▁call▁begin｜>function<｜tool▁sep｜>list_files\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"deepseek_v3_1": `I see.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_file<｜tool▁sep｜>{"path": "ä", "content": "<｜tool▁call▁end｜>"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>list_files<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
	"kimi_k2":       `I see.<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{"path": "ä", "content": "<|tool_call_end|>"}<|tool_call_end|><|tool_call_begin|>functions.list_files:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`,
}

// more are those of formats that take part of another's.
func init() {
	const list = `[{"name": "write_file", "arguments": {"path": "ä", "content": "]}<|tool_call|>"}}, {"name": "list_files", "arguments": {}}]`
	invokes := func(prefix, attribute string) string {
		return "<" + prefix + "invoke name=\"write_file\">\n<" + prefix + "parameter name=\"path\"" + attribute + ">ä/😀</" + prefix + "parameter>\n<" + prefix + "parameter name=\"content\"" + attribute + "></" +
			prefix + "parameter> </" + prefix + "invoke>\n\"</" + prefix + "parameter>\n</" + prefix + "invoke>\n<" + prefix + "invoke name=\"list_files\">\n</" + prefix + "invoke>\n"
	}
	whole["minimax"] = "I see.\n<tool_calls>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"ä\", \"content\": \"</tool_calls>\"}}\n{\"name\": \"list_files\", \"arguments\": {}}\n</tool_calls>"
	whole["nemotron_json"] = "I see.<TOOLCALL>" + list + "</TOOLCALL>"
	whole["granite"], whole["phi4_mini"] = "I see.<|tool_call|>"+list, "I see.\nfunctools"+list
	whole["internlm"] = `<|action_start|><|plugin|>{"name": "write_file", "parameters": {"path": "ä"}}<|action_end|><|action_start|><|plugin|>{"name": "list_files", "parameters": {}}<|action_end|>`
	whole["cohere"] = "I see.<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"write_file\", \"parameters\": {\"path\": \"ä\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"list_files\", \"parameters\": {}}\n]<|END_ACTION|>"
	whole["deepseek_v3_2"] = "I see.\n\n<｜DSML｜function_calls>\n" + invokes("｜DSML｜", ` string="true"`) + "</｜DSML｜function_calls>"
	whole["minimax_m2"] = "I see.\n<minimax:tool_call>\n" + invokes("", "") + "</minimax:tool_call>"
	whole["step3"] = "I see.<steptml:toolcall>" + invokes("steptml:", "") + "</steptml:toolcall>"
	whole["seed_oss"] = "I see.\n<seed:tool_call>\n<function=write_file>\n<parameter=path>ä</parameter>\n<parameter=content></seed:tool_call> \"</parameter>\n</function>\n</seed:tool_call>\n" +
		"<seed:tool_call>\n<function=list_files>\n</function>\n</seed:tool_call>"
	whole["gpt_oss"] = `<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{"path": "ä", "content": "<|call|>"}<|call|><|start|>assistant<|channel|>commentary to=functions.list_files <|constrain|>json<|message|>{}<|call|>`
	whole["pythonic"] = `[write_file(path="ä", content=')]"'), list_files()]`
}

func init() {
	whole["qwen"], whole["llama4_json"], whole["v31"], whole["deepseek_v31"] = whole["hermes"], whole["llama3_json"], whole["deepseek_v3_1"], whole["deepseek_v3_1"]
}

// TestTruncated cuts good replies at every byte. A call of what is left is the same call, or one that will be refused.
func TestTruncated(t *testing.T) {
	for _, format := range rawtext.Formats() {
		texts := []string{whole[format]}
		if format == "mistral" {
			texts = append(texts, `I see.[TOOL_CALLS]write_file[ARGS]{"path": "ä", "content": "[TOOL_CALLS]"}[TOOL_CALLS]list_files{}`)
		}
		for _, text := range texts {
			full := parse(rawtext.Parser{Format: format, Tools: shown}, text).Calls
			if len(full) != 2 || full[0].Name != "write_file" || full[1].Name != "list_files" || full[1].Arguments != "{}" {
				t.Errorf("%s: calls = %+v", format, full)
				continue
			}
			for _, call := range full {
				if !json.Valid([]byte(call.Arguments)) || call.Cut {
					t.Errorf("%s: call %+v is not whole", format, call)
				}
			}
			for end := range text {
				got := parse(rawtext.Parser{Format: format, Tools: shown}, text[:end])
				for i, call := range got.Calls {
					switch {
					case i >= len(full) || call.Name != full[i].Name:
						t.Errorf("%s at %d: invented %+v", format, end, call)
					case call.Cut && json.Valid([]byte(call.Arguments)):
						t.Errorf("%s at %d: cut arguments are %s", format, end, call.Arguments)
					case call.Cut && (i < len(got.Calls)-1 || len(got.Repairs) == 0):
						t.Errorf("%s at %d: %+v", format, end, got)
					case !call.Cut && call.Arguments != full[i].Arguments:
						t.Errorf("%s at %d: arguments = %s, want %s", format, end, call.Arguments, full[i].Arguments)
					}
				}
			}
		}
	}
}

// TestLinear gives every format texts that are made for a parser to look at again and again.
func TestLinear(t *testing.T) {
	const small, large = 4 << 10, 32 << 10
	envelopes := []string{
		"<tool_call>", "</tool_call>", `<tool_call>{"name":"f","arguments":{"a":"`, `<tool_call>{"a":`, `<tool_call>{'a`, "<tool_call>[", `<tool_call>{"name":"f","arguments":{}}`,
		`<tool_call>{"name":"f","arguments":{!`, "```\n", "`", "\"", "<think>", "</think>",
	}
	coder := []string{
		"<tool_call>\n<function=write_file>\n<parameter=path>\n", "<function=write_file>\n<parameter=path>\nx</parameter>y", "<function=write_file><parameter=", "<parameter=path>", "</parameter>",
		"<tool_call>\n<function=write_file>\n<parameter=path>\na\n</function>\n</tool_call>\n", "<function=write_file>",
	}
	texts := map[string][]string{
		"hermes":      append(envelopes, coder...),
		"qwen3_coder": coder,
		"glm47": {"<tool_call>write_file<arg_key>path</arg_key><arg_value>", "<tool_call>write_file\n", "<arg_key>path</arg_key><arg_value>x</arg_value>y", "</arg_value>", "<tool_call>a<arg_key>",
			"<tool_call>write_file<arg_key>path</arg_key><arg_value>x</arg_value>y"},
		"mistral":     {"[TOOL_CALLS]", "[TOOL_CALLS]f{", `[TOOL_CALLS][{"name":"f","arguments":{"a":"`, `[TOOL_CALLS]f[CALL_ID]`, `[TOOL_CALLS][{"name":"f","arguments":{!}}, `, `{"name":"f","arguments":{!}}, `},
		"llama3_json": {"{", "[", `{"a":`, `[{"a":`, `{"name":"list_files","parameters":{}}`, `{"name":"write_file","parameters":{"path":"x"!`, "{!\n", `{"a":{"b":"c"}!;`, "<|python_tag|>", "<|python_tag|>{"},
		"deepseek_v3": {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>", `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a":"`, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}x", "<｜tool▁call▁end｜>"},
		"minimax_m2": {"<invoke name=\"write_file\"><parameter name=\"path\">", "<invoke name=\"write_file\">", "<parameter name=\"path\">x</parameter>y", "</parameter>", "<invoke name=", "<minimax:tool_call>",
			"<invoke name=\"write_file\">{", "<invoke name=\"write_file\">{\"a\":\""},
		"gpt_oss":  {"to=functions.f", "to=functions.f json{", `to=functions.f json{"a":"`, "<|channel|>commentary to=functions.f json{}", "assistantcommentary "},
		"pythonic": {"[", "[list_files(", "[list_files(),", "[write_file(path=", `[write_file(path="`, "[write_file(path=[", "<|python_start|>", "<|python_start|>[f(a='", "list_files(),"},
		"granite":  {"<|tool_call|>", "<|tool_call|>[{", `<|tool_call|>[{"name":"f","arguments":{"a":"`},
		"kimi_k2": {"<|tool_call_begin|>", `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":"`,
			"<|tool_call_begin|>f:0<|tool_call_argument_begin|>[", "<|tool_call_end|>"},
	}
	prefixes := map[string]string{"minimax_m2": "<minimax:tool_call><invoke name=\"write_file\"><parameter name=\"path\">", "qwen3_coder": "<tool_call>\n<function=write_file>\n", "glm47": "<tool_call>write_file\n", "mistral": `[TOOL_CALLS][{"name":"f","arguments":{!}}, `}
	for format, pieces := range texts {
		took := func(piece string, size int) time.Duration {
			text := prefixes[format] + strings.Repeat(piece, size/len(piece))
			began := time.Now()
			parse(rawtext.Parser{Format: format, Tools: shown}, text)
			rawtext.Find(text, shown, true)
			return time.Since(began)
		}
		for _, piece := range pieces {
			// A busy machine may be slow at any moment, and is never fast by chance: one good round is proof.
			var short, long time.Duration
			linear := false
			for range 20 {
				long = took(piece, large)
				if linear = long < 25*time.Millisecond; linear {
					break
				}
				short = max(short, took(piece, small))
				if linear = long <= 30*short; linear {
					break
				}
			}
			if !linear {
				t.Errorf("%s: eight times as much of %q takes %v instead of %v", format, piece, long, short)
			}
		}
	}
}

// TestDeep nests arguments deeper than anything that is meant.
func TestDeep(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100_000)
	for _, text := range []string{
		`<tool_call>{"name":"f","arguments":` + deep, `[TOOL_CALLS]f` + deep, `{"name":"write_file","parameters":` + deep,
		"<tool_call>write_file<arg_key>at</arg_key><arg_value>" + strings.Repeat("[(", 100_000) + "</arg_value></tool_call>",
	} {
		for _, format := range rawtext.Formats() {
			for _, call := range parse(rawtext.Parser{Format: format, Tools: shown}, text).Calls {
				if !strings.Contains(text, "arg_key") && json.Valid([]byte(call.Arguments)) {
					t.Errorf("%s: %.40q is valid", format, call.Arguments)
				}
			}
		}
	}
}
