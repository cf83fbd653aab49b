package cron

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"trajgen/pipeline/episode"
)

// Settings say what the time is in an episode that schedules jobs.
type Settings struct {
	Now      string `yaml:"now" flag:"cron-now" experiment:"given" help:"what the time is for the tool cronjob, such as 2026-11-30T09:00; it stands still (default 2026-01-05T09:00, a Monday; a task's own now comes first)"`
	Timezone string `yaml:"timezone" flag:"cron-timezone" experiment:"given" help:"time zone of schedules that the tool cronjob makes (default UTC; a task's own timezone comes first)"`
}

const (
	defaultNow  = "2026-01-05T09:00"
	defaultZone = "UTC"
)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	if _, _, err := s.clock(); err != nil {
		return fmt.Errorf("cron: %w", err)
	}
	return nil
}

// clock is the time and its zone.
func (s Settings) clock() (time.Time, *time.Location, error) {
	if s.Now == "" {
		s.Now = defaultNow
	}
	if s.Timezone == "" {
		s.Timezone = defaultZone
	}
	zone, err := Zone(s.Timezone)
	if err != nil {
		return time.Time{}, nil, err
	}
	began, err := Parse(s.Now, zone, time.Time{})
	if err != nil || !began.Once() || delay.MatchString(s.Now) {
		return time.Time{}, nil, fmt.Errorf("now is %q; want a time such as 2026-11-30T09:00", s.Now)
	}
	return began.once.In(zone), zone, nil
}

// State is under which name checks of a dataset find the jobs: that of a site.
const State = "cron"

// View is the jobs of an episode and its clock, which stands still. None of them runs.
type View struct {
	Now  time.Time
	Zone string
	// Inside says that a job plays the episode.
	Inside bool
	// Toolsets says which of some toolsets do not exist. Optional.
	Toolsets func(names []string) error

	mu    sync.Mutex // guards table
	table Table
}

// View makes the jobs of an attempt at a task, which may say what the time is: "cron": {"now": ..., "timezone": ...}.
func (s Settings) View(task *episode.Task) (*View, error) {
	var own struct{ Cron any }
	if bytes.Contains(task.Metadata, []byte(`"cron"`)) {
		if err := json.Unmarshal(task.Metadata, &own); err != nil {
			return nil, fmt.Errorf("cron: %w", err)
		}
	}
	said, _ := own.Cron.(map[string]any) // anything else is another dataset's own
	for key, value := range said {
		text, isText := value.(string)
		switch {
		case key == "now" && isText:
			s.Now = text
		case key == "timezone" && isText:
			s.Timezone = text
		default:
			return nil, fmt.Errorf("cron: %q: want now and timezone, as texts", key)
		}
	}
	now, zone, err := s.clock()
	if err != nil {
		return nil, fmt.Errorf("cron: %w", err)
	}
	return &View{Now: now, Zone: zone.String()}, nil
}

// Use reads or changes the jobs, one use at a time.
func (v *View) Use(do func(t *Table) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return do(&v.table)
}

// JSON is all jobs, as checks of site_state see them.
func (v *View) JSON() (state json.RawMessage) {
	_ = v.Use(func(t *Table) (err error) {
		state, err = json.Marshal(map[string]any{"now": v.Now, "jobs": append([]Job{}, t.Jobs...)})
		return err
	}) // of strings and times
	return state
}
