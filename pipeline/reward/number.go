package reward

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

var number = kind{
	keys:   []string{"number", "tolerance", "relative", "unit"},
	given:  func(check episode.Check) bool { return check.Number != nil },
	read:   readNumber,
	verify: ofAnswer(verifyNumber),
}

func readNumber(check *episode.Check, key string, value Value) error {
	text, err := value.Text()
	if key == "unit" {
		check.Unit = strings.TrimSpace(text)
		if err == nil && check.Unit == "" {
			err = errors.New("it is empty; leave it out for a number of any unit")
		}
		return err
	}
	percent, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	if isPercent && err == nil && key == "tolerance" {
		check.Relative, err = strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if check.Relative /= 100; err != nil || !(check.Relative > 0 && finite(check.Relative)) {
			err = fmt.Errorf("%q, want a percentage above 0", text)
		}
		return err
	}
	n, err := value.Number()
	switch {
	case key == "number":
		check.Number = &n
	case err == nil && n < 0:
		err = fmt.Errorf("%v, want 0 or more", n)
	case key == "relative":
		check.Relative = n
	default:
		check.Tolerance = n
	}
	return err
}

// numbers finds decimal numbers as people write them: thousands in commas, a sign, an exponent.
var numbers = regexp.MustCompile(`[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?`)

// plainNumbers replaces what is typeset and a parser does not accept: the minus sign, LaTeX's thousands, spaces and signs.
var plainNumbers = strings.NewReplacer(
	"\u2212", "-", "{,}", ",", `\,`, " ", `\;`, " ", `\ `, " ", "~", " ", "\u00a0", " ", "\u202f", " ", `\%`, "%", `\$`, "$",
	`\text{`, "", `\mathrm{`, "", `^\circ`, "°", `^{\circ}`, "°")

// verifyNumber compares the last number of the answer, or the last one that has the unit or one that converts to it.
func verifyNumber(check episode.Check, answer string) (float64, string, error) {
	answer = plainNumbers.Replace(answer)
	unit, show := want(check.Unit), func(n float64) string { return strings.TrimSpace(fmt.Sprint(n, " ", check.Unit)) }
	wanted := show(*check.Number)
	for _, at := range slices.Backward(numbers.FindAllStringIndex(answer, -1)) {
		text := answer[at[0]:at[1]]
		// "3-5" is a range or a difference, never the number minus five.
		if at[0] > 0 && text[0] == '-' && isDigit(answer[at[0]-1]) {
			text, at[0] = text[1:], at[0]+1
		}
		got, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		if check.Unit != "" {
			in, fits := unit.convert(got, answer[:at[0]], answer[at[1]:])
			if !fits {
				continue
			}
			got = in
		}
		if err != nil || !finite(got) {
			return 0, fmt.Sprintf("%q is out of range, want %s", text, wanted), nil
		}
		want := *check.Number
		tolerance := max(check.Tolerance, check.Relative*math.Abs(want))
		tolerance = cmp.Or(tolerance, 1e-9*math.Max(math.Abs(want), 1))
		return verdict(math.Abs(got-want) <= tolerance), fmt.Sprintf("number %s, want %s", show(got), wanted), nil
	}
	if check.Unit != "" {
		return 0, fmt.Sprintf("no number with the unit %s in the answer, want %s", check.Unit, wanted), nil
	}
	return 0, fmt.Sprintf("no number in the answer, want %s", wanted), nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
