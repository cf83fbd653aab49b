package policy

import (
	"strconv"
	"strings"
)

// unescape removes backslashes.
func unescape(text string, quoted bool) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		next := text[i+1]
		switch {
		case next == '\n':
			i++
		case quoted && strings.IndexByte("$`\"\\", next) < 0:
			out = append(out, '\\')
		default:
			out = append(out, next)
			i++
		}
	}
	return string(out)
}

// ansiC decodes what stands in $'...' and what printf and echo -e understand.
func ansiC(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		number := func(base, digits int) {
			end := i + 1
			for end < len(text) && end <= i+digits && isDigit(text[end], base) {
				end++
			}
			n, err := strconv.ParseUint(text[i+1:end], base, 32)
			switch {
			case err != nil:
				out = append(out, '\\', text[i])
				return
			case base == 8 || digits == 2:
				out = append(out, byte(n))
			default:
				out = append(out, string(rune(n))...)
			}
			i = end - 1
		}
		switch c := text[i]; c {
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			out = append(out, "\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'e', 'E':
			out = append(out, 0x1b)
		case '\\', '\'', '"', '?':
			out = append(out, c)
		case 'x':
			number(16, 2)
		case 'u':
			number(16, 4)
		case 'U':
			number(16, 8)
		case 'c':
			if i+1 < len(text) {
				i++
				out = append(out, text[i]&0x1f)
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i--
			if c == '0' && i+2 < len(text) && isDigit(text[i+2], 8) {
				i++
			}
			number(8, 3)
		default:
			out = append(out, '\\', c)
		}
	}
	return string(out)
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '9':
		return int(c-'0') < base
	case base == 16:
		return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}
