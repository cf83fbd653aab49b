package run

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// enoughTwins are how many pairs of a cell tell a harm of 0.1 from none.
const enoughTwins = 200

// WriteText writes the plan as a table for people.
func (p *TwinPlan) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "tool\tclass\tcalls\teligible\tchance\ttwins\tmissing\ttokens\tUSD\tseconds")
	total, few := TwinCell{USD: new(0.0)}, false
	for _, c := range p.Cells {
		missing := fmt.Sprint(max(0, enoughTwins-c.Twins))
		if c.Eligible < enoughTwins {
			missing += "*"
			few = true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%.3g\t%d\t%s\t%d\t%s\t%.0f\n", c.Tool, c.Class, c.Position, c.Eligible, c.P, c.Twins, missing, c.Tokens, dollars(c.USD), c.Seconds)
		total.Twins, total.Tokens, total.Seconds = total.Twins+c.Twins, total.Tokens+c.Tokens, total.Seconds+c.Seconds
		if c.Twins == 0 {
			continue
		}
		if c.USD == nil || total.USD == nil {
			total.USD = nil
		} else {
			total.USD = new(*total.USD + *c.USD)
		}
	}
	fmt.Fprintf(table, "all\t\t\t\t\t%d\t\t%d\t%s\t%.0f\n", total.Twins, total.Tokens, dollars(total.USD), total.Seconds)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d pairs of a cell tell a harm of 0.1 from none; so many are missing.\n", enoughTwins)
	if few {
		fmt.Fprintln(w, "* it has not so many calls: that takes more clean episodes (samples), or positions together.")
	}
	fmt.Fprintln(w, "Tokens, USD and seconds are what the clean episodes cost beyond the calls; agents that mend a fault need more.")
	for _, why := range slices.Sorted(maps.Keys(p.Skipped)) {
		if _, err := fmt.Fprintf(w, "%d clean episodes have no twins, or none from some call on: %s\n", p.Skipped[why], why); err != nil {
			return err
		}
	}
	return nil
}

// dollars is an amount, or a mark where a price is not known.
func dollars(usd *float64) string {
	if usd == nil {
		return "?"
	}
	return fmt.Sprintf("%.4f", *usd)
}
