package cron_test

import (
	"strings"
	"testing"
	"time"

	"trajgen/tools/cron"
)

func idle(string) bool { return false }

// began is the time of tests, a Monday.
const began = "2026-11-30T09:00:00Z"

func TestJobs(t *testing.T) {
	now := at(t, began)
	var table cron.Table
	add := func(j cron.Job) cron.Job {
		t.Helper()
		if j.Zone == "" {
			j.Zone = "UTC"
		}
		made, err := table.Add(j, now)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := add(cron.Job{Schedule: "every 2h", Prompt: "Look at the\nlogs and say what is wrong with the servers of the shop today"})
	if first.ID != "job_1" || first.Name != "Look at the logs and say what is wrong with the se" || first.Next.Format(time.RFC3339) != "2026-11-30T11:00:00Z" {
		t.Errorf("%+v", first)
	}
	second := add(cron.Job{Name: "second", Schedule: "30m", Prompt: "x", ContextFrom: []string{"job_1"}})
	for want, j := range map[string]cron.Job{
		"it does nothing": {}, "below the folder scripts": {Script: "../x.sh", NoAgent: true}, "a .py or .sh file": {Script: "x.exe", Prompt: "x"},
		"not an absolute path": {Prompt: "x", Workdir: "here"}, "no such job": {Prompt: "x", ContextFrom: []string{"job_9"}},
		"give script": {Prompt: "x", NoAgent: true}, "one line": {Prompt: "x", Name: "a\nb"}, "over 4000": {Prompt: strings.Repeat("x", 4001)},
		"deliver is": {Prompt: "x", Deliver: "To Me"}, "repeat is -1": {Prompt: "x", Repeat: -1}, "a length of time": {Prompt: "x", Grace: "soon"},
		"is not known": {Prompt: "x", Zone: "Here/There"},
	} {
		j.Schedule, j.Zone = "every 1h", strings.TrimSpace(j.Zone+" ")
		if _, err := table.Add(j, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", j, err, want)
		}
	}
	if _, err := table.Add(cron.Job{Schedule: "1h", Zone: "UTC", Prompt: "x", Repeat: 2}, now); err == nil {
		t.Error("a single time is repeated")
	}

	if _, err := table.Change("second", now, func(j *cron.Job) { j.ContextFrom = []string{"job_2"} }); err == nil {
		t.Error("a job has context from itself")
	}
	if got, err := table.Find(second.ID); err != nil || got.ContextFrom[0] != "job_1" {
		t.Errorf("a change that was refused is there: %+v, %v", got, err)
	}
	later := now.Add(time.Hour)
	changed, err := table.Change("second", later, func(j *cron.Job) { j.Schedule = "every 1d" })
	if err != nil || !changed.Next.Equal(later.Add(24*time.Hour)) {
		t.Errorf("%+v, %v", changed, err)
	}
	if paused, err := table.Pause("second"); err != nil || paused.Next != nil || paused.State != cron.Paused {
		t.Errorf("%+v, %v", paused, err)
	}
	if _, err := table.Trigger("second", later); err == nil {
		t.Error("a paused job is run")
	}
	if resumed, err := table.Resume("second", later); err != nil || resumed.State != cron.Scheduled || resumed.Next == nil {
		t.Errorf("%+v, %v", resumed, err)
	}
	if _, err := table.Trigger("second", later); err != nil {
		t.Error(err)
	}
	if due, _ := table.Claim(later, 9, idle); len(due) != 1 || due[0].Job.ID != second.ID || !due[0].At.Equal(later) {
		t.Errorf("%+v", due)
	}
	if _, err := table.Remove("second"); err != nil || len(table.Jobs) != 1 {
		t.Errorf("%v, %+v", err, table.Jobs)
	}
	if third := add(cron.Job{Schedule: "1h", Prompt: "x"}); third.ID != "job_3" {
		t.Errorf("the id %s was there before", third.ID)
	}
	add(cron.Job{Schedule: "2h", Prompt: "x"})
	if _, err := table.Remove("x"); err == nil || len(table.Jobs) != 3 {
		t.Errorf("one of two jobs of a name is removed: %v", err)
	}
}

// TestClaim goes through times at which a daemon may look at a job.
func TestClaim(t *testing.T) {
	for _, tt := range []struct {
		name, schedule, grace string
		repeat                int
		looks                 string // times after the beginning
		want                  string // of each look: the time that was due, what passed with its status, or -
	}{
		{"on time", "every 1h", "", 0, "59m 1h 1h1m 2h", "- 1h - 2h"},
		{"a little late", "every 1h", "", 0, "1h29m 2h", "1h 2h"},
		{"several that passed are one", "every 1h", "", 0, "5h10m 6h", "5h 6h"},
		{"too late", "every 1d", "", 0, "27h 48h", "24h:missed 48h"},
		{"a grace of its own", "every 1d", "12h", 0, "27h", "24h"},
		{"once, late", "30m", "", 0, "2h 3h", "30m -"},
		{"once, too late", "30m", "", 0, "4h 5h", "30m:missed -"},
		{"three times", "every 1h", "", 3, "1h 2h 3h 4h", "1h 2h 3h -"},
		{"missed ones do not count", "every 1d", "", 1, "27h 48h 72h", "24h:missed 48h -"},
		{"a year later", "*/5 * * * *", "", 0, "8760h2m 8760h5m", "8760h 8760h5m"},
		{"clock put back a little", "every 1h", "", 0, "1h 59m 1h 2h", "1h - - 2h"},
		{"clock was wrong by days", "every 1h", "", 0, "100h 1h30m 2h 3h", "100h - 2h 3h"},
		{"clock was wrong from the beginning", "0 * * * *", "", 0, "-50h30m -50h -49h", "- -50h -49h"},
		{"clock put forward", "0 12 * * *", "", 0, "2h 3h 3h1s 27h", "- 3h - 27h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := at(t, began)
			after := func(text string) time.Time {
				length, err := time.ParseDuration(text)
				if err != nil {
					t.Fatal(err)
				}
				return start.Add(length)
			}
			var table cron.Table
			if _, err := table.Add(cron.Job{Schedule: tt.schedule, Zone: "UTC", Prompt: "x", Grace: tt.grace, Repeat: tt.repeat}, start); err != nil {
				t.Fatal(err)
			}
			wants := strings.Fields(tt.want)
			for i, look := range strings.Fields(tt.looks) {
				due, passed := table.Claim(after(look), 1, idle)
				wanted, status, isPassed := strings.Cut(wants[i], ":")
				switch {
				case wanted == "-":
					if len(due)+len(passed) > 0 {
						t.Errorf("at %s: %+v %+v", look, due, passed)
					}
				case isPassed:
					if len(due) != 0 || len(passed) != 1 || !passed[0].At.Equal(after(wanted)) || passed[0].Job.Last.Status != status {
						t.Errorf("at %s: %+v %+v", look, due, passed)
					}
				case len(due) != 1 || len(passed) != 0 || !due[0].At.Equal(after(wanted)):
					t.Errorf("at %s: %+v %+v", look, due, passed)
				}
				for _, tick := range due {
					table.End(tick.Job.ID, cron.Ended{Tick: tick.At, Status: cron.OK})
				}
			}
		})
	}
}

// TestClaimOnce holds that a tick which was begun is not begun again when the one who began it has died.
func TestClaimOnce(t *testing.T) {
	now := at(t, began)
	var table cron.Table
	if _, err := table.Add(cron.Job{Schedule: "every 1h", Zone: "UTC", Prompt: "x"}, now); err != nil {
		t.Fatal(err)
	}
	tick := now.Add(time.Hour)
	if due, _ := table.Claim(tick, 1, idle); len(due) != 1 {
		t.Fatalf("%+v", due)
	}
	running := func(string) bool { return true }
	if due, passed := table.Claim(tick, 1, running); len(due)+len(passed) != 0 {
		t.Errorf("while it runs: %+v %+v", due, passed)
	}
	if due, passed := table.Claim(tick.Add(time.Hour), 1, running); len(due) != 0 || len(passed) != 1 || passed[0].Job.Last.Status != cron.Skipped {
		t.Errorf("its next time while it runs: %+v %+v", due, passed)
	}
	due, passed := table.Claim(tick.Add(61*time.Minute), 1, idle)
	if len(due) != 0 || len(passed) != 1 || passed[0].Job.Last.Status != cron.Lost || !passed[0].At.Equal(tick) {
		t.Errorf("when it is lost: %+v %+v", due, passed)
	}
}
