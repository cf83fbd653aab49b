package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteMarkdown writes the report as a page of Markdown, whole.
func (r *Report) WriteMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s\n\n", markdown(r.title()))
	for _, f := range r.facts() {
		text := markdown(f.text)
		if f.alert {
			text = "**" + text + "**"
		}
		fmt.Fprintf(out, "- %s: %s\n", f.name, text)
	}
	for _, t := range r.tables() {
		fmt.Fprintf(out, "\n## %s\n\n", strings.ToUpper(t.title[:1])+t.title[1:])
		writeMarkdownTable(out, t)
		if t.more > 0 {
			fmt.Fprintf(out, "\n%s more are not listed.\n", Thousands(t.more))
		}
	}
	fmt.Fprint(out, "\nEach task counts once, however many samples it has. 95 % intervals are about tasks like these (Clopper-Pearson for as many "+
		"tosses of a coin as the tasks are worth), or about these very tasks, played again (Wilson), where that is said. "+
		"Episodes without a reward are no samples; those that were to be judged are unresolved. "+
		"Tokens and cost are those of the attempts that stand, without attempts that were played again.\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func writeMarkdownTable(out *bufio.Writer, t table) {
	line := func(cells []string) {
		out.WriteString("|")
		for _, cell := range cells {
			out.WriteString(" " + markdown(cell) + " |")
		}
		out.WriteString("\n")
	}
	line(t.head)
	out.WriteString("|")
	for i := range t.head {
		if t.left(i) {
			out.WriteString("---|")
		} else {
			out.WriteString("---:|")
		}
	}
	out.WriteString("\n")
	for _, row := range t.rows {
		line(row.cells)
	}
}

// markdownEscapes keep texts of datasets, models and servers (tags, tool names, messages) from becoming markup or cells.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`, "$", `\$`, "&", `\&`,
)

// markdown is a text as Markdown, on one line.
func markdown(s string) string { return markdownEscapes.Replace(oneLine(s)) }

// oneLine takes the control characters out of a text: line breaks would leave the table, escape sequences would write
// over the terminal, and bidirectional overrides would make a line read as another.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
