package datasets

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rows for reinforcement learning name the rule that judges them by where they come from. The rules themselves are
// Python functions of the trainers; of these, the ones that compare numbers are done here, and the others by comparing
// the whole answer.

// isVerl tells a row for verl.
func isVerl(c columns) bool {
	return c.has("data_source", "prompt", "reward_model") && !c.has("env_class") && kindOf(structured(c["prompt"])) == "a list"
}

func verlFields(b *builder, c columns) {
	b.ruled(c, c.inside("reward_model"), "reward_model", "style", c.text("data_source"))
	if ability := c.text("ability"); ability != "" {
		b.set("tags", []string{ability})
	}
	extra := c.inside("extra_info")
	if extra["interaction_kwargs"] != nil {
		b.note("interaction", "extra_info.interaction_kwargs names a user that verl plays; here only the prompt is played")
	}
	if items, err := elements(structured(c["videos"])); err == nil && len(items) > 0 {
		b.wrong.addf("videos: a task's prompt is text and images")
	}
}

// isSkyRL tells a row for SkyRL.
func isSkyRL(c columns) bool {
	return c.has("prompt", "env_class") && (c.has("reward_spec") || c.has("data_source")) && kindOf(structured(c["prompt"])) == "a list"
}

func skyRLFields(b *builder, c columns) {
	name := "reward_spec"
	if !c.has(name) && c.has("reward_model") { // what some of its examples call it
		name = "reward_model"
	}
	b.ruled(c, c.inside(name), name, "method", c.text("data_source")+" "+c.text("env_class"))
	if class := c.text("env_class"); class != "" {
		b.set("tags", []string{class})
	}
}

// ruled sets what rows for both trainers have: the prompt, an id, the check and the reference solution.
func (b *builder) ruled(c, spec columns, column, kind, source string) {
	b.fields = append(b.fields, member{Name: "prompt", Value: b.withImages(structured(c["prompt"]), structured(c["images"]))})
	extra := c.inside("extra_info")
	if index := extra.text("index"); index != "" {
		id := []string{c.text("data_source"), extra.text("split"), index}
		b.set("id", strings.Join(slices.DeleteFunc(id, func(part string) bool { return part == "" }), "/"))
	}
	truth, err := asText(spec["ground_truth"])
	switch method := spec.text(kind); {
	case spec == nil:
		b.note("judged", "not: the row has no object in %s", column)
	case method != "" && !strings.HasPrefix(method, "rule"):
		b.note("judged", "not: %s.%s is %s, and only rules are done here", column, kind, method)
	case spec["ground_truth"] == nil || err != nil || strings.TrimSpace(truth) == "" || forRule(spec["ground_truth"]):
		b.note("judged", "not: %s.ground_truth is no text or number to compare the answer with", column)
	default:
		b.compared(source, truth, extra.text("answer"))
	}
}

// forRule says that a text is JSON that a rule of its own takes apart, such as the tests of a program or several answers
// of which one will do. A list of numbers is an answer.
func forRule(truth json.RawMessage) bool {
	inner := structured(truth)
	items, err := elements(inner)
	if err != nil {
		return kindOf(inner) == "an object"
	}
	return slices.ContainsFunc(items, func(item json.RawMessage) bool {
		return kindOf(item) == "an object" || kindOf(item) == "a string"
	})
}

// plainNumber is one number in decimals. Commas are between thousands: "3,5" is two numbers.
var plainNumber = regexp.MustCompile(`^[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?$`)

// numeric are parts of the names of datasets whose answers are numbers.
var numeric = []string{"gsm8k", "math", "aime", "amc"}

// compared judges by the last number of the answer where the source is known for numbers and the truth is one; else the
// whole answer must be the truth.
func (b *builder) compared(source, truth, solution string) {
	text := strings.TrimSpace(truth)
	number, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	known := slices.ContainsFunc(numeric, func(part string) bool { return strings.Contains(strings.ToLower(source), part) })
	if known && err == nil && plainNumber.MatchString(text) {
		b.note("judged", "by the last number of the answer")
		b.set("verify", map[string]any{"number": number})
		b.set("gold", []any{map[string]string{"content": strings.TrimSpace(solution + "\n\n" + strings.TrimSpace(truth))}})
		return
	}
	b.note("judged", "by comparing the whole answer with the ground truth, as the rule of this data_source is not known here")
	b.set("verify", map[string]any{"exact": truth})
	b.set("gold", []any{map[string]string{"content": strings.TrimSpace(truth)}})
}
