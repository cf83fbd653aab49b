package cron

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the same times on machines without the data of time zones

	"github.com/robfig/cron/v3"
)

// Schedule says when a job runs.
type Schedule struct {
	zone  *time.Location
	once  time.Time     // the only time
	every time.Duration // since from
	from  time.Time
	spec  cron.Schedule
	wall  bool // spec names hours of the day
}

// Forms are the schedules that Parse reads, for messages.
const Forms = `30m, 2h or 1d (once, after that time), "every 2h", five fields as in a crontab ("0 9 * * 1-5"), ` +
	`or a time ("2026-11-30T09:00")`

var (
	delay   = regexp.MustCompile(`^(\d{1,6}) ?(m|min|mins|minutes?|h|hrs?|hours?|d|days?)$`)
	field   = regexp.MustCompile(`^[0-9A-Za-z*?/,-]+$`)
	clock   = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}
	crontab = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
)

// longest is the most that a delay or an interval takes.
const longest = 366 * 24 * time.Hour

// Parse reads a schedule that begins at from. Times without a zone are of the zone.
func Parse(text string, zone *time.Location, from time.Time) (Schedule, error) {
	s := Schedule{zone: zone, from: from}
	text = strings.TrimSpace(text)
	words := strings.Fields(text)
	interval, repeated := strings.CutPrefix(strings.ToLower(strings.Join(words, " ")), "every ")
	parts := delay.FindStringSubmatch(interval)
	switch {
	case parts != nil:
		count, _ := strconv.Atoi(parts[1]) // six digits
		unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[parts[2][0]]
		length := time.Duration(count) * unit
		if length < time.Minute || length > longest {
			return s, fmt.Errorf("schedule %q: want from 1m to 366d", text)
		}
		if s.every = length; !repeated {
			s.once, s.every = from.Add(length), 0
		}
		return s, nil
	case len(words) == 5 && !slices.ContainsFunc(words, func(w string) bool { return !field.MatchString(w) }):
		words[4] = sundays(words[4])
		spec, err := crontab.Parse(strings.Join(words, " "))
		if err != nil {
			return s, fmt.Errorf("schedule %q: %w", text, err)
		}
		s.spec, s.wall = spec, !strings.HasPrefix(words[1], "*")
		if s.Next(from).IsZero() {
			return s, fmt.Errorf("schedule %q never comes", text)
		}
		return s, nil
	}
	for _, layout := range clock {
		at, err := time.ParseInLocation(layout, strings.Join(words, "T"), time.UTC)
		if err != nil {
			continue
		}
		if s.once = at; !strings.HasSuffix(layout, "Z07:00") {
			s.once = s.real(at)
		}
		if !s.once.After(from) {
			return s, fmt.Errorf("schedule %q is not after now, %s", text, from.In(zone).Format(time.RFC3339))
		}
		return s, nil
	}
	return s, fmt.Errorf("schedule %q: want %s", text, Forms)
}

// sundays writes 7 for Sunday, which crontabs know, as 0.
func sundays(days string) string {
	list := strings.Split(days, ",")
	for i, day := range list {
		first, isRange := strings.CutSuffix(day, "-7")
		switch {
		case day == "7", first == "7":
			list[i] = "0"
		case isRange:
			list[i] = first + "-6,0"
		}
	}
	return strings.Join(list, ",")
}

// Once says that the schedule has a single time.
func (s Schedule) Once() bool { return !s.once.IsZero() }

// Next is the first time after one; zero when there is none.
//
// A schedule that names hours goes by the clock on the wall: a time that daylight saving leaves out comes when the clock has been
// put forward, and one that comes twice counts the first time. Others go on through the change.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.Once() && s.once.After(after):
		return s.once.In(s.zone)
	case s.Once():
		return time.Time{}
	case s.every > 0:
		next := s.from.Add(after.Sub(s.from) / s.every * s.every)
		if !next.After(after) {
			next = next.Add(s.every)
		}
		return next.In(s.zone)
	case !s.wall:
		return s.spec.Next(after.In(s.zone))
	}
	for wall := reading(after.In(s.zone)); ; {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return wall
		}
		if next := s.real(wall); next.After(after) {
			return next
		}
	}
}

// reading is what the clock on the wall shows, as if it were of UTC.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// real is the first moment at which the clock on the wall shows a reading, or has passed it.
func (s Schedule) real(wall time.Time) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, s.zone)
	start, end := t.ZoneBounds()
	switch shown := reading(t); { // in a gap time.Date takes either of the zones
	case shown.Before(wall):
		return end
	case shown.After(wall):
		return start
	case !start.IsZero():
		_, offset := start.Add(-1).Zone()
		if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(start) {
			return first.In(s.zone)
		}
	}
	return t
}

// Zone finds a time zone by its name, such as Europe/Berlin.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("timezone " + strconv.Quote(name) + " is not known; want one such as Europe/Berlin or UTC")
	}
	return zone, nil
}
