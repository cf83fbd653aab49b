package registry

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// maxDigits bounds the integers that are written as digits: enough for every float64.
const maxDigits = 400

// integer writes a number that is integral as digits, exactly: "42.0", "1e3", "+7" and "1_000" are 42, 1000, 7 and
// 1000. Going through a float would turn 9007199254740993 into another number.
func integer(text string) (string, bool) {
	n, ok := scanNumber(text)
	if !ok {
		return "", false
	}
	// The value is digits · 10^exp with the point moved behind the last digit.
	digits, exp := strings.TrimLeft(n.whole+n.fraction, "0"), n.exp-len(n.fraction)
	if digits == "" {
		return "0", true
	}
	if exp < 0 {
		cut := len(digits) + exp
		if cut <= 0 || strings.Trim(digits[cut:], "0") != "" {
			return "", false
		}
		digits, exp = digits[:cut], 0
	}
	if len(digits)+exp > maxDigits {
		return "", false
	}
	return n.sign + digits + strings.Repeat("0", exp), true
}

// number writes a text that a person would read as a number as JSON, a whole one as an integer if that is exact.
func number(text string) (string, bool) {
	n, ok := scanNumber(text)
	if !ok {
		return "", false
	}
	whole := strings.TrimLeft(n.whole, "0")
	if whole == "" {
		whole = "0"
	}
	spelled := n.sign + whole
	if n.fraction != "" {
		spelled += "." + n.fraction
	}
	if n.exp != 0 {
		spelled += "e" + strconv.Itoa(n.exp)
	}
	f, err := strconv.ParseFloat(spelled, 64)
	if err != nil || math.IsInf(f, 0) {
		return "", false
	}
	if digits, ok := integer(text); ok && (n.exp == 0 && n.fraction == "" || math.Abs(f) < 1<<53) {
		return digits, true
	}
	return spelled, true
}

type decimal struct {
	sign            string
	whole, fraction string // digits
	exp             int
}

// decimals has single underscores between digits. Hexadecimal, inf and nan are not numbers here.
var decimals = regexp.MustCompile(`^([+-]?)((?:\d(?:_?\d)*)?)(?:\.((?:\d(?:_?\d)*)?))?(?:[eE]([+-]?\d+))?$`)

func scanNumber(text string) (decimal, bool) {
	parts := decimals.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil || parts[2]+parts[3] == "" {
		return decimal{}, false
	}
	n := decimal{
		sign: strings.TrimPrefix(parts[1], "+"), whole: strings.ReplaceAll(parts[2], "_", ""),
		fraction: strings.ReplaceAll(parts[3], "_", ""),
	}
	var err error
	if parts[4] != "" {
		n.exp, err = strconv.Atoi(parts[4])
	}
	return n, err == nil && n.exp <= 100_000 && n.exp >= -100_000
}
