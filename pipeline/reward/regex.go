package reward

import (
	"fmt"
	"regexp"

	"trajgen/pipeline/episode"
)

var regex = kind{
	keys:  []string{"regex"},
	given: func(check episode.Check) bool { return check.Regex != "" },
	read: func(check *episode.Check, _ string, value Value) (err error) {
		check.Regex, err = value.Pattern()
		return err
	},
	verify: ofAnswer(verifyRegex),
}

// verifyRegex searches the answer.
func verifyRegex(check episode.Check, answer string) (float64, string, error) {
	re, err := regexp.Compile(check.Regex)
	if err != nil {
		return 0, "", &Broken{Class: "spec", Message: fmt.Sprintf("verify: %v", err)}
	}
	return verdict(re.MatchString(answer)), fmt.Sprintf("answer %q, pattern %s", clip(answer), check.Regex), nil
}
