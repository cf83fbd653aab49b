package rawtext_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/model/rawtext"
)

// shown are the tools of these tests.
var shown = []json.RawMessage{
	json.RawMessage(`{"type":"function","function":{"name":"write_file","parameters":{"type":"object","properties":{
		"path":{"type":"string"},"content":{"type":"string"},"mode":{"type":"integer"},"force":{"type":"boolean"},
		"lines":{"type":"array","items":{"type":"integer"}},"owner":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"kind":{"enum":["a","1"]},"at":{"$ref":"#/$defs/at"},"any":{}},"$defs":{"at":{"type":["object","null"]}}}}}`),
	json.RawMessage(`{"type":"function","function":{"name":"list_files","parameters":{"type":"object","properties":{}}}}`),
}

type calls = []rawtext.Call

func call(name, arguments string) rawtext.Call { return rawtext.Call{Name: name, Arguments: arguments} }

// parse reads a reply as it comes, with its thinking.
func parse(p rawtext.Parser, text string) rawtext.Result {
	thinking, content, _ := rawtext.SplitThinking(text, rawtext.LoneTag)
	r := p.Calls(content)
	r.Reasoning = thinking
	return r
}

func TestParse(t *testing.T) {
	const ds, de, db, dsep, dend = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
	const ks, ke, kb, ka, kend = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
	list := call("list_files", "{}")
	a, b := call("f", `{"a": 1}`), call("g", `{"b":"ü \u00fc"}`)
	tests := []struct {
		name, format, give string
		want               rawtext.Result
	}{
		{"text", "hermes", "hello <b>", rawtext.Result{Content: "hello <b>"}},
		{"one", "hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", rawtext.Result{Calls: calls{a}}},
		{"several with text around", "hermes", "Let me look.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\": 1}}\n</tool_call>\nand\r\n<tool_call>{\"arguments\":{\"b\":\"ü \\u00fc\"},\"name\":\"g\"}</tool_call> done",
			rawtext.Result{Content: "Let me look.\nand\ndone", Calls: calls{a, b}}},
		{"tag in a string", "hermes", `<tool_call>{"name":"f","arguments":{"a":"</tool_call> <tool_call>{\"name\":"}}</tool_call>`,
			rawtext.Result{Calls: calls{call("f", `{"a":"</tool_call> <tool_call>{\"name\":"}`)}}},
		{"no closing tag", "hermes", `<tool_call>{"name":"f","arguments":{"a": 1}}`,
			rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a": 1}`, Repaired: true}}, Repairs: []string{"unclosed call: f"}}},
		{"no closing brace", "hermes", `<tool_call>{"name":"f","arguments":{"a": 1}</tool_call>`,
			rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a": 1}`, Repaired: true}}, Repairs: []string{"unclosed call: f"}}},
		{"a brace and a tag too many", "hermes", `<tool_call>{"name":"f","arguments":{"a": 1}}}</tool_call></tool_call>`, rawtext.Result{Calls: calls{a}}},
		{"truncated", "hermes", `Now <tool_call>{"name":"f","arguments":{"a":"rm -rf /tmp/`,
			rawtext.Result{Content: "Now", Calls: calls{{Name: "f", Arguments: `{"a":"rm -rf /tmp/`, Cut: true}}, Repairs: []string{"truncated call: f"}}},
		{"truncated between arguments", "hermes", `<tool_call>{"name":"f","arguments":{"a":"b"`,
			rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a":"b"`, Cut: true}}, Repairs: []string{"truncated call: f"}}},
		{"truncated before the arguments", "hermes", `<tool_call>{"name":"f","argum`,
			rawtext.Result{Content: `<tool_call>{"name":"f","argum`, Repairs: []string{"truncated call"}}},
		{"a broken one and its neighbours", "hermes", `<tool_call>{"name":"f","arguments":{"a": 1}}</tool_call><tool_call>{"name":"x","arguments":{"a":"he said "hi""}}</tool_call><tool_call>oops</tool_call><tool_call>{"name":"g","arguments":{"b":"ü \u00fc"}}</tool_call>`,
			rawtext.Result{Content: "<tool_call>oops</tool_call>", Calls: calls{a, call("x", `{"a":"he said "hi""}`), b}, Repairs: []string{"broken call: x"}}},
		{"a string without its end and a neighbour", "hermes", `<tool_call>{"name":"x","arguments":{"a":"b}}</tool_call><tool_call>{"name":"f","arguments":{"a": 1}}</tool_call>`,
			rawtext.Result{Calls: calls{call("x", `{"a":"b}`), a}, Repairs: []string{"broken call: x"}}},
		{"in a fence", "hermes", "So:\n```\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n```\nand `<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>`.",
			rawtext.Result{Content: "So:\n```\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n```\nand `<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>`."}},
		{"in a fence without its end", "hermes", "```\nls\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
			rawtext.Result{Content: "```\nls\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", Repairs: []string{"call in an open fence"}}},
		{"behind a fence", "hermes", "```sh\nls\n```\n<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1}}</tool_call>", rawtext.Result{Content: "```sh\nls\n```", Calls: calls{a}}},
		{"a fence in the tags", "hermes", "<tool_call>\n```json\n{\"name\":\"f\",\"arguments\":{\"a\": 1}}\n```\n</tool_call>", rawtext.Result{Calls: calls{a}}},
		{"thinking", "hermes", "<think>\nI could <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n</think>\n\nNo.",
			rawtext.Result{Reasoning: `I could <tool_call>{"name":"f","arguments":{}}</tool_call>`, Content: "No."}},
		{"prose", "hermes", "The tag <tool_call> begins a call.", rawtext.Result{Content: "The tag <tool_call> begins a call."}},
		{"no arguments", "hermes", `<tool_call>{"name":"list_files"}</tool_call>`,
			rawtext.Result{Calls: calls{{Name: "list_files", Arguments: "{}", Repaired: true}}, Repairs: []string{"call without arguments: list_files"}}},
		{"arguments beside the name", "hermes", `<tool_call>{"name":"f","path":"x"}</tool_call>`,
			rawtext.Result{Content: `<tool_call>{"name":"f","path":"x"}</tool_call>`, Repairs: []string{"broken call"}}},
		{"nothing for arguments", "hermes", `<tool_call>{"name":"f","arguments":</tool_call>`,
			rawtext.Result{Content: `<tool_call>{"name":"f","arguments":</tool_call>`, Repairs: []string{"broken call"}}},
		{"arguments in a string, in a function, in a list", "qwen", `<tool_call>[{"type":"function","id":"c1","function":{"name":"f","arguments":"{\"a\": 1}"}}]</tool_call>`,
			rawtext.Result{Calls: calls{{ID: "c1", Name: "f", Arguments: `{"a": 1}`, Repaired: true}}, Repairs: []string{"arguments in a string: f"}}},
		{"several in one tag", "qwen", "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\": 1}}\n{\"name\":\"list_files\",\"arguments\":{}}\n</tool_call>", rawtext.Result{Calls: calls{a, list}}},
		{"Python", "qwen", `<tool_call>{'name': 'f', 'arguments': {'a': True}}</tool_call>`, rawtext.Result{Calls: calls{call("f", `{'a': True}`)}}},
		{"a raw newline in a string", "qwen", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"x\ny\"}}</tool_call>", rawtext.Result{Calls: calls{call("f", "{\"a\":\"x\ny\"}")}}},
		{"tags of another model", "qwen", "<tool_call>\n<function=list_files>\n</function>\n</tool_call>", rawtext.Result{Calls: calls{list}}},
		{"longcat", "longcat", "ok<longcat_tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</longcat_tool_call>", rawtext.Result{Content: "ok", Calls: calls{a}}},

		{"one", "qwen3_coder", "I write.\n\n<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\n\n5\n\n</parameter>\n<parameter=mode>\n0o7\n</parameter>\n<parameter=lines>\n[1, 2]\n</parameter>\n<parameter=force>\nTrue\n</parameter>\n</function>\n</tool_call>",
			rawtext.Result{Content: "I write.", Calls: calls{call("write_file", `{"path": "a.txt", "content": "\n5\n", "mode": "0o7", "lines": [1, 2], "force": true}`)}}},
		{"JSON in a text, null, union, enum, reference, none", "qwen3_coder", "<tool_call><function=write_file><parameter=content>{\"a\": 1}</parameter><parameter=owner>null</parameter><parameter=kind>1</parameter><parameter=at>{'x': None}</parameter><parameter=any>[1]</parameter><parameter=path>null</parameter></function></tool_call>",
			rawtext.Result{Calls: calls{call("write_file", `{"content": "{\"a\": 1}", "owner": null, "kind": "1", "at": {"x": null}, "any": [1], "path": "null"}`)}}},
		{"no opening tag, several", "qwen3_coder", "<function=list_files>\n</function>\n</tool_call>\n<function=other>\n<parameter=x>\n1\n</parameter>\n</function>",
			rawtext.Result{Calls: calls{list, call("other", `{"x": 1}`)}}},
		{"closing tags in a value", "qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=content>\na</parameter>b </function> <tool_call>\n</parameter>\n</function>\n</tool_call>",
			rawtext.Result{Calls: calls{call("write_file", `{"content": "a</parameter>b </function> <tool_call>"}`)}}},
		{"missing closing tags", "qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n<parameter=content>\nb\n</function>\n</tool_call>\n<tool_call>\n<function=write_file>\n<parameter=path>\nc\n</parameter>\n</tool_call>",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: `{"path": "a", "content": "b"}`, Repaired: true}, {Name: "write_file", Arguments: `{"path": "c"}`, Repaired: true}},
				Repairs: []string{"unclosed parameter: write_file", "unclosed call: write_file"}}},
		{"truncated", "qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nb",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: "<parameter=path>\na\n</parameter>\n<parameter=content>\nb", Cut: true}}, Repairs: []string{"truncated call: write_file"}}},
		{"junk", "qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter> well <parameter=mode>\n1\n</parameter>\n</function>\n</tool_call><tool_call><function=list_files></function></tool_call>",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: "<parameter=path>\na\n</parameter> well <parameter=mode>\n1\n</parameter>", Cut: true}, list}, Repairs: []string{"broken call: write_file"}}},
		{"one parameter twice", "qwen3_coder", "<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=mode>\n1\n</parameter>\n<parameter=path>\nb\n</parameter>\n</function>",
			rawtext.Result{Calls: calls{call("write_file", `{"path": "b", "mode": 1}`)}, Repairs: []string{"repeated parameter: write_file"}}},
		{"prose", "qwen3_coder", "Use <function=list_files> here, or <function=foo>", rawtext.Result{Content: "Use <function=list_files> here, or <function=foo>"}},
		{"carriage returns", "qwen3_coder", "<tool_call>\r\n<function=write_file>\r\n<parameter=path>\r\na\r\nb\r\n</parameter>\r\n</function>\r\n</tool_call>", rawtext.Result{Calls: calls{call("write_file", `{"path": "a\r\nb"}`)}}},
		{"JSON in the tags", "qwen3_coder", `<tool_call>{"name":"f","arguments":{"a": 1}}</tool_call>`, rawtext.Result{Calls: calls{a}}},

		{"one", "glm45", "Sure.\n<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>12</arg_value>\n<arg_key>mode</arg_key>\n<arg_value>12</arg_value>\n<arg_key>any</arg_key>\n<arg_value>true</arg_value>\n</tool_call>",
			rawtext.Result{Content: "Sure.", Calls: calls{call("write_file", `{"path": "12", "mode": 12, "any": true}`)}}},
		{"unknown tool", "glm45", "<tool_call>nope\n<arg_key>a</arg_key>\n<arg_value>{'x': (1, 2)}</arg_value>\n<arg_key>b</arg_key>\n<arg_value>c d</arg_value>\n</tool_call>",
			rawtext.Result{Calls: calls{call("nope", `{"a": {"x": [1, 2]}, "b": "c d"}`)}}},
		{"several, without newlines or arguments", "glm47", "<tool_call>list_files</tool_call><tool_call>write_file<arg_key>path</arg_key><arg_value>a\n</arg_value></tool_call>",
			rawtext.Result{Calls: calls{list, call("write_file", `{"path": "a\n"}`)}}},
		{"a value without its end and a neighbour", "glm47", "<tool_call>write_file<arg_key>path</arg_key><arg_value>a</tool_call><tool_call>write_file<arg_key>path</arg_key><arg_value>b</arg_value></tool_call>",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: `{"path": "a"}`, Repaired: true}, call("write_file", `{"path": "b"}`)}, Repairs: []string{"unclosed parameter: write_file"}}},
		{"truncated", "glm47", "<tool_call>write_file<arg_key>path</arg_key><arg_value>a</arg_value>",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: "<arg_key>path</arg_key><arg_value>a</arg_value>", Cut: true}}, Repairs: []string{"truncated call: write_file"}}},
		{"prose", "glm47", "The <tool_call> tag\nand <tool_call>tag\nthen", rawtext.Result{Content: "The <tool_call> tag\nand <tool_call>tag\nthen"}},

		{"list", "mistral", `Hm. [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name":"g","arguments":{"b":"ü \u00fc"},"id":"abcdefghi"}]`,
			rawtext.Result{Content: "Hm.", Calls: calls{a, {ID: "abcdefghi", Name: "g", Arguments: `{"b":"ü \u00fc"}`}}}},
		{"one by one", "mistral", `[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[ARGS]{"b":"ü \u00fc"}`, rawtext.Result{Calls: calls{a, b}}},
		{"with an id", "mistral", `[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"a": 1}</s>`, rawtext.Result{Calls: calls{{ID: "123456789", Name: "f", Arguments: `{"a": 1}`}}}},
		{"with an id that is none", "mistral", `[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "call_1"}]`, rawtext.Result{Calls: calls{a}}},
		{"a broken one in the list", "mistral", `[TOOL_CALLS][{"name":"x","arguments":{"a":"he "hi""}}, {"name":"f","arguments":{"a": 1}}]`,
			rawtext.Result{Calls: calls{call("x", `{"a":"he "hi""}`), a}, Repairs: []string{"broken call: x"}}},
		{"truncated", "mistral", `[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g{"b":"x`,
			rawtext.Result{Calls: calls{a, {Name: "g", Arguments: `{"b":"x`, Cut: true}}, Repairs: []string{"truncated call: g"}}},
		{"thinking", "mistral", `[THINK]hm[/THINK]ok[TOOL_CALLS]f{"a": 1}`, rawtext.Result{Reasoning: "hm", Content: "ok", Calls: calls{a}}},

		{"one", "llama3_json", `{"name": "list_files", "parameters": {}}`, rawtext.Result{Calls: calls{list}}},
		{"several, and text", "llama3_json", `I call {"name": "list_files", "parameters": {}}; {"name": "write_file", "arguments": {"path": "a;b"}}<|eom_id|>`,
			rawtext.Result{Content: "I call", Calls: calls{list, call("write_file", `{"path": "a;b"}`)}}},
		{"on lines", "llama4_json", "{\"type\": \"function\", \"name\": \"list_files\", \"parameters\": {}}\n{\"name\": \"list_files\", \"parameters\": {}}", rawtext.Result{Calls: calls{list, list}}},
		{"a list", "llama4_json", `[{"name": "list_files", "parameters": {}}, {"name": "list_files", "parameters": {}}]`, rawtext.Result{Calls: calls{list, list}}},
		{"tag and an unknown tool", "llama3_json", `<|python_tag|>{"name": "f", "parameters": {"a": 1}}`, rawtext.Result{Calls: calls{a}}},
		{"an unknown tool is an answer", "llama3_json", `{"name": "f", "parameters": {"a": 1}}`, rawtext.Result{Content: `{"name": "f", "parameters": {"a": 1}}`}},
		{"other members are an answer", "llama3_json", `{"name": "list_files", "parameters": {}, "doc": "lists"}`, rawtext.Result{Content: `{"name": "list_files", "parameters": {}, "doc": "lists"}`}},
		{"no call inside another object", "llama3_json", `{"plan": [{"name": "list_files", "parameters": {}}]}`, rawtext.Result{Content: `{"plan": [{"name": "list_files", "parameters": {}}]}`}},
		{"in backticks", "llama3_json", "like `{\"name\": \"list_files\", \"parameters\": {}}`", rawtext.Result{Content: "like `{\"name\": \"list_files\", \"parameters\": {}}`"}},
		{"broken and its neighbour", "llama3_json", "{\"name\": \"write_file\", \"parameters\": {\"path\": \"a \"b\"\"}}\n{\"name\": \"list_files\", \"parameters\": {}}",
			rawtext.Result{Calls: calls{call("write_file", `{"path": "a "b""}`), list}, Repairs: []string{"broken call: write_file"}}},
		{"truncated", "llama3_json", `{"name": "write_file", "parameters": {"path": "a`,
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: `{"path": "a`, Cut: true}}, Repairs: []string{"truncated call: write_file"}}},

		{"several", "deepseek_v3", "Ok.\n" + ds + db + "function" + dsep + "f\n```json\n{\"a\": 1}\n```" + dend + "\n" + db + "function" + dsep + "g\n```json\n{\"b\":\"ü \\u00fc\"}\n```" + dend + de, rawtext.Result{Content: "Ok.", Calls: calls{a, b}}},
		{"a fence in the arguments", "deepseek_v3", ds + db + "function" + dsep + "f\n```json\n{\"a\":\"```\\n" + dend + "\"}\n```" + dend + de, rawtext.Result{Calls: calls{call("f", "{\"a\":\"```\\n"+dend+"\"}")}}},
		{"truncated", "deepseek_v3", ds + db + "function" + dsep + "f\n```json\n{\"a\":\"b", rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a":"b`, Cut: true}}, Repairs: []string{"truncated call: f"}}},
		{"several", "deepseek_v3_1", ds + db + "f" + dsep + `{"a": 1}` + dend + db + "g" + dsep + `{"b":"ü \u00fc"}` + dend + de, rawtext.Result{Calls: calls{a, b}}},
		{"broken and its neighbour", "v31", ds + db + "x" + dsep + `{"a": "b}` + dend + db + "f" + dsep + `{"a": 1}` + dend + de,
			rawtext.Result{Calls: calls{call("x", `{"a": "b}`), a}, Repairs: []string{"broken call: x"}}},
		{"no closing tokens", "deepseek_v3_1", db + "f" + dsep + `{"a": 1}`, rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a": 1}`, Repaired: true}}, Repairs: []string{"unclosed call: f"}}},
		{"the format of V3", "deepseek_v3_1", ds + db + "function" + dsep + "f\n```json\n{\"a\": 1}\n```" + dend + de, rawtext.Result{Calls: calls{a}}},

		{"several", "kimi_k2", "Yes." + ks + kb + "functions.f:0" + ka + `{"a": 1}` + kend + kb + " functions.my.tool:12 " + ka + " {} " + kend + ke,
			rawtext.Result{Content: "Yes.", Calls: calls{{ID: "functions.f:0", Name: "f", Arguments: `{"a": 1}`}, {ID: "functions.my.tool:12", Name: "my.tool", Arguments: "{}"}}}},
		{"no section, no number", "kimi_k2", kb + "functions.f" + ka + `{"a": 1}` + kend + kend, rawtext.Result{Calls: calls{a}}},
		{"nothing for arguments", "kimi_k2", ks + kb + "functions.f:0" + ka + kend + ke,
			rawtext.Result{Calls: calls{{ID: "functions.f:0", Name: "f", Arguments: "{}", Repaired: true}}, Repairs: []string{"call without arguments: f"}}},
		{"truncated", "kimi_k2", ks + kb + "functions.f:0" + ka + `{"a": 1`, rawtext.Result{Calls: calls{{ID: "functions.f:0", Name: "f", Arguments: `{"a": 1`, Cut: true}}, Repairs: []string{"truncated call: f"}}},

		{"escapes between the tags and in a value, and a text in quotes", "glm45", `<tool_call>write_file\n<arg_key>lines</arg_key>\n<arg_value>[1, 2]</arg_value>` + "\n" + `<arg_key>at</arg_key><arg_value>{\"a\": \"b\"}</arg_value><arg_key>path</arg_key><arg_value>"a \"b\""</arg_value></tool_call>`,
			rawtext.Result{Calls: calls{call("write_file", `{"lines": [1, 2], "at": {"a": "b"}, "path": "a \"b\""}`)}}},
		{"escapes in a text stay", "glm45", `<tool_call>write_file<arg_key>content</arg_key><arg_value>[\"a\"]</arg_value></tool_call>`,
			rawtext.Result{Calls: calls{call("write_file", `{"content": "[\\\"a\\\"]"}`)}}},
		{"text in JSON stays", "glm45", `<tool_call>write_file<arg_key>content</arg_key><arg_value>{"a": "b"}</arg_value></tool_call>`,
			rawtext.Result{Calls: calls{call("write_file", `{"content": "{\"a\": \"b\"}"}`)}}},

		{"a list behind a text", "mistral", "I look. [{\"name\": \"list_files\", \"arguments\": {}}, {\"name\": \"write_file\", \"arguments\": {\"path\": \"a\"}, \"id\": \"abcdefghi\"}]\n",
			rawtext.Result{Content: "I look.", Calls: calls{list, {ID: "abcdefghi", Name: "write_file", Arguments: `{"path": "a"}`}}}},
		{"a list in a text", "mistral", `The list [{"name": "list_files", "arguments": {}}] is JSON.`, rawtext.Result{Content: `The list [{"name": "list_files", "arguments": {}}] is JSON.`}},
		{"a list of something else", "mistral", `[{"name": "f", "arguments": {}}]`, rawtext.Result{Content: `[{"name": "f", "arguments": {}}]`}},

		{"several", "deepseek_v3_2", "Ok.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"write_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">12</｜DSML｜parameter>\n<｜DSML｜parameter name=\"any\" string=\"true\">[1]</｜DSML｜parameter>\n<｜DSML｜parameter name=\"mode\" string=\"false\">12</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"list_files\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
			rawtext.Result{Content: "Ok.", Calls: calls{call("write_file", `{"path": "12", "any": "[1]", "mode": 12}`), list}}},
		{"one object", "deepseek_v3_2", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n{\"a\": 1}\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", rawtext.Result{Calls: calls{a}}},
		{"truncated", "deepseek_v3_2", "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" string=\"true\">b",
			rawtext.Result{Calls: calls{{Name: "f", Arguments: "<｜DSML｜parameter name=\"a\" string=\"true\">b", Cut: true}}, Repairs: []string{"truncated call: f"}}},
		{"several", "minimax_m2", "Ok.\n<minimax:tool_call>\n<invoke name=\"write_file\">\n<parameter name=\"path\">12</parameter>\n<parameter name=\"lines\">[1, 2]</parameter>\n</invoke>\n<invoke name=\"list_files\">\n</invoke>\n</minimax:tool_call>",
			rawtext.Result{Content: "Ok.", Calls: calls{call("write_file", `{"path": "12", "lines": [1, 2]}`), list}}},
		{"junk", "minimax_m2", "<minimax:tool_call><invoke name=\"write_file\"><parameter name=\"path\">a</parameter> well <parameter name=\"mode\">1</parameter></invoke></minimax:tool_call>",
			rawtext.Result{Calls: calls{{Name: "write_file", Arguments: "<parameter name=\"path\">a</parameter> well <parameter name=\"mode\">1</parameter>", Cut: true}}, Repairs: []string{"broken call: write_file"}}},
		{"prose", "minimax_m2", "Write <invoke name=\"x\"> to call x.", rawtext.Result{Content: "Write <invoke name=\"x\"> to call x."}},
		{"several", "step3", "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"write_file\"><steptml:parameter name=\"path\">a</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"list_files\"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
			rawtext.Result{Calls: calls{call("write_file", `{"path": "a"}`), list}}},
		{"several", "minimax", "Ok.\n<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n{\"name\": \"list_files\", \"arguments\": {}}\n</tool_calls>", rawtext.Result{Content: "Ok.", Calls: calls{a, list}}},
		{"a list", "minimax", "<tool_calls>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"list_files\", \"arguments\": {}}]</tool_calls>", rawtext.Result{Calls: calls{a, list}}},
		{"a list", "nemotron_json", "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</TOOLCALL>", rawtext.Result{Calls: calls{a}}},
		{"a list", "granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", rawtext.Result{Calls: calls{a}}},
		{"a list", "phi4_mini", `functools[{"name": "f", "arguments": {"a": 1}}]`, rawtext.Result{Calls: calls{a}}},
		{"one", "internlm", `Ok.<|action_start|><|plugin|>{"name": "f", "parameters": {"a": 1}}<|action_end|>`, rawtext.Result{Content: "Ok.", Calls: calls{a}}},
		{"a list", "cohere", `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}]<|END_ACTION|>`, rawtext.Result{Calls: calls{a}}},
		{"one", "seed_oss", "Ok.\n<seed:tool_call>\n<function=write_file>\n<parameter=path>a</parameter>\n<parameter=mode>1</parameter>\n</function>\n</seed:tool_call>",
			rawtext.Result{Content: "Ok.", Calls: calls{call("write_file", `{"path": "a", "mode": 1}`)}}},

		{"one", "gpt_oss", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>", rawtext.Result{Reasoning: "hm", Calls: calls{a}}},
		{"the recipient first", "gpt_oss", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"a\": 1}<|call|>", rawtext.Result{Calls: calls{a}}},
		{"without tokens", "gpt_oss", "analysisI look.assistantcommentary to=functions.list_files json{}",
			rawtext.Result{Content: "analysisI look.", Calls: calls{{Name: "list_files", Arguments: "{}", Repaired: true}}, Repairs: []string{"unclosed call: list_files"}}},
		{"without tokens, glued", "gpt_oss", "commentary to=functions.list_filesjson{}<|call|>", rawtext.Result{Calls: calls{list}}},
		{"truncated", "gpt_oss", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": ", rawtext.Result{Calls: calls{{Name: "f", Arguments: `{"a":`, Cut: true}}, Repairs: []string{"truncated call: f"}}},
		{"prose", "gpt_oss", "A recipient such as to=functions.f comes first, then {}", rawtext.Result{Content: "A recipient such as to=functions.f comes first, then {}"}},

		{"several", "pythonic", `[write_file(path="a,b)", lines=[1, -2], force=True, at={'x': None}), list_files()]`,
			rawtext.Result{Calls: calls{call("write_file", `{"path": "a,b)", "lines": [1, -2], "force": true, "at": {"x": null}}`), list}}},
		{"in tags, and an unknown tool", "pythonic", "Ok.<|python_start|>[f(a=1)]<|python_end|>", rawtext.Result{Content: "Ok.", Calls: calls{call("f", `{"a": 1}`)}}},
		{"in tags, without a list", "pythonic", "<function_calls>\nf(a=1)\nlist_files()\n</function_calls>", rawtext.Result{Calls: calls{call("f", `{"a": 1}`), list}}},
		{"in tags, as JSON", "pythonic", `<|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}]<|tool_call_end|>`, rawtext.Result{Calls: calls{a}}},
		{"an unknown tool is an answer", "pythonic", "[f(a=1)]", rawtext.Result{Content: "[f(a=1)]"}},
		{"arguments without names are an answer", "pythonic", "[list_files(1)]", rawtext.Result{Content: "[list_files(1)]"}},
		{"an expression is an answer", "pythonic", "[write_file(path=a + b)]", rawtext.Result{Content: "[write_file(path=a + b)]"}},
		{"truncated", "pythonic", `[write_file(path="a", content="b`, rawtext.Result{Content: `[write_file(path="a", content="b`}},
	}
	for _, tt := range tests {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			got := parse(rawtext.Parser{Format: tt.format, Tools: shown}, tt.give)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", tt.give, diff)
			}
		})
	}
	var tested []string
	for _, tt := range tests {
		tested = append(tested, tt.format)
	}
	for _, format := range rawtext.Formats() {
		if !slices.Contains(tested, format) && format != "glm47" && format != "deepseek_v31" {
			t.Errorf("format %s has no case", format)
		}
	}
}

// TestEnded reads texts whose last closing tags the server took for stop words.
func TestEnded(t *testing.T) {
	tests := []struct{ format, give, want string }{
		{"qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n</function>\n", `{"path": "a"}`},
		{"qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n", `{"path": "a"}`},
		{"qwen3_coder", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</function>\n</tool_call>", `{"path": "a"}`},
		{"glm45", "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n", `{"path": "a"}`},
		{"glm45", "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a\n</tool_call>", `{"path": "a"}`},
	}
	for _, tt := range tests {
		got := parse(rawtext.Parser{Format: tt.format, Tools: shown, Ended: true}, tt.give).Calls
		if len(got) != 1 || got[0].Arguments != tt.want || got[0].Cut {
			t.Errorf("%s %q: calls = %+v, want one with %s", tt.format, tt.give, got, tt.want)
		}
	}
}

func TestDetect(t *testing.T) {
	tests := map[string]string{
		"Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3_coder", "qwen/qwen3-coder:free": "qwen3_coder", "Qwen/Qwen3.5-397B-A17B": "qwen3_coder",
		"Qwen/Qwen3-8B": "qwen", "qwen2.5-coder:7b": "qwen", "Qwen/QwQ-32B": "qwen", "Qwen3-Next-80B-A3B-Instruct": "qwen", "Qwen/Qwen-7B": "",
		"moonshotai/Kimi-K2-Instruct-0905": "kimi_k2", "kimi-k2.5": "kimi_k2", "moonshotai/Kimi-Linear-48B-A3B-Instruct": "kimi_k2", "Kimi-VL-A3B-Thinking": "",
		"zai-org/GLM-4.5-Air": "glm45", "z-ai/glm-4.6": "glm45", "zai-org/GLM-4.7": "glm47", "zai-org/GLM-5": "glm47", "THUDM/glm-4-9b-chat": "",
		"deepseek-ai/DeepSeek-V3": "deepseek_v3", "deepseek-ai/DeepSeek-V3-0324": "deepseek_v3", "deepseek/deepseek-r1-0528": "deepseek_v3",
		"deepseek-ai/DeepSeek-V3.1": "deepseek_v3_1", "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek_v3_1", "accounts/fireworks/models/deepseek-v3p1": "deepseek_v3_1",
		"deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v3_1", "deepseek-ai/DeepSeek-V3.2": "deepseek_v3_2", "deepseek-ai/DeepSeek-V4-Pro": "deepseek_v3_2", "MiniMaxAI/MiniMax-M2.1": "minimax_m2", "MiniMaxAI/MiniMax-M1-80k": "minimax", "openai/gpt-oss-20b": "gpt_oss", "gpt-oss:120b": "gpt_oss", "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": "",
		"NousResearch/Hermes-3-Llama-3.1-8B": "hermes", "NousResearch/Hermes-2-Pro-Mistral-7B": "hermes", "NousResearch/Hermes-4-70B": "hermes",
		"meta-llama/Llama-3.3-70B-Instruct": "llama3_json", "meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo": "llama3_json", "llama3.2:3b": "llama3_json", "meta.llama3-1-70b-instruct-v1:0": "llama3_json",
		"accounts/fireworks/models/llama-v3p1-8b-instruct": "llama3_json", "meta-llama/Meta-Llama-3-8B-Instruct": "", "meta-llama/Llama-Guard-4-12B": "",
		"meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama4_json", "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "",
		"mistralai/Mistral-Small-3.2-24B-Instruct-2506": "mistral", "mistralai/Devstral-Small-2507": "mistral", "open-mistral-nemo": "mistral", "mistralai/Mixtral-8x22B-Instruct-v0.1": "mistral",
		"meituan-longcat/LongCat-Flash-Chat": "longcat", "/models/Qwen3-8B/": "qwen", "gpt-4o": "", "claude-sonnet-4": "", "": "",
	}
	for name, want := range tests {
		if got := rawtext.Detect(name); got != want {
			t.Errorf("Detect(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSplitThinking(t *testing.T) {
	const found, unclosed, final = rawtext.ThinkingFound, rawtext.ThinkingUnclosed, rawtext.FinalFound
	tests := []struct {
		give              string
		lone              rawtext.Lone
		thinking, content string
		found             string
	}{
		{"x", rawtext.LoneTag, "", "x", ""},
		{"\n<think>\na\n</think>\n\nx </think>", rawtext.LoneText, "a", "x </think>", found},
		{"<thinking>a</thinking>x", rawtext.LoneText, "a", "x", found},
		{"[THINK]a[/THINK]x", rawtext.LoneText, "a", "x", found},
		{"<seed:think>a</seed:think>x", rawtext.LoneText, "a", "x", found},
		{"◁think▷a◁/think▷x", rawtext.LoneText, "a", "x", found},
		{"<longcat_think>a</longcat_think>x", rawtext.LoneText, "a", "x", found},
		{"<think></think>\n<think>b</think>x", rawtext.LoneText, "b", "x", found},
		{"<think>a</think>\n<think>b</think>x", rawtext.LoneText, "a\n\nb", "x", found},
		{"<think>a", rawtext.LoneText, "a", "", unclosed},
		{"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>x<|return|>", rawtext.LoneText, "a", "x", found},
		{"<|channel|>final<|message|>x", rawtext.LoneText, "", "x", final},
		{"use <think>x</think>", rawtext.LoneTag, "", "use <think>x</think>", ""},
		{"the tag </thinking> ends it", rawtext.LoneTag, "", "the tag </thinking> ends it", ""},

		{"a\n</think>\n\nx", rawtext.LoneTag, "a", "x", found},
		{"a</think>", rawtext.LoneTag, "a", "", found},
		{"see `</think>`", rawtext.LoneTag, "", "see `</think>`", ""},
		{"see `</think>`\n</think>\nx", rawtext.LoneTag, "see `</think>`", "x", found},
		{"```\n</think>\n```", rawtext.LoneTag, "", "```\n</think>\n```", ""},

		{"a\n </think> \r\n\nx", rawtext.LoneLine, "a\n ", " \r\n\nx", found},
		{"</think>\nx", rawtext.LoneLine, "", "x", found},
		{"The tag </think> ends a block.", rawtext.LoneLine, "", "The tag </think> ends a block.", ""},
		{"The tag </think> ends a block, as here:\n\n</think>", rawtext.LoneLine, "The tag </think> ends a block, as here:", "", found},
		{"```\n</think>\n```\nends a block", rawtext.LoneLine, "", "```\n</think>\n```\nends a block", ""},
		{"a\n</think>\n\nx", rawtext.LoneText, "", "a\n</think>\n\nx", ""},
	}
	for _, tt := range tests {
		thinking, content, found := rawtext.SplitThinking(tt.give, tt.lone)
		if thinking != tt.thinking || content != tt.content || found != tt.found {
			t.Errorf("SplitThinking(%q, %d) = %q, %q, %q, want %q, %q, %q", tt.give, tt.lone, thinking, content, found, tt.thinking, tt.content, tt.found)
		}
	}
}

func TestLoneOf(t *testing.T) {
	for name, want := range map[string]rawtext.Lone{
		"deepseek-ai/DeepSeek-R1": rawtext.LoneTag, "DeepSeek-R1-Distill-Llama-70B": rawtext.LoneTag, "Qwen/QwQ-32B": rawtext.LoneTag, "Qwen3-4B-Thinking-2507": rawtext.LoneTag,
		"zai-org/GLM-4.7": rawtext.LoneTag, "deepseek-ai/DeepSeek-V3.2": rawtext.LoneTag, "MiniMaxAI/MiniMax-M2": rawtext.LoneTag,
		"Qwen/Qwen3-8B": rawtext.LoneText, "gpt-4o": rawtext.LoneText, "openai/gpt-oss-120b": rawtext.LoneText, "meta-llama/Llama-3.3-70B-Instruct": rawtext.LoneText,
		"NousResearch/Hermes-4-70B": rawtext.LoneText, "zai-org/GLM-4.5-Air": rawtext.LoneText,
		"my-model": rawtext.LoneLine, "": rawtext.LoneLine,
	} {
		if got := rawtext.LoneOf(name); got != want {
			t.Errorf("LoneOf(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestCallID(t *testing.T) {
	if got := rawtext.CallID("mistral", 12, 3); got != "000120003" {
		t.Errorf("CallID = %q, want nine digits", got)
	}
	if got := rawtext.CallID("hermes", 12, 3); got != "" {
		t.Errorf("CallID = %q, want none", got)
	}
}

func ExampleParser_Calls() {
	text := "I look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>"
	r := parse(rawtext.Parser{Format: rawtext.Detect("Qwen/Qwen3-8B")}, text)
	fmt.Println(r.Content)
	fmt.Println(r.Calls[0].Name, r.Calls[0].Arguments)
	// Output:
	// I look.
	// read_file {"path": "a.txt"}
}
