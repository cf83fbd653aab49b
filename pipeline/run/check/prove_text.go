package check

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// Text is what fails and why, of attacks also which tasks fell to which, and a line of counts.
func (p *Proof) Text() string {
	var text bytes.Buffer
	for _, problem := range p.Problems {
		fmt.Fprintf(&text, "%s: %s, got %s (%s)\n  %s\n", problem.Task, p.wanted(problem), rewardText(problem.Reward, "no reward"), problem.Outcome,
			strings.ReplaceAll(problem.Detail, "\n", "\n  "))
	}
	if len(p.Attacks) > 0 {
		p.tables(&text)
	}
	fmt.Fprintf(&text, "%d tasks: %d fail, %d without a reference solution, %d without a verifier\n",
		p.Tasks, p.Failing(), len(p.NoGold), len(p.NoVerify))
	return text.String()
}

// wanted says what should have been where a task fails.
func (p *Proof) wanted(problem Problem) string {
	switch {
	case problem.Outcome == episode.SandboxError:
		return "the task must have its sandbox"
	case problem.Policy == scripted.Oracle:
		return "the reference solution must score 1"
	case problem.Policy == scripted.Noop:
		return "doing nothing must score 0"
	}
	attack := p.Attacks[slices.IndexFunc(p.Attacks, func(t Tally) bool { return t.Name == problem.Policy })]
	return fmt.Sprintf("%s must not score (the agent %s)", attack.Name, attack.Does)
}

// tables are the tasks where an attack got more than doing nothing, and the attacks.
func (p *Proof) tables(text *bytes.Buffer) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	began := false
	for _, v := range p.Verdicts {
		var gains []string
		for _, tally := range p.Attacks {
			reward := v.Attacks[tally.Name]
			switch {
			case slices.Contains(v.Passed, tally.Name):
				gains = append(gains, tally.Name)
			case reward != nil && v.Noop != nil && *reward > *v.Noop:
				gains = append(gains, fmt.Sprintf("%s (%v)", tally.Name, *reward))
			}
		}
		if len(gains) == 0 {
			continue
		}
		if !began {
			fmt.Fprintln(table, "\ntask\tgold\tnoop\tattacks that score")
			began = true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.Task, rewardText(v.Gold, "-"), rewardText(v.Noop, "-"), strings.Join(gains, ", "))
	}
	fmt.Fprintln(table, "\nattack\ttasks\tpassed\tthe agent")
	for _, tally := range p.Attacks {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", tally.Name, tally.Tried, tally.Passed, tally.Does)
	}
	fmt.Fprintln(table)
	_ = table.Flush() // a buffer takes all
}

func rewardText(reward *float64, none string) string {
	if reward == nil {
		return none
	}
	return cmp.Or(strconv.FormatFloat(*reward, 'g', 4, 64), none)
}
