package rawtext

import (
	"regexp"
	"strings"
)

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
