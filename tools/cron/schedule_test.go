package cron_test

import (
	"strings"
	"testing"
	"time"

	"trajgen/tools/cron"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	found, err := cron.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestNext has the first times of schedules, through changes of the clock, too.
func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name, text, zone, from string
		want                   string // the first times, then "never" if there are no more
	}{
		{"delay", "30m", "UTC", "2026-11-30T09:00:10Z", "2026-11-30T09:30:10Z never"},
		{"delay in words", "2 hours", "UTC", "2026-11-30T09:00:00Z", "2026-11-30T11:00:00Z never"},
		{"days are of 24 hours", "1d", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "2026-03-29T13:00:00+02:00 never"},
		{"interval", "every 2h", "UTC", "2026-11-30T09:15:00Z", "2026-11-30T11:15:00Z 2026-11-30T13:15:00Z 2026-11-30T15:15:00Z"},
		{"time with a zone", "2026-12-01T09:00:00+01:00", "UTC", "2026-11-30T09:00:00Z", "2026-12-01T08:00:00Z never"},
		{"time without", "2026-12-01 09:00", "Europe/Berlin", "2026-11-30T09:00:00Z", "2026-12-01T09:00:00+01:00 never"},
		{"day", "2026-12-01", "America/New_York", "2026-11-30T09:00:00Z", "2026-12-01T00:00:00-05:00 never"},
		{"workdays", "0 9 * * 1-5", "UTC", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z 2026-12-01T09:00:00Z"},
		{"Sunday is 0 and 7", "0 9 * * 6-7", "UTC", "2026-11-27T09:00:00Z", "2026-11-28T09:00:00Z 2026-11-29T09:00:00Z 2026-12-05T09:00:00Z"},
		{"day of month or of week", "0 0 13 * FRI", "UTC", "2026-11-08T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z"},
		{"leap day", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},

		{"left out in spring", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:30:00+01:00",
			"2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"several left out are one", "*/20 2 * * *", "Europe/Berlin", "2026-03-28T23:00:00+01:00",
			"2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"twice in autumn", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
			"2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"from the second time on", "45 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", "2026-10-26T02:45:00+01:00"},
		{"each half hour in spring", "*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00",
			"2026-03-29T01:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00"},
		{"each half hour in autumn", "*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00:00+02:00",
			"2026-10-25T02:30:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00 2026-10-25T03:00:00+01:00"},
		{"interval in autumn", "every 1h", "Europe/Berlin", "2026-10-25T01:30:00+02:00",
			"2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00"},
		{"a time that is left out", "2026-03-29T02:15", "Europe/Berlin", "2026-03-01T00:00:00Z", "2026-03-29T03:00:00+02:00 never"},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			"2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := at(t, tt.from)
			schedule, err := cron.Parse(tt.text, zone(t, tt.zone), after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range strings.Fields(tt.want) {
				next := schedule.Next(after)
				if next.IsZero() {
					got = append(got, "never")
					break
				}
				got, after = append(got, next.Format(time.RFC3339)), next
			}
			if said := strings.Join(got, " "); said != tt.want {
				t.Errorf("got  %s\nwant %s", said, tt.want)
			}
		})
	}
}

func TestBadSchedules(t *testing.T) {
	from := at(t, "2026-11-30T09:00:00Z")
	for text, want := range map[string]string{
		"":                       "want 30m",
		"tomorrow":               "want 30m",
		"0m":                     "from 1m to 366d",
		"every 999999d":          "from 1m to 366d",
		"every day":              "want 30m",
		"61 * * * *":             "above maximum",
		"0 9 * * 8":              "above maximum",
		"*/0 * * * *":            "positive",
		"TZ=UTC * * * *":         "want 30m",
		"* * * * * *":            "want 30m",
		"0 0 30 2 *":             "never comes",
		"2026-11-30T08:59:00Z":   "not after now",
		"2026-13-01T00:00":       "want 30m",
		strings.Repeat("9", 400): "want 30m",
	} {
		if _, err := cron.Parse(text, time.UTC, from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := cron.Zone("Mars/Olympus"); err == nil {
		t.Error("a time zone of Mars is taken")
	}
}

// FuzzSchedule holds that times of a schedule come one after the other.
func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{"30m", "every 2h", "0 9 * * 1-5", "*/7 1,2 28-31 2 7", "2026-12-01T09:00", "@daily", "0 0 29 2 1"} {
		f.Add(seed, int64(1774746000))
	}
	berlin, err := cron.Zone("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		after := time.Unix(seconds%(1<<33), 0)
		schedule, err := cron.Parse(text, berlin, after)
		for range 3 {
			if err != nil {
				return
			}
			next := schedule.Next(after)
			if next.IsZero() {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q: %s is not after %s", text, next, after)
			}
			after = next
		}
	})
}
