package tools_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
)

// damages are the ways in which models break JSON, with the share of calls that must be read exactly all the same. It
// is 0 where a text can be read in several ways, or is not whole.
var damages = []struct {
	name   string
	floor  int // percent
	damage func(c brokenCall, rng *rand.Rand) string
	valid  bool // the text may be JSON, of another kind
	cut    bool // the server says that the text is cut
}{
	{name: "nothing", valid: true, floor: 100, damage: func(c brokenCall, _ *rand.Rand) string { return c.json() }},
	{name: "quotes are not escaped", floor: 45, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) })
	}},
	{name: "some quotes are not escaped", floor: 25, damage: func(c brokenCall, rng *rand.Rand) string {
		return in(c, func(text string) string { return some(text, `\"`, `"`, rng) })
	}},
	{name: "quotes and line ends are not escaped", floor: 45, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, strings.NewReplacer(`\\`, `\\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace)
	}},
	{name: "line ends and tabs are not escaped", floor: 90, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t").Replace)
	}},
	{name: "some line ends are not escaped", damage: func(c brokenCall, rng *rand.Rand) string {
		return in(c, func(text string) string {
			return strings.ReplaceAll(some(strings.ReplaceAll(text, `\\`, "\x00"), `\n`, "\n", rng), "\x00", `\\`)
		})
	}},
	{name: "tabs are not escaped", floor: 85, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, strings.NewReplacer(`\\`, `\\`, `\t`, "\t").Replace)
	}},
	{name: "nothing is escaped", floor: 50, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.text = func(text string) string { return `"` + text + `"` }
		return c.write(s)
	}},
	{name: "backslashes are not escaped", floor: 15, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, func(text string) string { return strings.ReplaceAll(text, `\\`, `\`) })
	}},
	{name: "backslashes are escaped where JSON knows the letter", floor: 25, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, halfEscaped)
	}},
	{name: "apostrophes are escaped", floor: 60, damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, func(text string) string { return strings.ReplaceAll(text, `'`, `\'`) })
	}},
	{name: "dollars are escaped", damage: func(c brokenCall, _ *rand.Rand) string {
		return in(c, func(text string) string { return strings.ReplaceAll(text, `$`, `\$`) })
	}},
	{name: "a dict of Python", floor: 98, damage: func(c brokenCall, _ *rand.Rand) string { return c.write(python()) }},
	{name: "single quotes", floor: 75, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.key = func(text string) string { return `'` + text + `'` }
		s.text = func(text string) string { return `'` + jsonInside(text) + `'` }
		return c.write(s)
	}},
	{name: "single quotes that are escaped inside", floor: 98, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.key = func(text string) string { return `'` + text + `'` }
		s.text = func(text string) string {
			return `'` + strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(jsonInside(text)) + `'`
		}
		return c.write(s)
	}},
	{name: "literals of Python", floor: 100, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.yes, s.no, s.nothing = "True", "False", "None"
		return c.write(s)
	}},
	{name: "names without quotes", floor: 100, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.key = func(text string) string { return text }
		return c.write(s)
	}},
	{name: "a script of JavaScript", floor: 80, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.key, s.comma, s.open, s.close = func(text string) string { return text }, ",\n  ", "{\n  ", ",\n}"
		s.text = func(text string) string {
			return "`" + strings.NewReplacer("\\", `\\`, "`", "\\`", "${", "\\${").Replace(text) + "`"
		}
		return c.write(s)
	}},
	{name: "triple quotes", floor: 60, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.text = func(text string) string { return `"""` + strings.ReplaceAll(text, `\`, `\\`) + `"""` }
		return c.write(s)
	}},
	{name: "curly quotes around", floor: 98, damage: func(c brokenCall, _ *rand.Rand) string { return curly(c, jsonInside) }},
	{name: "curly quotes everywhere", floor: 15, damage: func(c brokenCall, _ *rand.Rand) string {
		return curly(c, func(text string) string {
			n := 0
			return strings.Map(func(r rune) rune {
				if r == '"' {
					n++
					return []rune("”“")[n%2]
				}
				return r
			}, jsonInside(text))
		})
	}},
	{name: "a trailing comma", floor: 100, damage: with("{", ",}")},
	{name: "a comma too few", floor: 100, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.comma = "\n "
		return c.write(s)
	}},
	{name: "comments", floor: 100, damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.open, s.comma, s.close = "{ // it's the call\n", ", /* then */\n", " // the end\n}"
		return c.write(s)
	}},
	{name: "a comment without an end", damage: func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.comma = ", // then "
		return c.write(s)
	}},
	{name: "no closing bracket", floor: 80, damage: with("{", "")},
	{name: "no closing bracket, a line more", floor: 80, damage: with("{", "\n")},
	{name: "brackets too many", floor: 100, damage: with("{", "}}")},
	{name: "a fence", floor: 100, damage: with("```json\n{", "}\n```")},
	{name: "text around", floor: 100, damage: with("Sure! I'll make the call:\n\n{", "}\n\nThat should do it, shouldn't it?")},
	{name: "tags around", floor: 100, damage: with("<tool_call>\n{", "}\n</tool_call>")},
	{name: "encoded twice", floor: 100, valid: true, damage: func(c brokenCall, _ *rand.Rand) string { return jsonText(c.json()) }},
	{name: "encoded twice, without quotes", floor: 100, damage: func(c brokenCall, _ *rand.Rand) string { return jsonInside(c.json()) }},
	{name: "encoded twice, a dict of Python", floor: 98, valid: true, damage: func(c brokenCall, _ *rand.Rand) string { return jsonText(c.write(python())) }},
	{name: "no closing quote", damage: func(c brokenCall, rng *rand.Rand) string {
		s, n, at := plain(), 0, rng.IntN(c.texts())
		s.text = func(text string) string {
			if n++; n-1 == at {
				return `"` + jsonInside(text)
			}
			return jsonText(text)
		}
		return c.write(s)
	}},
	{name: "no opening quote", damage: func(c brokenCall, rng *rand.Rand) string {
		s, n, at := plain(), 0, rng.IntN(c.texts())
		s.text = func(text string) string {
			if n++; n-1 == at {
				return jsonInside(text) + `"`
			}
			return jsonText(text)
		}
		return c.write(s)
	}},
	{name: "no closing quote, quotes are not escaped", damage: func(c brokenCall, rng *rand.Rand) string {
		s, n, at := plain(), 0, rng.IntN(c.texts())
		s.text = func(text string) string {
			text = `"` + strings.ReplaceAll(jsonInside(text), `\"`, `"`)
			if n++; n-1 == at {
				return text
			}
			return text + `"`
		}
		return c.write(s)
	}},
	{name: "cut at a byte", damage: func(c brokenCall, rng *rand.Rand) string {
		text := c.json()
		at := 1 + rng.IntN(len(text)-1)
		if strings.HasPrefix(strings.TrimSpace(text[at:]), ",") {
			return "" // as if a bracket were missing: only the server knows
		}
		return text[:at]
	}},
	{name: "cut behind a comma", damage: func(c brokenCall, _ *rand.Rand) string {
		c.members = c.members[:len(c.members)-1]
		if len(c.members) == 0 {
			return ""
		}
		return strings.TrimSuffix(c.json(), "}") + ","
	}},
	{name: "cut behind a value, as the server says", cut: true, damage: func(c brokenCall, _ *rand.Rand) string {
		c.members = c.members[:len(c.members)-1]
		if len(c.members) == 0 {
			return ""
		}
		return strings.TrimSuffix(c.json(), "}")
	}},
	{name: "cut, quotes are not escaped", damage: func(c brokenCall, rng *rand.Rand) string {
		text := in(c, func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) })
		at := 1 + rng.IntN(len(text)-1)
		if text[at-1] == '"' || strings.HasSuffix(text[:at], `"}`) {
			return "" // as if a bracket were missing, or nothing
		}
		return text[:at]
	}},
	{name: "two calls", damage: func(c brokenCall, _ *rand.Rand) string { return c.json() + ", " + other(c).json() }},
	{name: "two calls, quotes are not escaped", damage: func(c brokenCall, _ *rand.Rand) string {
		escaped := func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) }
		return in(c, escaped) + "\n" + in(other(c), escaped)
	}},
	{name: "begun twice", damage: func(c brokenCall, rng *rand.Rand) string {
		text := c.json()
		return text[:1+rng.IntN(len(text)-1)] + text
	}},
	{name: "a key twice", damage: func(c brokenCall, _ *rand.Rand) string {
		return with("{"+jsonText(c.members[0].key)+`: "other", `, ",}")(c, nil)
	}},
	{name: "a key that the tool has not", damage: func(c brokenCall, _ *rand.Rand) string {
		return with("{", `, "encoding": "utf-8",}`)(c, nil)
	}},
	{name: "a key that the tool has not, quotes are not escaped", damage: func(c brokenCall, _ *rand.Rand) string {
		return strings.ReplaceAll(with("{", `, "encoding": "utf-8"}`)(c, nil), `\"`, `"`)
	}},
	{name: "line ends are not escaped, in a fence, a trailing comma", floor: 90, damage: func(c brokenCall, _ *rand.Rand) string {
		text := in(c, strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t").Replace)
		return "```\n" + strings.TrimSuffix(text, "}") + ",\n}\n```\n"
	}},
	{name: "quotes are not escaped, in a fence", floor: 55, damage: func(c brokenCall, _ *rand.Rand) string {
		return "```json\n" + in(c, func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) }) + "\n```"
	}},
	{name: "a dict of Python, no closing bracket", floor: 80, damage: func(c brokenCall, _ *rand.Rand) string {
		return strings.TrimSuffix(c.write(python()), "}")
	}},
	{name: "two of these at once", floor: 65, damage: func(c brokenCall, rng *rand.Rand) string {
		inside, around, s := insides[rng.IntN(len(insides))], arounds[rng.IntN(len(arounds))], plain()
		s.text = func(text string) string { return `"` + inside(jsonInside(text)) + `"` }
		s.open, s.comma, s.close = around[0], around[1], around[2]
		switch rng.IntN(4) {
		case 0:
			s.key = func(text string) string { return text }
		case 1:
			s.key = func(text string) string { return `'` + text + `'` }
		}
		return c.write(s)
	}},
}

// insides are damages of what stands in quotes.
var insides = []func(string) string{
	func(text string) string { return text },
	func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) },
	strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t").Replace,
	strings.NewReplacer(`\\`, `\\`, `\t`, "\t").Replace,
	strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t", `\"`, `"`).Replace,
	func(text string) string { return strings.ReplaceAll(text, `'`, `\'`) },
	halfEscaped,
}

// arounds are damages of how an object begins, goes on and ends.
var arounds = [][3]string{
	{"{", ", ", "}"}, {"{", ",", ",}"}, {"{", ", ", ""}, {"{", "\n", "}"}, {"{", " // the next:\n,", "}"}, {"{", ", ", "}}"},
	{"```json\n{\n  ", ",\n  ", "\n}\n```"}, {"Call: {", ", ", "}\nDone."},
}

// in changes what stands inside of the quotes of JSON.
func in(c brokenCall, change func(string) string) string {
	s := plain()
	s.text = func(text string) string { return `"` + change(jsonInside(text)) + `"` }
	return c.write(s)
}

// with puts something else where the brackets of the object were.
func with(open, close string) func(brokenCall, *rand.Rand) string {
	return func(c brokenCall, _ *rand.Rand) string {
		s := plain()
		s.open, s.close = open, close
		return c.write(s)
	}
}

// some replaces about half.
func some(text, old, new string, rng *rand.Rand) string {
	parts := strings.Split(text, old)
	var b strings.Builder
	for i, part := range parts {
		if b.WriteString(part); i < len(parts)-1 {
			b.WriteString([]string{old, new}[rng.IntN(2)])
		}
	}
	return b.String()
}

// halfEscaped forgets to escape a backslash where JSON has no such escape: \d.
func halfEscaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], `\\`) {
			i++
			if b.WriteByte('\\'); i+1 < len(text) && strings.IndexByte(`"\/bfnrtu`, text[i+1]) < 0 {
				continue
			}
			b.WriteByte('\\')
			continue
		}
		if b.WriteByte(text[i]); text[i] == '\\' {
			i++
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func python() style {
	return style{key: repr, text: repr, yes: "True", no: "False", nothing: "None", colon: ": ", comma: ", ", open: "{", close: "}"}
}

// repr writes a text as Python's repr does.
func repr(text string) string {
	mark := byte('\'')
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		mark = '"'
	}
	b := []byte{mark}
	for _, r := range text {
		switch {
		case r == rune(mark) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < 0x100 && !unicode.IsPrint(r):
			b = append(b, `\x`...)
			b = append(b, strconv.FormatInt(int64(r)+0x100, 16)[1:]...)
		case !unicode.IsPrint(r):
			b = strconv.AppendQuoteRuneToASCII(b, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return string(append(b, mark))
}

func curly(c brokenCall, inside func(string) string) string {
	s := plain()
	s.key = func(text string) string { return "“" + text + "”" }
	s.text = func(text string) string { return "“" + inside(text) + "”" }
	return c.write(s)
}

// texts counts the texts of a call.
func (c brokenCall) texts() int {
	n := 0
	for _, each := range c.members {
		switch v := each.value.(type) {
		case string:
			n++
		case []string:
			n += len(v)
		}
	}
	return n
}

// other is another call of the same tool.
func other(c brokenCall) brokenCall {
	return brokenCall{c.tool, append([]argument{{c.members[0].key, "other"}}, c.members[1:]...)}
}
