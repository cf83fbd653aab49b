package reliability

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"trajgen/outputs/estimate"
)

// table is a part of the report for people.
type table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// facts are the lines over the tables.
func (r *Report) facts() (lines []string) {
	line := fmt.Sprintf("%d clean episodes · %d twins (%d placebos) · %d diverged", r.Clean, r.Twins, r.Placebos, r.Diverged)
	if r.Orphans > 0 {
		line += fmt.Sprintf(" · %d without their clean episode", r.Orphans)
	}
	if r.Unplanted > 0 {
		line += fmt.Sprintf(" · %d whose call gave nothing that the fault changes", r.Unplanted)
	}
	lines = append(lines, line)
	if all := r.PrefixTokens + r.PaidTokens; all > 0 {
		lines = append(lines, fmt.Sprintf("twins paid for %d tokens; %d more (%.0f %% of all) came from their clean episodes", r.PaidTokens, r.PrefixTokens,
			100*float64(r.PrefixTokens)/float64(all)))
	}
	if why := r.Broken(); why != nil {
		lines = append(lines, fmt.Sprintf("do not trust these numbers: %v", why))
	}
	return lines
}

// tables are those that have something in them.
func (r *Report) tables() (all []table) {
	for _, t := range []table{r.cells(), r.levels(), r.tools()} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// cells lists the cells. A column that no cell fills is left out.
func (r *Report) cells() table {
	t := table{Title: "what agents lost", Head: []string{
		"tool", "class", "calls", "pairs", "missing", "eligible", "noticed (placebo)", "recovered", "used wrong", "dependence", "harm per call", "in dependent tasks",
		"extra turns", "extra tokens", "extra USD", "versus",
	}}
	cells := r.Cells
	if r.Placebo != nil {
		cells = append([]Cell{*r.Placebo}, cells...)
		cells[0].Tool, cells[0].Missing = "placebo", 0
	}
	for _, c := range cells {
		name, missing, recovered, dependence := c.Tool, "", "", ""
		if c.Unrecoverable {
			name += " (unrecoverable)"
		}
		if c.Missing > 0 {
			missing = fmt.Sprint(c.Missing)
		}
		if c.Recovered != nil {
			recovered = fmt.Sprintf("%.2f", *c.Recovered)
		}
		if c.Dependence != nil {
			dependence = fmt.Sprintf("%.2f", *c.Dependence)
		}
		noticed := fmt.Sprintf("%.2f", c.Noticed.Value)
		if c.Background != nil {
			noticed += fmt.Sprintf(" (%.2f)", c.Background.Value)
		}
		position := c.Position
		if position == "all" {
			position = ""
		}
		t.Rows = append(t.Rows, []string{
			name, c.Class, position, fmt.Sprint(c.Harm.N), missing, fmt.Sprintf("%.0f", c.Eligible), noticed, recovered, text(c.UsedWrong, "%.2f"), dependence, text(&c.Harm, "%.2f"),
			text(c.Dependent, "%.2f"), text(&c.Turns, "%+.1f"), text(c.Tokens, "%+.0f"), text(c.USD, "%+.4f"), text(c.Versus, "%+.2f"),
		})
	}
	return t.filled()
}

// filled leaves out columns in which nothing stands, and marks other empty fields.
func (t table) filled() table {
	short := table{Title: t.Title, Rows: make([][]string, len(t.Rows))}
	for column, head := range t.Head {
		used := false
		for _, row := range t.Rows {
			used = used || row[column] != ""
		}
		if !used {
			continue
		}
		short.Head = append(short.Head, head)
		for i, row := range t.Rows {
			value := row[column]
			if value == "" {
				value = "-"
			}
			short.Rows[i] = append(short.Rows[i], value)
		}
	}
	return short
}

func (r *Report) levels() table {
	t := table{Title: "success at a level of faults", Head: []string{"level", "k", "pass^k", "interval", "tasks"}}
	for _, level := range r.Levels {
		for _, rate := range level.PassHatK {
			interval := "-"
			if rate.Low != nil {
				interval = fmt.Sprintf("[%.3f, %.3f]", *rate.Low, *rate.High)
			}
			t.Rows = append(t.Rows, []string{
				fmt.Sprintf("%g", level.Level), fmt.Sprint(rate.K), fmt.Sprintf("%.3f", rate.Value), interval, fmt.Sprint(rate.Tasks),
			})
		}
	}
	return t
}

func (r *Report) tools() table {
	t := table{Title: "how tools failed by themselves, in clean episodes", Head: []string{
		"tool", "calls/episode", "errors", "of", "error rate", "p50 ms", "p99 ms", "at stake per episode",
	}}
	for _, tool := range r.Tools {
		stake := ""
		if tool.Stake != nil {
			stake = fmt.Sprintf("%.4f [%.4f, %.4f]", tool.Stake.Value, tool.Stake.Range.Low, tool.Stake.Range.High)
		}
		t.Rows = append(t.Rows, []string{
			tool.Tool, fmt.Sprintf("%.2f", tool.Calls), fmt.Sprint(tool.Errors), fmt.Sprint(tool.Of), fmt.Sprintf("[%.1f %%, %.1f %%]", 100*tool.Rate.Low, 100*tool.Rate.High),
			millis(tool.P50), millis(tool.P99), stake,
		})
	}
	return t.filled()
}

// millis is a quantile of seconds in milliseconds, with the ends of its interval that exist.
func millis(q estimate.Quantile) string {
	end := func(of *float64) string {
		if of == nil {
			return "?"
		}
		return fmt.Sprintf("%.0f", 1000**of)
	}
	return fmt.Sprintf("%.0f [%s, %s]", 1000*q.Value, end(q.Low), end(q.High))
}

// WriteText writes the report as tables for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "reliability  %s\n", strings.Join(r.facts(), "\n"))
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range r.tables() {
		fmt.Fprintln(out, "\n"+strings.Join(t.Head, "\t"))
		for _, row := range t.Rows {
			fmt.Fprintln(out, strings.Join(row, "\t"))
		}
	}
	return out.Flush()
}

// WriteMarkdown writes the report as a page of Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var page strings.Builder
	row := func(cells []string) {
		for _, cell := range cells {
			page.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		page.WriteString("|\n")
	}
	page.WriteString("# Reliability\n\n- " + strings.Join(r.facts(), "\n- ") + "\n")
	for _, t := range r.tables() {
		fmt.Fprintf(&page, "\n## %s\n\n", title(t.Title))
		row(t.Head)
		page.WriteString(strings.Repeat("| --- ", len(t.Head)) + "|\n")
		for _, cells := range t.Rows {
			row(cells)
		}
	}
	_, err := io.WriteString(w, page.String()+"\n"+explanation+"\n")
	return err
}

// explanation stands under the tables of pages.
const explanation = "Numbers are about all calls of the clean episodes that could have had the fault, with 95 % intervals over tasks. Harm is the success of " +
	"the clean episode minus that of its twin. The line of the placebos, which have no fault, has to hold 0. So many pairs as are missing would tell a harm of 0.1 from none."

func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// text is a mean with its interval, or "".
func text(m *estimate.Mean, format string) string {
	switch {
	case m == nil || m.N == 0:
		return ""
	case m.Range == nil:
		return fmt.Sprintf(format, m.Value) + " (one task)"
	}
	return fmt.Sprintf(format+" ["+format+", "+format+"]", m.Value, m.Range.Low, m.Range.High)
}
