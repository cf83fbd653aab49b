package rawtext

import (
	"regexp"
	"strings"
)

// format is how one family of models writes its calls.
type format struct {
	openers []string
	// parse reads the call or calls that may begin with the opener at w.text[at:]. It returns where to go on, and
	// whether what is in front of that was calls; otherwise it stays content.
	parse func(w *walker, at int, opener string) (end int, called bool)
	// tag is the shortest text without which no call can be in a reply; "" for a format without tags.
	tag string
}

var formats = map[string]format{
	"hermes":        {[]string{"<tool_call>"}, readToolCall, "<tool_call>"},
	"qwen":          {[]string{"<tool_call>"}, readToolCall, "<tool_call>"},
	"longcat":       {[]string{"<longcat_tool_call>"}, readToolCall, "<longcat_tool_call>"},
	"minimax":       {[]string{"<tool_calls>"}, readToolCall, "<tool_calls>"}, // M1; also Hunyuan and Jamba
	"nemotron_json": {[]string{"<TOOLCALL>"}, readToolCall, "<TOOLCALL>"},
	"qwen3_coder":   {[]string{"<tool_call>", "<function="}, readToolCall, "<"},
	"seed_oss":      {[]string{"<seed:tool_call>", "<function="}, readToolCall, "<seed:tool_call>"},
	"glm45":         {[]string{"<tool_call>"}, readGLM, "<tool_call>"},
	"glm47":         {[]string{"<tool_call>"}, readGLM, "<tool_call>"},
	"mistral":       {[]string{"[TOOL_CALLS]", "["}, readMistral, "["},
	"granite":       {[]string{"<|tool_call|>"}, readListed, "<|tool_call|>"},
	"phi4_mini":     {[]string{"functools"}, readListed, "functools"},
	"internlm":      {[]string{"<|action_start|><|plugin|>"}, readListed, "<|action_start|>"},
	"cohere":        {[]string{"<|START_ACTION|>"}, readListed, "<|START_ACTION|>"},
	"kimi_k2":       {kimi.openers(), readKimi, kimi.call},
	"deepseek_v3":   {deepseek.openers(), readDeepseek, deepseek.call},
	"deepseek_v3_1": {deepseek.openers(), readDeepseek, deepseek.call},
	"deepseek_v31":  {deepseek.openers(), readDeepseek, deepseek.call},
	"v31":           {deepseek.openers(), readDeepseek, deepseek.call},
	"deepseek_v3_2": {invokeOpeners, readInvokes, "invoke name="},
	"minimax_m2":    {invokeOpeners, readInvokes, "invoke name="},
	"step3":         {invokeOpeners, readInvokes, "invoke name="},
	"gpt_oss":       {harmonyOpeners, readHarmony, recipient},
	"llama3_json":   {[]string{pythonTag, "{", "["}, readLlama, ""},
	"llama4_json":   {[]string{pythonTag, "{", "["}, readLlama, ""},
	"pythonic":      {pythonicOpeners, readPythonic, ""}, // Llama 4 and 3.2, LFM2, Olmo 3
}

// looked is the order in which Find looks for formats: one for each way to read, those with the plainest tags last.
var looked = []string{
	"kimi_k2", "deepseek_v3_1", "deepseek_v3_2", "gpt_oss", "granite", "cohere", "internlm", "nemotron_json", "phi4_mini", "longcat", "minimax",
	"seed_oss", "qwen3_coder", "glm47", "mistral", "llama3_json", "pythonic",
}

// begun is what begins a call in any format, also in those that are not read here (Gemma's, Apertus'), up to its name.
var begun = regexp.MustCompile(`(?:<tool_calls?>|<longcat_tool_call>|<seed:tool_call>|<minimax:tool_call>|<function_calls?>|<TOOLCALL>|<function=|<invoke name=|` +
	`\[TOOL_CALLS?\]|<function name=|<\|tool_call\|?>(?:call:)?|<\|tool_call_(?:start|begin)\|>|<start_function_call>call:|<\|tools_prefix\|>|<\|START_ACTION\|>|<\|python_(?:tag|start)\|>|` +
	`<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?|<｜DSML｜invoke name=)` +
	`[\s\[{]*(?:["']?(?:type|id)["']?\s*:\s*["'][^"']{0,64}["']\s*,\s*)*(?:["']?(?:name|tool_name|function|tool)["']?\s*[:=]>?\s*[{\s]*(?:["']name["']\s*:\s*)?)?["']?(?:functions\.)?([\w.:/-]{1,128})["']?\s*["'<{(\[,:}>]`)

// families tells the format of a model by its name; the first that fits decides. The names are those of the hub and of
// vendors, who write version 3.1 as 3-1, 3p1 and 3_1, too.
var families = []struct {
	name   *regexp.Regexp
	format string
}{
	{regexp.MustCompile(`hermes`), "hermes"},
	// Distilled models have the template of one family and the tokens of another.
	{regexp.MustCompile(`distill|r1-0528-qwen|nemotron|guard|embed|rerank`), ""},
	{regexp.MustCompile(`longcat`), "longcat"},
	{regexp.MustCompile(`kimi-?(k2|linear)`), "kimi_k2"},
	{regexp.MustCompile(`minimax-?m2`), "minimax_m2"},
	{regexp.MustCompile(`minimax-?(m1|text)`), "minimax"},
	{regexp.MustCompile(`gpt-?oss`), "gpt_oss"},
	{regexp.MustCompile(`seed-?oss`), "seed_oss"},
	{regexp.MustCompile(`glm-?(4[.p-]7|5)`), "glm47"},
	{regexp.MustCompile(`glm-?4[.p-][56]`), "glm45"},
	{regexp.MustCompile(`deepseek-?v3[.p-](1|2-exp)`), "deepseek_v3_1"},
	{regexp.MustCompile(`deepseek-?v(3[.p-][2-9]|4)`), "deepseek_v3_2"},
	{regexp.MustCompile(`deepseek-?(v3|r1)`), "deepseek_v3"},
	{regexp.MustCompile(`qwen-?3-?coder|qwen-?3[.p][5-9]`), "qwen3_coder"},
	{regexp.MustCompile(`qwen-?(2[.p]5|3)|qwq`), "qwen"},
	{regexp.MustCompile(`llama-?4`), "llama4_json"},
	{regexp.MustCompile(`llama-?v?3[.p-][123]([^0-9]|$)`), "llama3_json"},
	{regexp.MustCompile(`mistral|mixtral|ministral|magistral|devstral|codestral|pixtral`), "mistral"},
}

// opening are the models whose templates open a think block in the prompt, and never those whose templates do not, by
// their names.
var (
	opening = regexp.MustCompile(`\br1\b|qwq|thinking|nemotron|longcat|minimax-?m[12]|qwen-?3[.p][5-9]|deepseek-?v(3[.p-][1-9]|4)|glm-?(4[.p-]7|5)|kimi-?k2[.p-]5`)
	never   = regexp.MustCompile(`hermes|llama|mistral|mixtral|ministral|magistral|devstral|codestral|pixtral|gpt|claude|gemini|gemma|qwen|glm|kimi|deepseek|seed-?oss`)
)

// LoneOf says what a closing tag of thinking alone is to a model of this name.
func LoneOf(model string) Lone {
	switch model = plain(model); {
	case opening.MatchString(model):
		return LoneTag
	case never.MatchString(model):
		return LoneText
	}
	return LoneLine
}

// Detect returns the format that a model of this name writes, or "" when that is not known.
func Detect(model string) string {
	model = plain(model)
	for _, family := range families {
		if family.name.MatchString(model) {
			return family.format
		}
	}
	return ""
}

// plain is a model's name without its owner, in one spelling.
func plain(model string) string {
	model = strings.ToLower(strings.TrimRight(model, "/"))
	model = model[strings.LastIndexByte(model, '/')+1:] // a fine-tune is named by its owner, not its owner's company
	return strings.NewReplacer("_", "-", " ", "-").Replace(model)
}
