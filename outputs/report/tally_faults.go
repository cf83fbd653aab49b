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
	for each := range ep.Tree() {
		for i := range each.Turns {
			for _, fault := range each.Turns[i].Retries {
				m.retries.add(fault, each)
			}
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
type faultTally map[string]*faultCount

// faultCount has as its example the first in dataset order, whatever the order in which episodes are added.
type faultCount struct {
	FaultCount
	pause       time.Duration
	row, sample int // of the example
}

func (t *faultTally) add(f episode.Fault, ep *episode.Episode) {
	kind, class := string(f.Outcome)+"/"+f.Class, f.Class
	if (*t)[kind] == nil && len(*t) >= maxNames {
		kind, class = string(f.Outcome)+"/"+other, other
	}
	c := tallyOf(t, kind)
	c.Outcome, c.Class = kept(f.Outcome), kept(class)
	c.Count++
	c.pause += f.Pause
	if c.Count == 1 || cmp.Or(cmp.Compare(ep.Row, c.row), cmp.Compare(ep.Key.Sample, c.sample), cmp.Compare(ep.ID, c.ID)) < 0 {
		c.row, c.sample, c.ID = ep.Row, ep.Key.Sample, kept(ep.ID)
		c.Example = strings.Clone(cut(f.Message, 500))
	}
}

func (t faultTally) list() []FaultCount {
	list := make([]FaultCount, 0, len(t))
	for _, c := range t {
		c.PauseUS = c.pause.Microseconds()
		list = append(list, c.FaultCount)
	}
	slices.SortFunc(list, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Class, b.Class))
	})
	return list
}
