package datasets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Seen is what a dataset is read as.
type Seen struct {
	About
	Tasks      int             `json:"tasks"`
	Steps      []Step          `json:"steps"`
	Fields     map[string]int  `json:"fields"`   // how many tasks have it
	Metadata   map[string]int  `json:"metadata"` // likewise, of the keys that no field took
	Repeated   int             `json:"repeated"` // tasks with the id of an earlier one
	BrokenRows int             `json:"broken_rows"`
	Reasons    map[string]int  `json:"broken_by_reason"` // reasons without quoted texts and numbers
	Broken     []string        `json:"broken"`           // the first ones
	First      []*episode.Task `json:"first"`
}

// Look reads the dataset to its end, as a run with that seed does, and keeps the first n tasks. Rows that wait for their turn lie
// in the directory scratch.
func (s Settings) Look(ctx context.Context, seed uint64, scratch string, n int) (*Seen, error) {
	const most = 10
	seen := &Seen{
		Fields: map[string]int{}, Metadata: map[string]int{}, Reasons: map[string]int{}, Broken: []string{}, First: []*episode.Task{},
	}
	reported := false
	source, _, err := s.Open(Options{
		Choice: s.Choice(seed, scratch), SkipBadRows: true,
		OnSkip: func(bad *RowError) {
			if reported {
				return
			}
			seen.broken(bad.Reason)
			if seen.BrokenRows++; seen.BrokenRows <= most {
				seen.Broken = append(seen.Broken, bad.Error())
			}
		},
		OnRepeat: func(string) {
			if !reported {
				seen.Repeated++
			}
		},
		OnChosen: func(steps []Step) { seen.Steps, reported = steps, true },
	})
	if err != nil {
		return nil, err
	}
	seen.About = source.About()
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			lines := append(seen.Broken, seen.Frequent()...) // they may explain why no task could be read
			return nil, errors.New(strings.Join(append(lines, err.Error()), "\n"))
		}
		if err := seen.count(task); err != nil {
			return nil, err
		}
		if seen.Tasks++; seen.Tasks <= n {
			seen.First = append(seen.First, task)
		}
	}
	return seen, nil
}

// broken counts a broken row by its reason.
func (s *Seen) broken(reasons string) {
	const most = 1000 // reasons, as a hostile dataset may have ever new ones
	for reason := range strings.SplitSeq(reasons, "; ") {
		reason = particulars.ReplaceAllString(reason, "…")
		if s.Reasons[reason] > 0 || len(s.Reasons) < most {
			s.Reasons[reason]++
		}
	}
}

// particulars are the parts in which reasons of one kind differ: quoted texts and numbers.
var particulars = regexp.MustCompile(`"(\\.|[^"\\])*"|\b[0-9]+\b`)

// Frequent are the most frequent reasons, where several rows are broken.
func (s *Seen) Frequent() (lines []string) {
	const most = 10
	if s.BrokenRows < 2 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(s.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Reasons[b], s.Reasons[a]), cmp.Compare(a, b))
	})
	for _, name := range names[:min(most, len(names))] {
		lines = append(lines, fmt.Sprintf("%d of %d broken rows: %s", s.Reasons[name], s.BrokenRows, name))
	}
	if more := len(names) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d other reasons", more))
	}
	return lines
}

func (s *Seen) count(task *episode.Task) error {
	// By reflection, as a task may carry megabytes that its text would have.
	for _, field := range reflect.VisibleFields(reflect.TypeFor[episode.Task]()) {
		name, omitted, _ := strings.Cut(field.Tag.Get("json"), ",")
		value := reflect.ValueOf(task).Elem().FieldByIndex(field.Index)
		empty := omitted != "" && (value.IsZero() || (value.Kind() == reflect.Map || value.Kind() == reflect.Slice) && value.Len() == 0)
		if !field.Anonymous && name != "row" && name != "metadata" && !empty {
			s.Fields[name]++
		}
	}
	var metadata map[string]json.RawMessage
	if len(task.Metadata) > 0 {
		if err := json.Unmarshal(task.Metadata, &metadata); err != nil {
			return fmt.Errorf("metadata of task %s: %w", task.ID, err)
		}
	}
	for name := range metadata {
		s.Metadata[name]++
	}
	return nil
}
