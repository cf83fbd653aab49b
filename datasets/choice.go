package datasets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/where"
)

// Choice says which tasks of a dataset are played, and in which order. Its steps are always taken in this order, each on the tasks
// that the step before left:
//
//	read       the rows that are tasks
//	where      those for which a condition holds
//	part       those of one part of the dataset
//	shuffle    all of them, in an order drawn from the seed
//	stratify   a sample in which each value of a field has its share
//	slice      those at some positions
//	max_tasks  the first ones (Options.MaxTasks)
//
// The choice does not change ids and rows.
type Choice struct {
	// Where is a condition of package where. It sees the names of RowNames, and the keys of the metadata.
	Where string
	// Parts are the shares of the dataset's parts, such as train 0.9 and test 0.1, and Part is the one that is taken. Only a hash
	// of its id decides a task's part, so it stays there with any seed and when tasks are added. Duplicates of an id belong to
	// the same part. If the shares add up to less than 1, the rest of the tasks belongs to no part.
	Parts map[string]float64
	Part  string
	// Shuffle draws an order.
	Shuffle bool
	// Stratify is the name of a field, as Where knows it. The sample has PerStratum tasks of each value; or, when that is
	// 0, MaxTasks in all, so that each value has the share that it has in the dataset, rounded by largest remainder.
	Stratify   string
	PerStratum int
	// Slice is START:END or START:END:STEP, from 0 and without END, as in Python; each may be left out.
	Slice string

	Seed uint64 // of all draws
	// Scratch is a directory for the rows that are played in another order than the dataset's: they lie there, in a file without a
	// name, until their turn comes. "" is the system's directory for temporary files.
	Scratch string
}

// Step is the number of tasks that a step of a choice left.
type Step struct {
	Name string `json:"step"`
	How  string `json:"how,omitempty"` // the setting, as given
	Left int    `json:"left"`
}

// choice is a parsed Choice.
type choice struct {
	Choice
	condition *where.Condition
	low, high float64 // bounds of the part's share of all hashes
	slice     span
	max       int
}

// parse returns everything that is wrong at once.
func (c Choice) parse(max int) (*choice, error) {
	parsed := &choice{Choice: c, max: max}
	var noSlice, noWhere error
	parsed.slice, noSlice = parseSpan(c.Slice)
	if c.Where != "" {
		if parsed.condition, noWhere = where.Parse(c.Where, RowNames(), true); noWhere != nil {
			noWhere = fmt.Errorf("where: %w", noWhere)
		}
	}
	wrong := []error{noWhere, parsed.parsePart(), noSlice}
	switch {
	case c.PerStratum < 0:
		wrong = append(wrong, fmt.Errorf("per_stratum is %d; at least 1", c.PerStratum))
	case c.Stratify == "" && c.PerStratum > 0:
		wrong = append(wrong, errors.New("per_stratum goes with stratify, which names the field"))
	case c.Stratify != "" && c.PerStratum == 0 && max == 0:
		wrong = append(wrong, errors.New("stratify wants to know how many: max_tasks for all together, or per_stratum for each value"))
	case c.Stratify != "" && c.PerStratum > 0 && max > 0:
		wrong = append(wrong, errors.New("stratify goes with max_tasks or per_stratum, not with both: a sample with so many of each value must not be cut"))
	}
	return parsed, errors.Join(wrong...)
}

// Validate returns everything that is wrong with a choice and the number of tasks that goes with it.
func (c Choice) Validate(maxTasks int) error {
	_, err := c.parse(maxTasks)
	return err
}

// parsePart finds where the part's share lies: parts follow each other by name.
func (c *choice) parsePart() error {
	var wrong []error
	names := slices.Sorted(maps.Keys(c.Parts))
	sum, found := 0.0, false
	for _, name := range names {
		share := c.Parts[name]
		if name == "" || !(share > 0 && share <= 1) {
			wrong = append(wrong, fmt.Errorf("parts: %q has the share %v; a name, and over 0 and up to 1", name, share))
		}
		if name == c.Part {
			c.low, c.high, found = sum, sum+share, true
		}
		sum += share
	}
	const rounding = 1e-9
	switch {
	case sum > 1+rounding:
		wrong = append(wrong, fmt.Errorf("parts: the shares are %v together; at most 1", sum))
	case len(names) > 0 && c.Part == "":
		wrong = append(wrong, fmt.Errorf("parts: use_part says which one is played (have %s)", strings.Join(names, ", ")))
	case len(names) == 0 && c.Part != "":
		wrong = append(wrong, fmt.Errorf("use_part is %q, and there are no parts: give their shares, such as parts: {train: 0.9, test: 0.1}", c.Part))
	case len(names) > 0 && !found:
		wrong = append(wrong, fmt.Errorf("use_part: there is no part %q (have %s)", c.Part, strings.Join(names, ", ")))
	}
	if c.high > 1-rounding {
		c.high = 1 // rounding must not lose tasks after the last part
	}
	return errors.Join(wrong...)
}

// inPart says whether a task is of the part.
func (c *choice) inPart(id string) bool {
	at := float64(hashOf("part "+id)>>11) / (1 << 53)
	return at >= c.low && at < c.high
}

// ordered reports whether all tasks must be known before the first is yielded.
func (c *choice) ordered() bool { return c.Shuffle || c.Stratify != "" }

// tally counts, by the names of the steps, the tasks that each has left.
type tally map[string]int

// steps are those that were asked for, with what they left.
func (c *choice) steps(left tally) []Step {
	steps := []Step{{Name: "read", Left: left["read"]}}
	for _, step := range []struct {
		asked     bool
		name, how string
	}{
		{c.condition != nil, "where", c.Where}, {len(c.Parts) > 0, "part", c.Part}, {c.Shuffle, "shuffle", ""}, {c.Stratify != "", "stratify", c.Stratify},
		{c.Slice != "", "slice", c.Slice}, {c.max > 0, "max_tasks", strconv.Itoa(c.max)},
	} {
		if step.asked {
			steps = append(steps, Step{Name: step.name, How: step.how, Left: left[step.name]})
		}
	}
	return steps
}

// span is a slice of positions.
type span struct{ start, end, step int } // end -1: none

func parseSpan(text string) (span, error) {
	s := span{end: -1, step: 1}
	if text == "" {
		return s, nil
	}
	wrong := fmt.Errorf("slice is %q; want START:END or START:END:STEP, whole numbers from 0 of which each may be left out, such as 100:200 or ::10", text)
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return s, wrong
	}
	for i, target := range []*int{&s.start, &s.end, &s.step}[:len(parts)] {
		if part := strings.TrimSpace(parts[i]); part != "" {
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || i == 2 && n < 1 {
				return s, wrong
			}
			*target = n
		}
	}
	if s.end >= 0 && s.end <= s.start {
		return s, fmt.Errorf("slice is %q, which is empty: its END must be over its START", text)
	}
	return s, nil
}

func (s span) has(position int) bool {
	return position >= s.start && !s.ends(position) && (position-s.start)%s.step == 0
}

// ends says that neither this position nor one after it is of the span.
func (s span) ends(position int) bool { return s.end >= 0 && position >= s.end }

// nothingLeft is the error that says which step left no task.
func nothingLeft(name string, steps []Step) error {
	for i, step := range steps {
		if step.Left == 0 && i > 0 {
			how := step.Name
			if step.How != "" {
				how += " " + step.How
			}
			return fmt.Errorf("dataset %s: no task is left: %s took the last %d of %d", name, how, steps[i-1].Left, steps[0].Left)
		}
	}
	return fmt.Errorf("dataset %s: no task is left", name)
}
