package rawtext_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/model/rawtext"
)

// openers are what must be in a text for a call to be in it.
var openers = map[string][]string{
	"hermes": {"<tool_call>"}, "longcat": {"<longcat_tool_call>"}, "qwen3_coder": {"<tool_call>", "<function="}, "glm45": {"<tool_call>"}, "mistral": {"[TOOL_CALLS]", "[{", "[ "},
	"minimax": {"<tool_calls>"}, "granite": {"<|tool_call|>"}, "deepseek_v3_2": {"invoke name="}, "gpt_oss": {"to=functions."}, "pythonic": {"<|python_start|>", "<|tool_call_start|>", "<function_calls>", "list_files", "write_file"},
	"llama3_json": {"<|python_tag|>", "list_files", "write_file"}, "deepseek_v3": {"<｜tool▁call▁begin｜>"}, "kimi_k2": {"<|tool_call_begin|>"},
}

// FuzzParse reads any text in every format: no panic, no call out of nothing, and nothing multiplied.
func FuzzParse(f *testing.F) {
	for _, text := range whole {
		f.Add(text)
		f.Add("<think>hm</think>" + text[:len(text)/2])
		f.Add("```\n" + text)
	}
	for _, text := range []string{
		`<tool_call>{"name":"f","arguments":{"a":"b}}</tool_call><tool_call>{"name":"g","arguments":null}`, "<tool_call>[{'name': 'f', 'arguments': \"{\\\"a\\\":1}\"},]",
		"<function=write_file>\n<parameter=at>\n{'a': (True, None, 'x\\'')}\n<parameter=mode>1</function>", "<tool_call>f<arg_key>a</arg_key><arg_value>[1,</arg_value>x",
		`[TOOL_CALLS]f[CALL_ID]abc[ARGS]{"a":1}x`, "<invoke name=\"f\"><parameter name=\"a\" string=\"false\">[1,</parameter>x", "to=functions.f<|channel|>json{", "<function_calls>f(a={'b': (1,)},)", `[{"name":"list_files","parameters":{}},{}]; <|eot_id|>`, "\\u\"'`\xff\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := rawtext.Find(text, shown, true)
		known := found.Unread == "list_files" || found.Unread == "write_file"
		for _, call := range found.Calls {
			known = known || call.Name == "list_files" || call.Name == "write_file"
		}
		if !known && found.Format+found.Unread+strings.Join(found.Repairs, "") != "" || !known && found.Content != text || found.Format == "" && found.Calls != nil {
			t.Errorf("Find(%q) = %+v, without a tool that was shown", text, found)
		}
		for format, tags := range openers {
			for _, ended := range []bool{false, true} {
				got := parse(rawtext.Parser{Format: format, Tools: shown, Ended: ended}, text)
				size := len(got.Content) + len(got.Reasoning)
				for _, call := range got.Calls {
					size += len(call.ID) + len(call.Name) + len(call.Arguments)
					if call.Name == "" || len(call.Name) > 128 || call.Arguments == "" {
						t.Errorf("%s: call %+v of %q", format, call, text)
					}
					if call.Repaired && call.Cut {
						t.Errorf("%s: call %+v is whole and is not", format, call)
					}
					if call.Cut && strings.HasPrefix(call.Arguments, "{") && json.Valid([]byte(call.Arguments)) {
						t.Errorf("%s: cut arguments %s would be executed", format, call.Arguments)
					}
				}
				if len(got.Calls) > 0 && !slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(text, tag) }) {
					t.Errorf("%s: %q has no call, got %+v", format, text, got.Calls)
				}
				if len(got.Calls) == 0 && len(got.Repairs) == 0 && got.Reasoning == "" && got.Content != text && !strings.Contains(text, "hink") && !strings.Contains(text, "THINK") {
					t.Errorf("%s: content %q of %q", format, got.Content, text)
				}
				// Quoting a control character takes six bytes, an invalid one three.
				if size > 8*len(text)+16*len(got.Calls) {
					t.Errorf("%s: %d bytes of %d", format, size, len(text))
				}
			}
		}
	})
}

// BenchmarkParse reads a reply of 4 KB in each format.
func BenchmarkParse(b *testing.B) {
	for _, format := range []string{"hermes", "qwen3_coder", "glm45", "mistral", "llama3_json", "deepseek_v3", "kimi_k2"} {
		b.Run(format, func(b *testing.B) {
			text := strings.Repeat("Some thoughts on it.\n", 90) + strings.Replace(whole[format], "ä", strings.Repeat("a/b", 700), 1)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if len(parse(rawtext.Parser{Format: format, Tools: shown}, text).Calls) != 2 {
					b.Fatal("no calls")
				}
			}
		})
	}
}
