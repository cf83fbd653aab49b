package policy

import "strings"

func (c *call) echo() string {
	escapes, newline := false, "\n"
	args := c.args
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		escapes = escapes || strings.Contains(args[0], "e")
		if strings.Contains(args[0], "n") {
			newline = ""
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text = cleanUnless(ansiC(text), text)
	}
	if len(text) > maxValue {
		return unknown
	}
	return text + newline
}

// cleanUnless takes NULs that decoding made out of a text, but keeps what was unknown before.
func cleanUnless(made, was string) string {
	if strings.Contains(was, unknown) {
		return made
	}
	return clean(made)
}

// printf fills a format in. -v puts the text into a variable.
func (c *call) printf() stream {
	args, variable := c.args, ""
	if len(args) > 1 && args[0] == "-v" {
		variable, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return stream{}
	}
	text := format(args[0], args[1:])
	if variable != "" {
		c.j.setText(variable, text, c.taint)
		return stream{}
	}
	return stream{text: text, set: true, taint: c.taint}
}

func format(pattern string, args []string) string {
	var b strings.Builder
	if strings.Contains(pattern, unknown) {
		return unknown
	}
	pattern = clean(ansiC(pattern))
	for round := 0; round == 0 || len(args) > 0; round++ {
		used := false
		for i := 0; i < len(pattern); i++ {
			if pattern[i] != '%' || i+1 == len(pattern) {
				b.WriteByte(pattern[i])
				continue
			}
			for i++; i < len(pattern)-1 && strings.IndexByte("0123456789.-+ #*hlqjzt", pattern[i]) >= 0; i++ {
			}
			if pattern[i] == '%' {
				b.WriteByte('%')
				continue
			}
			arg := ""
			if used = true; len(args) > 0 {
				arg, args = args[0], args[1:]
			}
			switch pattern[i] {
			case 'b':
				b.WriteString(cleanUnless(ansiC(arg), arg))
			case 'c':
				b.WriteString(arg[:min(1, len(arg))])
			case 'x', 'o', 'X', 'e', 'f', 'g':
				b.WriteString(unknown)
			default:
				b.WriteString(arg)
			}
			if b.Len() > maxValue {
				return unknown
			}
		}
		if !used {
			break
		}
	}
	return b.String()
}
