package registry

import (
	"math"
	"strconv"
	"strings"
)

// maxDigits bounds the integers that are written out: all of float64's, and far more than any tool takes.
const maxDigits = 400

// integer writes a number that is integral as digits, exactly: "42.0", "1e3", "+7" and "1_000" are 42, 1000, 7 and
// 1000. Going through a float would turn 9007199254740993 into another number.
func integer(text string) (string, bool) {
	n, ok := scanNumber(text)
	if !ok {
		return "", false
	}
	// The value is digits · 10^exp with the point moved behind the last digit.
	digits, exp := n.whole+n.fraction, n.exp-len(n.fraction)
	digits = strings.TrimLeft(digits, "0")
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

// number writes what a person would read as a number as JSON: an integral one as an integer as long as that is exact.
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

// scanNumber reads [+-] digits [. digits] [e [+-] digits], with single underscores between digits and white space
// around. Hexadecimal, inf and nan are no numbers here.
func scanNumber(text string) (decimal, bool) {
	var n decimal
	s := strings.TrimSpace(text)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			n.sign = "-"
		}
		s = s[1:]
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 100_000 || e < -100_000 {
			return n, false
		}
		n.exp = e
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	var ok bool
	if n.whole, ok = digitsOf(whole); !ok {
		return n, false
	}
	if n.fraction, ok = digitsOf(fraction); !ok {
		return n, false
	}
	if n.whole == "" && n.fraction == "" || point && len(mantissa) == 1 {
		return n, false
	}
	return n, true
}

func digitsOf(s string) (string, bool) {
	for i := range len(s) {
		switch {
		case s[i] >= '0' && s[i] <= '9':
		case s[i] == '_' && i > 0 && i < len(s)-1 && s[i-1] != '_':
		default:
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}
