package extract

import (
	"encoding/json"
	"strings"
)

// markdownTitle returns the heading that a text in Markdown begins with, or "".
func markdownTitle(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if title, ok := strings.CutPrefix(line, "# "); ok && !strings.HasPrefix(text, "#!") {
		return title
	}
	return ""
}

// maxIndent is the depth below which JSON is not indented further, as a few bytes at a depth of thousands would fill megabytes.
const maxIndent = 16

// indent returns JSON with a line for each value, at most limit bytes and the line that passes them. What is not JSON stays.
func indent(text string, limit int) string {
	if !json.Valid([]byte(text)) {
		return text
	}
	var out strings.Builder
	depth, quoted := 0, false
	line := func() {
		out.WriteByte('\n')
		out.WriteString(strings.Repeat("  ", min(depth, maxIndent)))
	}
	for i := 0; i < len(text) && out.Len() < limit; i++ {
		c := text[i]
		if quoted {
			out.WriteByte(c)
			if c == '\\' {
				i++
				out.WriteByte(text[i])
			}
			quoted = c != '"'
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			out.WriteByte(c)
			if rest := strings.TrimLeft(text[i+1:min(i+65, len(text))], " \t\r\n"); rest != "" && rest[0] == c+2 {
				out.WriteByte(c + 2) // the closing one stands two places after the opening one
				i += strings.IndexByte(text[i:], c+2)
				break
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			out.WriteByte(c)
		case ',':
			out.WriteByte(c)
			line()
		case ':':
			out.WriteString(": ")
		default:
			quoted = c == '"'
			out.WriteByte(c)
		}
	}
	return out.String()
}
