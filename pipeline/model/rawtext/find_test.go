package rawtext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/model/rawtext"
)

// TestFindWhole reads what every model writes without a word of which model it is.
func TestFindWhole(t *testing.T) {
	same := map[string]string{
		"qwen": "hermes", "glm45": "glm47", "deepseek_v3": "deepseek_v3_1", "deepseek_v31": "deepseek_v3_1", "v31": "deepseek_v3_1",
		"llama4_json": "llama3_json", "step3": "minimax_m2",
	}
	for _, format := range rawtext.Formats() {
		want := rawtext.Parser{Format: format, Tools: shown}.Calls(whole[format])
		got := rawtext.Find(whole[format], shown, true)
		if other, ok := same[format]; ok {
			format = other
		}
		if diff := cmp.Diff(rawtext.Found{Result: want, Format: format}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// TestFind tells calls from texts about calls.
func TestFind(t *testing.T) {
	const call = "<tool_call>\n{\"name\": \"list_files\", \"arguments\": {}}\n</tool_call>"
	const bare = `{"name": "list_files", "arguments": {}}`
	const oneLine = "<tool_call>" + bare + "</tool_call>"
	const dsml = `<｜DSML｜function_calls><｜DSML｜invoke name="list_files"></｜DSML｜invoke></｜DSML｜function_calls>`
	const read, unread, text = "read", "unread", "text"
	tests := []struct{ name, give, want string }{
		{"a call", call, read},
		{"behind a text", "I look.\n\n" + call, read},
		{"behind a colon", "Let me look:\n" + call, read},
		{"without a newline, as GLM writes", "Let me look:<tool_call>list_files</tool_call>", read},
		{"with a result that is made up", call + "\n<tool_response>\n{\"files\": []}\n</tool_response>\nThere are none.", read},
		{"with the token that ends a turn", call + "<|im_end|>\n", read},
		{"two, with a text between them", call + "\nand\n" + call, read},
		{"behind a fence", "```sh\nls\n```\n" + call, read},
		{"special tokens within a line", "I look. " + dsml, read},
		{"the whole reply is JSON", bare, read},
		{"the whole reply is Python", "[list_files()]", read},
		{"flattened, with what is made up", "analysisI look.assistantcommentary to=functions.list_files json{}assistantfinalThere are none.", read},

		{"and goes on", "I look.\n" + call + "\n\nThere are no files.", unread},
		{"JSON behind a text", "I look.\n" + bare, unread},
		{"arguments beside the name", "<tool_call>{\"name\": \"write_file\", \"path\": \"x\"}</tool_call>", unread},
		{"a tag in another's place", "<tool_call><tool name=\"x\"></tool_call>\n<function=list_files", text},
		{"Gemma's", `<start_function_call>call:write_file{path:<escape>a<escape>}<end_function_call>`, unread},
		{"Gemma 4's", `I look.<|tool_call>call:list_files{}<tool_call|>`, unread},
		{"Apertus'", `<|tools_prefix|>[{"list_files": {}}]<|tools_suffix|>`, unread},
		{"MiniMax' other one", "[TOOL_CALL]\n{tool => \"list_files\", args => {}}\n[/TOOL_CALL]", unread},

		{"of a tool that was not shown", strings.ReplaceAll(call, "list_files", "rm"), text},
		{"in a fence", "A call looks like this:\n```\n" + call + "\n```", text},
		{"in a fence without its end", "```\n" + call, text},
		{"JSON in a fence", "```json\n" + bare + "\n```", text},
		{"in backticks", "Write `" + oneLine + "`.", text},
		{"in a sentence", "Write " + oneLine + " to call it.", text},
		{"at the end of a sentence", "A call looks like this: " + oneLine, text},
		{"in a sentence, with special tokens", "DeepSeek writes " + dsml + " for it.", text},
		{"explained", "A call looks like this:\n\n" + call + "\n\nReplace the name with that of your tool.", text},
		{"JSON in a sentence", "The answer is " + bare, text},
		{"JSON that is introduced", "Here is the body that you asked for:\n" + bare, text},
		{"JSON about a call", `{"plan": [` + bare + `]}`, text},
		{"JSON with more in it", `{"name": "list_files", "arguments": {}, "note": "an example"}`, text},
		{"Python in a sentence", "Use [list_files()] for it.", text},
		{"Python that is no literal", "[list_files(path=here)]", text},
		{"a tag in a sentence", "<tool_call> begins a call of list_files.", text},
		{"a tag of another's", "The <function=list_files> tag\nand <invoke name=\"list_files\">.", text},
		{"Mistral's in a sentence", `Mistral writes [TOOL_CALLS]list_files{} there.`, text},
		{"in thinking that stays", "I could call to=functions.list_files for it, {}.", text},
		{"an answer with brackets", "x[0] = {\"name\": 1}; f([1, 2]) <b>", text},
		{"nothing", "", text},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rawtext.Find(tt.give, shown, true)
			is := text
			switch {
			case got.Unread != "":
				is = unread
			case len(got.Calls) > 0:
				is = read
			}
			if is != tt.want {
				t.Errorf("Find(%q) = %+v, want it %s", tt.give, got, tt.want)
			}
			if is == text && got.Content != tt.give {
				t.Errorf("content = %q", got.Content)
			}
		})
	}
}

// BenchmarkFind looks through an answer of 4 KB without a call in it.
func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("Some thoughts on it, with `x[0] < 1` and {braces} (now and then).\n", 60)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if found := rawtext.Find(text, shown, true); found.Format+found.Unread != "" {
			b.Fatal(found)
		}
	}
}
