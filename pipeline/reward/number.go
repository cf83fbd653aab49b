package reward

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

var number = kind{
	keys:  []string{"number", "tolerance"},
	given: func(check episode.Check) bool { return check.Number != nil },
	read: func(check *episode.Check, key string, value Value) error {
		n, err := value.Number()
		switch {
		case key == "number":
			check.Number = &n
		case err == nil && n < 0:
			err = fmt.Errorf("%v, want 0 or more", n)
		default:
			check.Tolerance = n
		}
		return err
	},
	verify: ofAnswer(verifyNumber),
}

// numbers finds decimal numbers as people write them: thousands in commas, a sign, an exponent.
var numbers = regexp.MustCompile(`[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?`)

// plainNumbers replaces typographic signs that a parser does not accept: the minus sign, LaTeX's thousands.
var plainNumbers = strings.NewReplacer("\u2212", "-", "{,}", ",")

// verifyNumber compares the last number of the answer.
func verifyNumber(check episode.Check, answer string) (float64, string, error) {
	answer = plainNumbers.Replace(answer)
	found := numbers.FindAllStringIndex(answer, -1)
	if len(found) == 0 {
		return 0, fmt.Sprintf("no number in the answer, want %v", *check.Number), nil
	}
	last := found[len(found)-1]
	text := answer[last[0]:last[1]]
	// "3-5" is a range or a difference, never the number minus five.
	if last[0] > 0 && text[0] == '-' && isDigit(answer[last[0]-1]) {
		text = text[1:]
	}
	got, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return 0, fmt.Sprintf("%q is out of range, want %v", text, *check.Number), nil
	}
	want := *check.Number
	tolerance := check.Tolerance
	if tolerance == 0 {
		tolerance = 1e-9 * math.Max(math.Abs(want), 1)
	}
	return verdict(math.Abs(got-want) <= tolerance), fmt.Sprintf("number %v, want %v", got, want), nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
