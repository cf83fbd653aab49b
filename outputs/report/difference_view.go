package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"trajgen/outputs/estimate"
)

// WriteTerminal writes the difference for a terminal of the given width (at least 40; 0 is 80).
func (d *Difference) WriteTerminal(w io.Writer, width int, color bool) error {
	return writeTerminal(d, w, width, color)
}

func (d *Difference) title() string { return d.From + " → " + d.To }

func (d *Difference) facts() []fact {
	t := d.Tasks
	facts := []fact{{name: "tasks", text: fmt.Sprintf("%s compared", Thousands(t.Compared)), alert: t.Compared == 0}}
	var left []string
	for _, c := range seen([]Count{
		{"judged in one of the runs alone", t.Uncompared}, {"in the first run alone", t.OnlyFrom}, {"in the second run alone", t.OnlyTo},
	}) {
		left = append(left, Thousands(c.Count)+" "+c.Name)
	}
	if left != nil {
		facts = append(facts, fact{name: "left out", text: strings.Join(left, ", "), alert: true})
	}
	facts = append(facts,
		fact{name: "verdict", text: d.verdict() + " (one look, tasks like these)", alert: d.Success.Proves < 0},
		fact{name: "tasks that", text: fmt.Sprintf("got better %s, got worse %s, stayed %s%s",
			Thousands(d.Better), Thousands(d.Worse), Thousands(d.Same), d.sign())},
	)
	if at := d.Success.Detectable; at.Tasks != nil && d.Success.Proves == 0 {
		text := "changes of the success rate from " + percent(*at.Tasks)
		if at.FixedSuite != nil {
			text += "; of these very tasks from " + percent(*at.FixedSuite)
		}
		facts = append(facts, fact{name: "detectable", text: text})
	}
	for _, row := range []struct {
		name   string
		change estimate.Change
		format func(float64) string
	}{
		{"success rate", d.Success, percent}, {"reward", d.Reward, decimal}, {"turns", d.Turns, decimal},
		{"tokens", d.Tokens, significant}, {"cost", d.CostUSD, dollars}, {"seconds", d.Elapsed, significant},
	} {
		if row.change.From != nil {
			facts = append(facts, fact{name: row.name, text: changeText(row.change, row.format)})
		}
	}
	for _, line := range d.Experiment {
		facts = append(facts, fact{name: "differs", text: line})
	}
	return facts
}

// verdict says what the success rates prove.
func (d *Difference) verdict() string {
	e := d.Success.Change
	switch {
	case e.Mean == nil:
		return "nothing to compare"
	case d.Better+d.Worse == 0:
		return "no task changed"
	case e.Low == nil:
		return "too few tasks to tell"
	}
	switch d.Success.Proves {
	case 1:
		return "better: the interval of the success rate's change lies above zero"
	case -1:
		return "worse: the interval of the success rate's change lies below zero"
	}
	if e.Proves() != 0 {
		return "no difference is proved: what was not judged could undo it"
	}
	return "no difference is proved: the interval of the success rate's change holds zero"
}

func (d *Difference) sign() string {
	if d.SignP == nil {
		return ""
	}
	return "; sign test p = " + strconv.FormatFloat(*d.SignP, 'g', 2, 64)
}

func changeText(c estimate.Change, format func(float64) string) string {
	text := number(c.From, format) + " → " + number(c.To, format)
	if mean := c.Change.Mean; mean != nil {
		sign := ""
		if *mean >= 0 {
			sign = "+"
		}
		text += ", change " + sign + format(*mean)
	}
	if c.Change.Low != nil {
		text += "  95 % interval " + intervalText(c.Change, format)
	}
	return text + fmt.Sprintf(" (%s tasks)", Thousands(c.Change.Tasks)) + asideText(c.Change, format)
}

func (d *Difference) tables() []table {
	moves := table{title: "same task, same sample", head: []string{"", "episodes"}}
	for _, m := range d.Moves {
		moves.add(m.From.AgentsDoing() && !m.To.AgentsDoing(), string(m.From)+" → "+string(m.To), Thousands(m.Count))
	}
	changed := table{title: "tasks that changed", head: []string{"", "successes", "of", "now", "of", "reward", "now"}}
	for _, c := range d.Changed {
		changed.add(c.To.share() < c.From.share(), c.Task,
			Thousands(c.From.Successes), Thousands(c.From.Samples), Thousands(c.To.Successes), Thousands(c.To.Samples),
			number(c.From.Reward, decimal), number(c.To.Reward, decimal))
	}
	return filled(moves, changed)
}
