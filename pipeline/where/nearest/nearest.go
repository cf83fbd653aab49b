// Package nearest finds the known name that was meant by an unknown one.
package nearest

import (
	"strconv"
	"strings"
)

// Bare is a tool name without the parts that models often change: case, separators and the namespace of their own tool syntax.
// Read_File, read-file, readFile and functions.read_file are all read_file.
func Bare(name string) string {
	name = strings.TrimSpace(name)
	for _, prefix := range []string{"functions.", "functions/", "tools.", "default_api."} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == ' ' || r == '.':
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// To is the known name that was most likely meant, or "".
func To(name string, known []string) string {
	best, distance := "", 3
	short := Bare(name)
	if short == "" || len(short) > 64 {
		return ""
	}
	for _, each := range known {
		other := Bare(each)
		allowed := 2
		if min(len(short), len(other)) <= 4 {
			allowed = 1
		}
		if d := Edits(short, other); d <= allowed && d < distance {
			best, distance = each, d
		}
	}
	return best
}

// Edits counts the letters to insert, delete, replace or swap with a neighbour.
func Edits(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last = last, row
		row = make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// DidYouMean is ` (did you mean "x"?)` with the known name that was most likely meant, or nothing.
func DidYouMean(name string, known []string) string {
	if meant := To(name, known); meant != "" {
		return " (did you mean " + strconv.Quote(meant) + "?)"
	}
	return ""
}
