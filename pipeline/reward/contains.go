package reward

import (
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

var contains = kind{
	keys:  append([]string{"contains", "match"}, compareKeys...),
	given: func(check episode.Check) bool { return check.Contains != nil },
	read: func(check *episode.Check, key string, value Value) (err error) {
		if key != "contains" {
			return readChoice(check, key, value)
		}
		check.Contains, err = readTexts(value)
		return err
	},
	verify: ofAnswer(verifyContains),
}

// verifyContains looks for all of the texts in the answer, or for any of them.
func verifyContains(check episode.Check, answer string) (float64, string, error) {
	got := inForm(check.Comparison, "none", answer)
	var missing []string
	for _, want := range check.Contains {
		if !strings.Contains(got, inForm(check.Comparison, "none", want)) {
			missing = append(missing, want)
		}
	}
	is := len(missing) == 0 || check.Match == "any" && len(missing) < len(check.Contains)
	detail := fmt.Sprintf("answer %q has each of %d texts", clip(answer), len(check.Contains))
	if len(missing) > 0 {
		detail = fmt.Sprintf("answer %q lacks %s", clip(answer), quoted(missing, " and "))
	}
	return verdict(is), detail, nil
}
