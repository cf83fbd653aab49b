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
	names := 0
	for _, f := range facts {
		names = max(names, utf8.RuneCountInString(f.name))
	}
	for _, f := range facts {
		p.hang(styleOf(f.alert), pad(f.name, names, true)+"  ", oneLine(f.text))
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

func styleOf(alert bool) style {
	if alert {
		return yellow
	}
	return plain
}

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

// hang prints a text behind a beginning, and goes on below the text.
func (p *printer) hang(s style, beginning, text string) {
	indent := utf8.RuneCountInString(beginning)
	for _, part := range wrap(text, max(leastColumn, p.width-indent)) {
		p.line(s, beginning+part)
		beginning = strings.Repeat(" ", indent)
	}
}

// leastColumn is the least width of a column that gives way.
const leastColumn = 12

// table prints a table whose columns are as wide as they must be. The first one gives way when that is too much, and
// a wide last one goes on below itself.
func (p *printer) table(t table) {
	p.out.WriteString("\n")
	head := append([]string{strings.ToUpper(t.title)}, t.head[1:]...)
	rows := append([]row{{cells: head}}, t.rows[:min(len(t.rows), p.rows)]...)
	columns, reserve := len(head), 0 // those of a fixed width, and what all but the first take
	if t.wide {
		columns, reserve = columns-1, leastColumn
	}
	widths := make([]int, columns)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(row.cells[i])))
		}
		if i > 0 {
			reserve += widths[i] + 2
		}
	}
	widths[0] = min(widths[0], max(leastColumn, p.width-reserve))
	for i, row := range rows {
		s := styleOf(row.alert)
		if i == 0 {
			s = bold
		}
		cells := make([]string, columns)
		for i := range cells {
			cells[i] = pad(clip(oneLine(row.cells[i]), widths[i]), widths[i], t.left(i))
		}
		if line := strings.Join(cells, "  "); t.wide {
			p.hang(s, line+"  ", oneLine(row.cells[columns]))
		} else {
			p.line(s, line)
		}
	}
	if more := len(t.rows) + 1 - len(rows); more > 0 {
		p.line(plain, fmt.Sprintf("(%s more with --json, or where no terminal is written to)", Thousands(more+t.more)))
	} else if t.more > 0 {
		p.line(plain, fmt.Sprintf("(%s more are not listed)", Thousands(t.more)))
	}
}

// pad fills a text up to a width.
func pad(s string, width int, left bool) string {
	if left {
		width = -width // as fmt has it
	}
	return fmt.Sprintf("%*s", width, s)
}

// clip cuts a text to a width.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return cut(s, width-1)
}

// cut shortens a text to so many characters, and shows that it did.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return fmt.Sprintf("%.*s…", n, s)
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
