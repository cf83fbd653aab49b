package cron

import (
	"cmp"
	"slices"
	"time"
)

// Tick is a job that is due.
type Tick struct {
	Job Job
	At  time.Time // when it was to run
}

// How late a job may begin that does not say: half the time to the one after it, within bounds.
const (
	leastGrace = 2 * time.Minute
	mostGrace  = 2 * time.Hour
)

// wrongClock is how far ahead of the clock the last tick may be. One further ahead comes from a clock that was wrong.
const wrongClock = time.Hour

// Claim takes up to room jobs that are due, and moves each to its next time: when it returns, they count as begun. Of several
// times that have passed only the last is seen, and that one is missed if it is later than the job's grace. busy says that a job's
// last run is still going on.
func (t *Table) Claim(now time.Time, room int, busy func(id string) bool) (due []Tick, passed []Tick) {
	var open []*Job
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Begun != nil && !busy(j.ID) {
			j.Last, j.Begun = &Ended{Tick: *j.Begun, Status: Lost}, nil
			passed = append(passed, Tick{*j, j.Last.Tick})
		}
		if s, err := j.parse(); err == nil && j.State == Scheduled {
			j.follow(s, now)
			if !j.Next.After(now) {
				open = append(open, j)
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *Job) int { return a.Next.Compare(*b.Next) })
	for _, j := range open {
		s, _ := j.parse()
		at := j.last(s, now)
		status := ""
		switch {
		case now.Sub(at) > j.grace(s, at):
			status = Missed
		case busy(j.ID):
			status = Skipped
		case len(due) == room:
			continue
		}
		if status == "" {
			j.Runs++
			j.Begun = &at
		} else {
			j.Last = &Ended{Tick: at, Status: status}
		}
		j.reckon(s, now)
		if status == "" {
			due = append(due, Tick{*j, at})
		} else {
			passed = append(passed, Tick{*j, at})
		}
	}
	return due, passed
}

// last is the latest of the job's times that have come.
func (j *Job) last(s Schedule, now time.Time) time.Time {
	at := *j.Next
	for next := s.Next(at); !next.IsZero() && !next.After(now); next = s.Next(at) {
		if later := s.Next(at.Add(now.Sub(at) / 2)); !later.IsZero() && !later.After(now) { // not each of a year's
			next = later
		}
		at = next
	}
	return at
}

// follow moves the next time to an earlier one after the clock was put back.
func (j *Job) follow(s Schedule, now time.Time) {
	after := now
	for _, tick := range []*time.Time{j.Begun, j.tick()} {
		if tick != nil && tick.After(after) && tick.Sub(now) <= wrongClock {
			after = *tick
		}
	}
	if next := s.Next(after); !next.IsZero() && next.Before(*j.Next) {
		j.Next = &next
	}
}

func (j *Job) tick() *time.Time {
	if j.Last == nil {
		return nil
	}
	return &j.Last.Tick
}

func (j *Job) grace(s Schedule, at time.Time) time.Duration {
	given, _ := duration(j.Grace) // which was checked
	period := mostGrace * 2
	if next := s.Next(at); !next.IsZero() {
		period = next.Sub(at)
	}
	return cmp.Or(given, min(max(period/2, leastGrace), mostGrace))
}

// Until is when a job is due next, if any is.
func (t *Table) Until() (next time.Time, any bool) {
	for _, j := range t.Jobs {
		if j.State == Scheduled && (!any || j.Next.Before(next)) {
			next, any = *j.Next, true
		}
	}
	return next, any
}

// End says what became of a tick that was claimed.
func (t *Table) End(id string, ended Ended) {
	if j, err := t.find(id); err == nil { // it may have been removed
		j.Begun, j.Last = nil, &ended
	}
}
