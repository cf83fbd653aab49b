// Package chars shortens texts to a number of characters, not bytes.
package chars

import "unicode/utf8"

// First returns a text's first n characters, followed by mark when there are more.
func First(text string, n int, mark string) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i] + mark
		}
		n--
	}
	return text
}

// Last returns a text's last n characters.
func Last(text string, n int) string {
	if excess := utf8.RuneCountInString(text) - n; excess > 0 {
		for i := range text {
			if excess == 0 {
				return text[i:]
			}
			excess--
		}
		return ""
	}
	return text
}
