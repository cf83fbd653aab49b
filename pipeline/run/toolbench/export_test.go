package toolbench

import "context"

// Remembered appends a night of one tool to a ledger, and returns what got worse.
func Remembered(ctx context.Context, dir, night, schema string, micros []float64, failing int) ([]Alarm, error) {
	r := &Report{Night: night, Tools: []Tool{{
		Name: "search_files", Backend: "native", Workers: 1, Calls: len(micros), Failing: failing, digests: digests{Schema: schema}, micros: micros,
	}}}
	err := r.remember(ctx, dir)
	return r.Alarms, err
}

// FirstDifference is difference.
func FirstDifference(a, b any) *Difference { return difference("", a, b) }

// FromScript is fromScript.
var FromScript = fromScript

// Repeatable is repeatable.
var Repeatable = repeatable
