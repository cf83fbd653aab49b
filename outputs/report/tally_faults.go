package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// mishaps are the faults of episodes, of requests and of attempts that were followed by others.
type mishaps struct{ faults, retries, earlier faultTally }

func (m *mishaps) add(ep *episode.Episode) {
	if ep.Fault != nil {
		m.faults.add(*ep.Fault, ep)
	}
	for i := range ep.Turns {
		for _, fault := range ep.Turns[i].Retries {
			m.retries.add(fault, ep)
		}
	}
	for i := range ep.Earlier {
		if fault := ep.Earlier[i].Fault; fault != nil {
			m.earlier.add(*fault, ep)
		}
	}
}

func (m *mishaps) list() Mishaps { return Mishaps{m.faults.list(), m.retries.list(), m.earlier.list()} }

// faultTally counts faults by outcome and class.
type faultTally map[faultKind]*faultCount

type faultKind struct {
	outcome episode.Outcome
	class   string
}

type faultCount struct {
	n       int
	example string
	first   place
	pause   time.Duration
}

// place is where an episode stands in the dataset.
type place struct {
	row, sample int
	id          string
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.row, o.row), cmp.Compare(p.sample, o.sample), cmp.Compare(p.id, o.id))
}

func (t faultTally) add(f episode.Fault, ep *episode.Episode) {
	kind := faultKind{kept(f.Outcome), kept(f.Class)}
	if _, ok := t[kind]; !ok && len(t) >= maxNames {
		kind.class = other
	}
	c := t[kind]
	here := place{ep.Row, ep.Key.Sample, ep.ID}
	if c == nil {
		c = new(faultCount)
		t[kind] = c
	}
	c.n++
	c.pause += f.Pause
	// The first in dataset order, whatever the order in which episodes are added.
	if c.n == 1 || here.compare(c.first) < 0 {
		here.id = kept(here.id)
		c.example, c.first = strings.Clone(cut(f.Message, 500)), here
	}
}

func (t faultTally) list() []FaultCount {
	list := make([]FaultCount, 0, len(t))
	for kind, c := range t {
		list = append(list, FaultCount{kind.outcome, kind.class, c.n, c.example, c.first.id, c.pause.Microseconds()})
	}
	slices.SortFunc(list, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	seen := 0
	for i := range s {
		if seen++; seen > n {
			return s[:i] + "…"
		}
	}
	return s
}
