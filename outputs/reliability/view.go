package reliability

import (
	"fmt"
	"io"
	"text/tabwriter"

	"trajgen/outputs/estimate"
)

// WriteText writes the report as tables for people.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "reliability  %d clean episodes · %d twins (%d placebos) · %d diverged", r.Clean, r.Twins, r.Placebos, r.Diverged)
	if r.Orphans > 0 {
		fmt.Fprintf(w, " · %d without their clean episode", r.Orphans)
	}
	if r.Unplanted > 0 {
		fmt.Fprintf(w, " · %d whose call gave nothing that the fault changes", r.Unplanted)
	}
	fmt.Fprintln(w)
	if why := r.Broken(); why != nil {
		fmt.Fprintf(w, "do not trust these numbers: %v\n", why)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Placebo != nil || len(r.Cells) > 0 {
		fmt.Fprintln(table, "\ntool\tclass\tpairs\teligible\tnoticed (placebo)\tused wrong\tharm per call\textra turns\textra tokens\textra USD\tversus")
	}
	if r.Placebo != nil {
		r.Placebo.line(table, "placebo")
	}
	for _, c := range r.Cells {
		name := c.Tool
		if c.Unrecoverable {
			name += " (unrecoverable)"
		}
		c.line(table, name)
	}
	if len(r.Levels) > 0 {
		fmt.Fprintln(table, "\nlevel\tk\tpass^k\tinterval\ttasks")
	}
	for _, level := range r.Levels {
		for _, rate := range level.PassHatK {
			interval := "-"
			if rate.Low != nil {
				interval = fmt.Sprintf("[%.3f, %.3f]", *rate.Low, *rate.High)
			}
			fmt.Fprintf(table, "%g\t%d\t%.3f\t%s\t%d\n", level.Level, rate.K, rate.Value, interval, rate.Tasks)
		}
	}
	if len(r.Tools) > 0 {
		fmt.Fprintln(table, "\ntool\tcalls/episode\terrors\tof\terror rate\tat stake per episode")
	}
	for _, t := range r.Tools {
		stake := "-"
		if t.Stake != nil {
			stake = fmt.Sprintf("%.4f [%.4f, %.4f]", t.Stake.Value, t.Stake.Range.Low, t.Stake.Range.High)
		}
		fmt.Fprintf(table, "%s\t%.2f\t%d\t%d\t[%.1f %%, %.1f %%]\t%s\n", t.Tool, t.Calls, t.Errors, t.Of, 100*t.Rate.Low, 100*t.Rate.High, stake)
	}
	return table.Flush()
}

func (c *Cell) line(w io.Writer, name string) {
	noticed := fmt.Sprintf("%.2f", c.Noticed.Value)
	if c.Background != nil {
		noticed += fmt.Sprintf(" (%.2f)", c.Background.Value)
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, c.Class, c.Harm.N, c.Eligible, noticed, text(c.UsedWrong, "%.2f"),
		text(&c.Harm, "%.2f"), text(&c.Turns, "%+.1f"), text(c.Tokens, "%+.0f"), text(c.USD, "%+.4f"), text(c.Versus, "%+.2f"))
}

// text is a mean with its interval, or a dash.
func text(m *estimate.Mean, format string) string {
	switch {
	case m == nil || m.N == 0:
		return "-"
	case m.Range == nil:
		return fmt.Sprintf(format, m.Value) + " (one task)"
	}
	return fmt.Sprintf(format+" ["+format+", "+format+"]", m.Value, m.Range.Low, m.Range.High)
}
