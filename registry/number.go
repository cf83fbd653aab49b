package registry

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Bounds of numbers: a float64 needs less, and packages that compute exactly would take all memory for 1e1000000000.
const (
	maxNumber = 1000 // characters
	maxDigits = 400  // of an integer, and the largest exponent
)

// integer writes a number that is integral as digits, exactly: "42.0", "1e3", "+7" and "1_000" are 42, 1000, 7 and
// 1000. Going through a float would turn 9007199254740993 into another number.
func integer(text string) (string, bool) {
	spelled, _ := jsonNumber(text)
	exact, ok := new(big.Rat).SetString(spelled)
	if !ok || !exact.IsInt() {
		return "", false
	}
	digits := exact.Num().String()
	return digits, len(digits) <= maxDigits
}

// number writes a text that a person would read as a number as JSON, a whole one as an integer if that is exact.
func number(text string) (string, bool) {
	spelled, _ := jsonNumber(text)
	f, err := strconv.ParseFloat(spelled, 64)
	if err != nil {
		return "", false
	}
	if digits, ok := integer(spelled); ok && (plainDigits(spelled) || math.Abs(f) < 1<<53) {
		return digits, true
	}
	return spelled, true
}

// decimals has single underscores between digits. Hexadecimal, inf and nan are not numbers here.
var decimals = regexp.MustCompile(`^([+-]?)((?:\d(?:_?\d)*)?)(?:\.((?:\d(?:_?\d)*)?))?(?:[eE]([+-]?\d+))?$`)

// jsonNumber spells a number as JSON does, if it is within the bounds.
func jsonNumber(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxNumber {
		return "", false
	}
	parts := decimals.FindStringSubmatch(text)
	if parts == nil || parts[2]+parts[3] == "" {
		return "", false
	}
	exp, err := strconv.Atoi(cmp.Or(parts[4], "0"))
	if err != nil || exp > maxDigits || exp < -maxDigits {
		return "", false
	}
	spelled := strings.TrimPrefix(parts[1], "+") + cmp.Or(strings.TrimLeft(parts[2], "0_"), "0")
	if parts[3] != "" {
		spelled += "." + parts[3]
	}
	if exp != 0 {
		spelled += "e" + strconv.Itoa(exp)
	}
	return strings.ReplaceAll(spelled, "_", ""), true
}
