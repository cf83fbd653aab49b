// Package cron keeps jobs, reckons when they are due, and runs them.
//
// A Table is jobs in memory, as an episode has them. A Store is a table in a directory, which commands and a Daemon share.
package cron

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Variable is in the environment of all that a job starts: the job's name. What finds it makes no jobs, which would make others.
const Variable = "TRAJGEN_CRON_JOB"

// TickVariable is the time for which a job was started, which need not be now.
const TickVariable = "TRAJGEN_CRON_TICK"

// The states of a job.
const (
	Scheduled = "scheduled"
	Paused    = "paused"
	Done      = "done" // it has run for the last time
)

// Job is what runs, and when.
type Job struct {
	ID       string `json:"job_id"`
	Name     string `json:"name"`
	Schedule string `json:"schedule"`
	Zone     string `json:"timezone"`
	Repeat   int    `json:"repeat,omitempty"` // how often it runs; 0 has no end
	Deliver  string `json:"deliver,omitempty"`
	Workdir  string `json:"workdir,omitempty"`

	Prompt      string            `json:"prompt,omitempty"`
	Skills      []string          `json:"skills,omitempty"`
	Toolsets    []string          `json:"enabled_toolsets,omitempty"`
	Model       map[string]string `json:"model,omitempty"`
	Script      string            `json:"script,omitempty"` // below the folder scripts
	NoAgent     bool              `json:"no_agent,omitempty"`
	ContextFrom []string          `json:"context_from,omitempty"` // jobs whose last output the prompt begins with

	Command []string `json:"command,omitempty"`
	RunFile string   `json:"run_file,omitempty"` // that a prompt is played with
	Grace   string   `json:"grace,omitempty"`    // how late it may begin
	Timeout string   `json:"timeout,omitempty"`

	State string     `json:"state"`
	From  time.Time  `json:"created_at"` // or the change of its schedule: intervals count from there
	Next  *time.Time `json:"next_run_at,omitempty"`
	Runs  int        `json:"runs"`
	Begun *time.Time `json:"running,omitempty"` // the tick that is being run
	Last  *Ended     `json:"last,omitempty"`
}

// Times say when the job runs next, and what became of its last run.
func (j Job) Times() (next, last string) {
	next, last = j.State, "has not run"
	if j.Next != nil {
		next = "next " + j.Next.Format(time.RFC3339)
	}
	if j.Begun != nil {
		next = "running"
	}
	if j.Last != nil {
		last = strings.TrimSpace(fmt.Sprintf("%s for %s %s", j.Last.Status, j.Last.Tick.Format(time.RFC3339), j.Last.Error))
	}
	return next, last
}

// What became of a tick.
const (
	OK      = "ok"
	Failed  = "failed"
	Timeout = "timeout"
	Missed  = "missed"  // it was later than the job's grace when it was seen
	Skipped = "skipped" // the run before was still going on
	Lost    = "lost"    // it began, and the daemon died
)

// Ended is what became of a tick, the time for which a job was to run.
type Ended struct {
	Tick   time.Time `json:"tick"`
	Status string    `json:"status"`
	Exit   int       `json:"exit_code,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// Table is jobs in the order in which they were made.
type Table struct {
	Jobs []Job `json:"jobs"`
	Made int   `json:"made"` // jobs that there ever were
}

// ErrUnknown is the error for a job that does not exist.
var ErrUnknown = errors.New("no such job")

// Limits of jobs.
const (
	MaxPrompt = 4000 // characters
	maxName   = 100
)

// Add makes a job of what j says of it.
func (t *Table) Add(j Job, now time.Time) (Job, error) {
	j.ID = fmt.Sprintf("job_%d", t.Made+1)
	if j.Name == "" {
		j.Name = strings.Join(strings.Fields(j.Prompt), " ")
		if runes := []rune(j.Name); len(runes) > 50 {
			j.Name = string(runes[:50])
		}
		if j.Name == "" {
			j.Name = j.ID
		}
	}
	if err := t.schedule(&j, now); err != nil {
		return j, err
	}
	t.Made++
	t.Jobs = append(t.Jobs, j)
	return j, nil
}

// schedule checks a job and lets its schedule begin.
func (t *Table) schedule(j *Job, now time.Time) error {
	j.From, j.State = now, Scheduled
	s, err := j.parse()
	if err == nil && s.Once() && j.Repeat > 1 {
		err = fmt.Errorf("repeat is %d, and schedule %q has a single time", j.Repeat, j.Schedule)
	}
	if err = errors.Join(err, t.check(j)); err != nil {
		return err
	}
	j.reckon(s, now)
	return nil
}

// parse reads the job's schedule.
func (j *Job) parse() (Schedule, error) {
	zone, err := Zone(j.Zone)
	if err != nil {
		return Schedule{}, err
	}
	return Parse(j.Schedule, zone, j.From)
}

// reckon sets the time after one, or ends the job.
func (j *Job) reckon(s Schedule, after time.Time) {
	next := s.Next(after)
	if j.Next = &next; next.IsZero() || j.Repeat > 0 && j.Runs >= j.Repeat {
		j.State, j.Next = Done, nil
	}
}

var target = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}(:\S.{0,499})?$`)

// check says what is wrong with a job beside its schedule.
func (t *Table) check(j *Job) error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	length := utf8.RuneCountInString
	control := strings.ContainsFunc(j.Name, func(r rune) bool { return r < ' ' })
	bad(length(j.Name) > maxName || control, "name: want one line of at most %d characters", maxName)
	bad(length(j.Prompt) > MaxPrompt, "prompt has over %d characters", MaxPrompt)
	bad(j.Repeat < 0, "repeat is %d; want how often it runs, or 0 for no end", j.Repeat)
	bad(j.Deliver != "" && !target.MatchString(j.Deliver), "deliver is %q; want local, or a place such as telegram:CHAT", j.Deliver)
	bad(j.Workdir != "" && !path.IsAbs(j.Workdir), "workdir %q is not an absolute path", j.Workdir)
	bad(j.Script != "" && !isScript(j.Script),
		"script %q: want the path of a .py or .sh file below the folder scripts, without ..", j.Script)
	bad(j.NoAgent && j.Script == "", "no_agent runs a script alone: give script")
	bad(!j.NoAgent && j.Prompt == "" && len(j.Skills) == 0 && len(j.Command) == 0, "it does nothing: give a prompt")
	for _, length := range []string{j.Grace, j.Timeout} {
		_, err := duration(length)
		bad(err != nil, "%q is not a length of time such as 90m", length)
	}
	for _, ref := range j.ContextFrom {
		other, err := t.find(ref)
		bad(err != nil, "context_from: %w %q", ErrUnknown, ref)
		bad(err == nil && other.ID == j.ID, "context_from: a job has no context from itself")
	}
	return errors.Join(errs...)
}

// isScript holds scripts to their folder.
func isScript(name string) bool {
	ext := path.Ext(name)
	return (ext == ".py" || ext == ".sh") && !path.IsAbs(name) && !strings.ContainsAny(name, "\\\x00\n") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// duration reads a length of time; 0 where there is none.
func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("not above 0")
	}
	return d, err
}

// find finds a job by id, or by a name that no other has.
func (t *Table) find(ref string) (found *Job, err error) {
	count := 0
	for i := range t.Jobs {
		switch ref {
		case t.Jobs[i].ID:
			return &t.Jobs[i], nil
		case t.Jobs[i].Name:
			found = &t.Jobs[i]
			count++
		}
	}
	switch count {
	case 1:
		return found, nil
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrUnknown, ref)
	}
	return nil, fmt.Errorf("%d jobs are called %q: give the id of one", count, ref)
}

// Find finds a job by id, or by a name that no other has.
func (t *Table) Find(ref string) (Job, error) {
	found, err := t.find(ref)
	if err != nil {
		return Job{}, err
	}
	return *found, nil
}

// Change changes a job, or leaves it as it was. A new schedule begins now.
func (t *Table) Change(ref string, now time.Time, change func(*Job)) (Job, error) {
	found, err := t.find(ref)
	if err != nil {
		return Job{}, err
	}
	j := *found
	change(&j)
	if j.Schedule != found.Schedule || j.Zone != found.Zone || j.Repeat != found.Repeat {
		state := j.State
		if j.Repeat != found.Repeat {
			j.Runs = 0
		}
		if err = t.schedule(&j, now); state == Paused {
			j.State, j.Next = Paused, nil
		}
	} else {
		err = t.check(&j)
	}
	if err != nil {
		return *found, err
	}
	*found = j
	return j, nil
}

// Pause keeps a job from running until Resume.
func (t *Table) Pause(ref string) (Job, error) {
	j, err := t.find(ref)
	switch {
	case err != nil:
		return Job{}, err
	case j.State == Done:
		return *j, fmt.Errorf("job %s is done: there is nothing to pause", j.ID)
	}
	j.State, j.Next = Paused, nil
	return *j, nil
}

// Resume lets a paused job run again, from now on.
func (t *Table) Resume(ref string, now time.Time) (Job, error) {
	j, err := t.find(ref)
	switch {
	case err != nil:
		return Job{}, err
	case j.State != Paused:
		return *j, fmt.Errorf("job %s is %s, not paused", j.ID, j.State)
	}
	s, err := j.parse()
	if err == nil && s.Next(now).IsZero() {
		err = fmt.Errorf("the time of job %s has passed: give it another schedule", j.ID)
	}
	if err != nil {
		return *j, err
	}
	j.State = Scheduled
	j.reckon(s, now)
	return *j, nil
}

// Remove forgets a job.
func (t *Table) Remove(ref string) (Job, error) {
	found, err := t.find(ref)
	if err != nil {
		return Job{}, err
	}
	j := *found
	t.Jobs = slices.DeleteFunc(t.Jobs, func(other Job) bool { return other.ID == j.ID })
	return j, nil
}

// Trigger makes a job due now.
func (t *Table) Trigger(ref string, now time.Time) (Job, error) {
	j, err := t.find(ref)
	switch {
	case err != nil:
		return Job{}, err
	case j.State != Scheduled:
		return *j, fmt.Errorf("job %s is %s: only one that is scheduled can be run", j.ID, j.State)
	}
	j.Next = &now
	return *j, nil
}
