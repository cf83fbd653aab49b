package reward

import (
	"errors"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

var exact = kind{
	keys:  []string{"exact"},
	given: func(check episode.Check) bool { return check.Exact != nil },
	read: func(check *episode.Check, _ string, value Value) error {
		want, err := value.Text()
		if err == nil && strings.TrimSpace(want) == "" {
			err = errors.New("it is empty, and would let silence pass")
		}
		check.Exact = &want
		return err
	},
	verify: ofAnswer(verifyExact),
}

// verifyExact compares the answer, white space around it trimmed.
func verifyExact(check episode.Check, answer string) (float64, string, error) {
	want, got := strings.TrimSpace(*check.Exact), strings.TrimSpace(answer)
	return verdict(want == got), fmt.Sprintf("answer %q, want %q", clip(got), clip(want)), nil
}
