package reward

import (
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

var exact = kind{
	keys:  append([]string{"exact"}, compareKeys...),
	given: func(check episode.Check) bool { return check.Exact != nil },
	read: func(check *episode.Check, key string, value Value) (err error) {
		if key != "exact" {
			return readChoice(check, key, value)
		}
		check.Exact, err = readTexts(value)
		return err
	},
	verify: ofAnswer(verifyExact),
}

// verifyExact compares the answer with each text, without the white space around them.
func verifyExact(check episode.Check, answer string) (float64, string, error) {
	got := inForm(check.Comparison, "ends", answer)
	is := slices.ContainsFunc(check.Exact, func(want string) bool { return got == inForm(check.Comparison, "ends", want) })
	return verdict(is), fmt.Sprintf("answer %q, want %s", clip(strings.TrimSpace(answer)), quoted(check.Exact, " or ")), nil
}

// quoted lists texts for a detail.
func quoted(texts []string, and string) string {
	const most = 5
	var all []string
	for i, text := range texts {
		if i == most {
			all = append(all, fmt.Sprintf("%d others", len(texts)-most))
			break
		}
		all = append(all, fmt.Sprintf("%q", clip(strings.TrimSpace(text))))
	}
	return strings.Join(all, and)
}
