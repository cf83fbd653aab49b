package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as 512M or 2G.
type Size int64

// ParseSize reads a number of bytes such as 512M.
func ParseSize(text string) (Size, error) {
	units := map[string]int64{"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	upper := strings.ToUpper(strings.TrimSpace(text))
	number := strings.TrimRight(upper, "KMGTIB")
	unit := strings.TrimSuffix(strings.TrimSuffix(upper[len(number):], "B"), "I")
	factor, known := units[unit]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !known || !(n >= 0) || n*float64(factor) > 1<<60 {
		return 0, fmt.Errorf("%q is not a size such as 512M or 2G", text)
	}
	return Size(n * float64(factor)), nil
}

func (s Size) String() string {
	for _, unit := range []struct {
		name   string
		factor Size
	}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if s >= unit.factor && s%unit.factor == 0 {
			return fmt.Sprintf("%d%s", s/unit.factor, unit.name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes a size such as 512M.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}
