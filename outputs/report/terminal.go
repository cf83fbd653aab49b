package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// terminalRows is how many rows a table has in a terminal; the rest is in the other forms.
const terminalRows = 12

// WriteTerminal writes a compact form for a terminal of the given width (at least 40). 0 is no terminal: lines are as long
// as they must be, and tables are whole. What the caller has to add, such as paths, goes behind it.
func (r *Report) WriteTerminal(w io.Writer, width int, color bool) error {
	return writeTerminal(r, w, width, color)
}

// page is what is laid out: for a terminal, or as Markdown.
type page interface {
	title() string
	facts() []fact
	tables() []table
}

func writeTerminal(r page, w io.Writer, width int, color bool) error {
	p := &printer{out: bufio.NewWriter(w), width: max(40, width), rows: terminalRows, color: color}
	if width == 0 {
		p.width, p.rows = math.MaxInt32, math.MaxInt
	}
	p.line(bold, clip(oneLine(r.title()), p.width))
	facts := r.facts()
	name := 0
	for _, f := range facts {
		name = max(name, utf8.RuneCountInString(f.name))
	}
	for _, f := range facts {
		style := plain
		if f.alert {
			style = yellow
		}
		for i, text := range wrap(oneLine(f.text), p.width-name-2) {
			label := ""
			if i == 0 {
				label = f.name
			}
			p.line(style, pad(label, name, true)+"  "+text)
		}
	}
	for _, t := range r.tables() {
		p.table(t)
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	yellow style = "\x1b[33m"
)

type printer struct {
	out   *bufio.Writer
	width int
	rows  int // of a table
	color bool
}

func (p *printer) line(s style, text string) {
	text = strings.TrimRight(clip(text, p.width), " ")
	if p.color && s != plain && text != "" {
		text = string(s) + text + "\x1b[0m"
	}
	p.out.WriteString(text + "\n")
}

// table prints a table whose columns are as wide as they must be. The first one gives way when that is too much, and
// a wide last one goes on below itself.
func (p *printer) table(t table) {
	p.out.WriteString("\n")
	rows := t.rows[:min(len(t.rows), p.rows)]
	head := append([]string{strings.ToUpper(t.title)}, t.head[1:]...)
	widths := make([]int, len(head))
	numbers := 0
	for i := range head {
		if t.wide && i == len(head)-1 {
			break
		}
		widths[i] = utf8.RuneCountInString(head[i])
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(row[i])))
		}
		if i > 0 {
			numbers += widths[i] + 2
		}
	}
	reserve := numbers
	if t.wide {
		reserve += 12 // of the last column
	}
	widths[0] = min(widths[0], max(12, p.width-reserve))
	print := func(s style, cells []string) {
		var line strings.Builder
		for i, cell := range cells {
			if i > 0 {
				line.WriteString("  ")
			}
			if !t.wide || i < len(cells)-1 {
				line.WriteString(pad(clip(oneLine(cell), widths[i]), widths[i], t.left(i)))
				continue
			}
			indent := utf8.RuneCountInString(line.String())
			for n, part := range wrap(oneLine(cell), max(12, p.width-indent)) {
				if n > 0 {
					p.line(s, line.String())
					line.Reset()
					line.WriteString(strings.Repeat(" ", indent))
				}
				line.WriteString(part)
			}
		}
		p.line(s, line.String())
	}
	print(bold, head)
	for i, row := range rows {
		s := plain
		if t.alert != nil && t.alert[i] {
			s = yellow
		}
		print(s, row)
	}
	if more := len(t.rows) - len(rows); more > 0 {
		p.line(plain, fmt.Sprintf("(%s more with --json, or where no terminal is written to)", Thousands(more+t.more)))
	} else if t.more > 0 {
		p.line(plain, fmt.Sprintf("(%s more are not listed)", Thousands(t.more)))
	}
}

// pad fills a text up to a width.
func pad(s string, width int, left bool) string {
	space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if left {
		return s + space
	}
	return space + s
}

// clip cuts a text to a width.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return strings.TrimSuffix(cut(s, width-1), "…") + "…"
}

// wrap breaks a text into lines of a width, at spaces where there are any.
func wrap(s string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(s) {
		if n := utf8.RuneCountInString(word); used > 0 && used+1+n <= width {
			line, used = line+" "+word, used+1+n
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		runes := []rune(word)
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		line, used = string(runes), len(runes)
	}
	return append(lines, line)
}
