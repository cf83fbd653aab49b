// Package datasets reads the tasks of a run from files of several formats, from folders, and from the bundled files.
//
// The way of a row: Open finds the files (open.go, folder.go, card.go) and the format of each (format.go), which yields rows as
// the text of a JSON object (jsonl.go, csv.go, yaml.go, parquet.go, arrow.go). A source decodes them many at a time (source.go):
// a mapping (mapping.go) or the row's shape (shape.go) builds the fields of a task, and tables of keys (decode.go) read each
// field into the task, and all that is wrong with the row. A pass hands on the tasks that the choice leaves (choice.go, pass.go);
// where all must be known before the first is played, an order is drawn (order.go).
package datasets

import (
	"fmt"
	"strings"
)

// The names under which Open finds the tasks that come with trajgen.
const (
	Bundled         = "bundled"
	BundledResearch = "bundled/research" // questions about the bundled corpus
	BundledBrowser  = "bundled/browser"  // tasks on the web sites that come along
	BundledSkills   = "bundled/skills"   // tasks that the bundled skills are for
	BundledHome     = "bundled/home"     // tasks in the home that comes along
)

// Options say how a dataset is read. The zero value reads all of it and stops at the first broken row.
type Options struct {
	Map         *Mapping // builds the fields of a foreign dataset; nil when its rows have our fields
	MaxTasks    int      // 0: all
	SkipBadRows bool     // pass broken rows to OnSkip and go on; they still count in Task.Row
	// OnSkip receives each broken row in each pass; of a shuffled or sampled dataset only once, when its order is drawn.
	OnSkip func(*RowError)
	// OnRepeat receives, likewise, the id of each task with the id of an earlier one; the task gets another id.
	OnRepeat func(id string)
	Shape    string // one of Shapes, that all rows have; "": each row's columns show its own

	Choice Choice
	// OnChosen receives, at the end of each pass, how many tasks each step of the choice left. A pass that ends early, at the
	// last task of a slice or of MaxTasks, only counts the rows up to there.
	OnChosen func([]Step)

	// Subset and Split choose among the files of a directory. Where there are several and none is given, Open lists them.
	Subset, Split string
}

// RowError is a row that is not a task.
type RowError struct {
	File string
	// Line is where the row begins: the line of a text file, the number of the row (from 1) in others.
	Line int
	// Row is the position in the dataset, from 0, as in Task.Row.
	Row int
	// Reason lists all errors of the row, separated by "; ".
	Reason string

	unit string // what Line counts; "" is lines
}

func (e *RowError) Error() string { return e.Place() + ": " + e.Reason }

// Place is where the row is.
func (e *RowError) Place() string {
	if e.unit != "" {
		return fmt.Sprintf("%s: %s %d", e.File, e.unit, e.Line)
	}
	return fmt.Sprintf("%s:%d", e.File, e.Line)
}

// problems collects what is wrong with one row.
type problems []string

func (p *problems) addf(format string, arguments ...any) {
	*p = append(*p, fmt.Sprintf(format, arguments...))
}

func (p problems) String() string { return strings.Join(p, "; ") }
