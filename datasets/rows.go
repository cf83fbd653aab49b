package datasets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
)

// Row is a row of a data file.
type Row struct {
	Place  string                     // the file, and its line or row
	Fields map[string]json.RawMessage // by name, without those that are null
}

// Rows streams the rows of a file of any format that Open takes, for what is not a dataset of tasks. A *RowError is a broken row,
// after which others may follow; any other error is the last.
func Rows(path string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		going, position := true, 0
		format, err := formatOf(path)
		if err == nil {
			err = formats[format].rows(path, func(r row) bool {
				fields, broken := r.fields()
				bad := &RowError{File: cmp.Or(r.file, path), Line: r.line, Row: position, Reason: broken, unit: r.unit}
				position++
				if broken != "" {
					going = yield(Row{}, bad)
				} else {
					going = yield(Row{Place: bad.Place(), Fields: columnsOf(fields)}, nil)
				}
				return going
			})
		}
		if err != nil && going {
			yield(Row{}, fmt.Errorf("read %s: %w", path, err))
		}
	}
}
