package report

import (
	"fmt"
	"strings"
)

// Proofs are what was known of the tasks' verifiers when the run began.
type Proofs struct {
	Tasks  int `json:"tasks"` // of which something was known
	Failed int `json:"failed"`
	// Failing are the first of those that failed, by name.
	Failing []FailedProof `json:"failing,omitempty"`
}

// FailedProof is a task whose rewards say little, and why.
type FailedProof struct {
	Task string `json:"task"`
	Why  string `json:"why"`
}

// add counts a task; why is "" for one whose proof holds.
func (p *Proofs) add(task, why string) {
	p.Tasks++
	if why == "" {
		return
	}
	if p.Failed++; len(p.Failing) < maxTasks {
		p.Failing = append(p.Failing, FailedProof{task, why})
	}
}

func (p *Proofs) fact() fact {
	if p == nil {
		return fact{}
	}
	f := fact{name: "proofs", text: fmt.Sprintf("of %s tasks, %s failed", Thousands(p.Tasks), Thousands(p.Failed)), alert: p.Failed > 0}
	const most = 5
	var names []string
	for _, each := range p.Failing[:min(most, len(p.Failing))] {
		names = append(names, fmt.Sprintf("%s (%s)", each.Task, each.Why))
	}
	if len(names) > 0 {
		f.text += ": " + strings.Join(names, ", ")
	}
	if p.Failed > len(names) {
		f.text += ", ..."
	}
	return f
}
