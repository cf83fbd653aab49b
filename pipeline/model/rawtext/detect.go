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
	{regexp.MustCompile(`glm-?(4[.p-]7|5)`), "glm47"},
	{regexp.MustCompile(`glm-?4[.p-][56]`), "glm45"},
	{regexp.MustCompile(`deepseek-?v3[.p-](1|2-exp)`), "deepseek_v3_1"},
	{regexp.MustCompile(`deepseek-?v3[.p-][2-9]`), ""},
	{regexp.MustCompile(`deepseek-?(v3|r1)`), "deepseek_v3"},
	{regexp.MustCompile(`qwen-?3-?coder|qwen-?3[.p][5-9]`), "qwen3_coder"},
	{regexp.MustCompile(`qwen-?(2[.p]5|3)|qwq`), "qwen"},
	{regexp.MustCompile(`llama-?4`), "llama4_json"},
	{regexp.MustCompile(`llama-?v?3[.p-][123]([^0-9]|$)`), "llama3_json"},
	{regexp.MustCompile(`mistral|mixtral|ministral|magistral|devstral|codestral|pixtral`), "mistral"},
}

// Detect returns the format that a model of this name writes, or "" when that is not known.
func Detect(model string) string {
	model = strings.ToLower(strings.TrimRight(model, "/"))
	model = model[strings.LastIndexByte(model, '/')+1:] // a fine-tune is named by its owner, not its owner's company
	model = strings.NewReplacer("_", "-", " ", "-").Replace(model)
	for _, family := range families {
		if family.name.MatchString(model) {
			return family.format
		}
	}
	return ""
}
