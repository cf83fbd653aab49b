package tools

import "unicode/utf8"

func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "..."
		}
		n--
	}
	return text
}

func lastChars(text string, n int) string {
	if excess := utf8.RuneCountInString(text) - n; excess > 0 {
		for i := range text {
			if excess == 0 {
				return text[i:]
			}
			excess--
		}
	}
	return text
}
