package toolbench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"trajgen/outputs/estimate"
)

// mostShown is how many failed calls are listed.
const mostShown = 20

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TOOL\tBACKEND\tWORKERS\tCALLS\tPLAYS\tERRORS\tRATE\tP50\tP95\tP99\tDIFFERING")
	for _, t := range r.Tools {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.Backend, t.Workers, t.Calls, t.Plays, t.Errors, t.rate(),
			micros(t.ElapsedUS.P50), micros(t.ElapsedUS.P95), micros(t.ElapsedUS.P99), t.differing())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, t := range r.Tools {
		if t.First != nil {
			fmt.Fprintf(w, "\n%s with %s differs from play to play at %s (%s)\n  - %s\n  + %s\n", t.Name, t.Backend, t.First.At, t.First.Kind, short(t.First.From), short(t.First.To))
		}
	}
	for _, u := range r.Backends {
		fmt.Fprintf(w, "\n%s: with %s it differs at %s (%s)\n  - %s\n  + %s\n", u.Call, u.Backend, u.At, u.Kind, short(u.From), short(u.To))
	}
	for _, f := range r.Failed[:min(len(r.Failed), mostShown)] {
		fmt.Fprintf(w, "\nnot as expected: %s (%s, %s, %d workers)\n  %s\n", f.Call, f.Tool, f.Backend, f.Workers, strings.Join(f.Wrong, "\n  "))
	}
	if more := len(r.Failed) - mostShown; more > 0 {
		fmt.Fprintf(w, "\n%d more were not as expected (--json has all)\n", more)
	}
	for _, a := range r.Alarms {
		fmt.Fprintf(w, "\ngot worse: %s (%s, %d workers)\n", a.Text, a.Backend, a.Workers)
	}
	return nil
}

// Bad reports whether a call was not as expected or something got worse.
func (r *Report) Bad() bool { return len(r.Failed) > 0 || len(r.Alarms) > 0 }

func (t *Tool) rate() string {
	if t.Failing == 0 {
		return fmt.Sprintf("<%.2g %%", 100*t.Between.High)
	}
	return fmt.Sprintf("%.2g %% (%.2g-%.2g)", 100*t.Rate, 100*t.Between.Low, 100*t.Between.High)
}

func (t *Tool) differing() string {
	if t.Pairs == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d of %d", t.Differing, t.Pairs)
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		text += fmt.Sprintf(" %s:%d", kind, t.Kinds[kind])
	}
	return text
}

// micros shows a quantile of microseconds: with its interval, or with its lower end where it has no upper one.
func micros(q estimate.Quantile) string {
	show := func(v float64) string { return time.Duration(v * 1e3).Round(10 * time.Microsecond).String() }
	switch {
	case q.Low != nil && q.High != nil:
		return fmt.Sprintf("%s (%s-%s)", show(q.Value), show(*q.Low), show(*q.High))
	case q.Low != nil:
		return "≥" + show(*q.Low)
	}
	return "~" + show(q.Value) // too few for either
}
