package rawtext

import "strings"

// code follows the code fences and backticks of Markdown through the content. A model that shows how a call looks does
// it there. A fence that is never closed hides the rest: a reply that was cut within a fence must not become a call.
type code struct {
	fence  byte // '`' or '~' within a fence
	length int
	ticks  int  // backticks on this line
	line   bool // something is on this line already
}

func (c *code) inside() bool { return c.fence != 0 || c.ticks%2 == 1 }

// read takes the next piece of the content, which may end in the middle of a line.
func (c *code) read(text string) {
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		c.readLine(line)
		if ended {
			c.ticks, c.line = 0, false
		}
		text = rest
	}
}

func (c *code) readLine(line string) {
	if start := strings.TrimLeft(line, " "); !c.line && len(line)-len(start) <= 3 && startsWith(start, "```", "~~~") {
		mark, rest := start[0], strings.TrimLeft(start, start[:1])
		n, info := len(start)-len(rest), strings.Trim(rest, " \t\r")
		switch {
		case c.fence == 0 && !strings.Contains(info, "`"):
			c.fence, c.length, c.line = mark, n, true
			return
		case c.fence == mark && n >= c.length && info == "":
			c.fence, c.line = 0, true
			return
		}
	}
	if line != "" {
		c.line = true
	}
	if c.fence == 0 {
		c.ticks += strings.Count(line, "`")
	}
}
