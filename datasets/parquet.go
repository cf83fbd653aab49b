package datasets

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"
)

// parquetBatch is how many rows are decoded at a time: rows of agent tasks are large, and pages are read lazily.
const parquetBatch = 16

// parquetRows reads a file of any schema, row group by row group. Each row becomes a JSON object in the order of the
// columns; see parquetColumn for what the types become.
func parquetRows(path string, yield func(row) bool) error {
	fail := func(err error) error { return fmt.Errorf("read dataset %s: %w", path, err) }
	opened, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read dataset: %w", err)
	}
	defer opened.Close()
	var (
		file    *parquet.File
		columns []*parquetColumn
	)
	err = guarded(func() error {
		info, err := opened.Stat()
		if err != nil {
			return err
		}
		if file, err = parquet.OpenFile(opened, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
			return err
		}
		columns = parquetColumns(file.Root().Columns(), 0, 0)
		return nil
	})
	if err != nil {
		return fail(fmt.Errorf("the Parquet file is damaged or cut off: %w", err))
	}
	number := 0
	for group, rowGroup := range file.RowGroups() {
		for values, err := range groupRows(rowGroup) {
			if err != nil {
				return fail(fmt.Errorf("row group %d after row %d: the Parquet file is damaged: %w", group, number, err))
			}
			number++
			r := row{file: path, line: number, unit: "row"}
			if r.text, err = assemble(columns, values); err != nil {
				r.broken = err.Error()
			} else if len(r.text) > maxRow {
				r.broken = fmt.Sprintf("the row is larger than %d MiB", maxRow>>20)
			}
			if !yield(r) {
				return nil
			}
		}
	}
	return nil
}

// groupRows streams the rows of a row group. A row's values are valid until the next one.
func groupRows(group parquet.RowGroup) iter.Seq2[parquet.Row, error] {
	return func(yield func(parquet.Row, error) bool) {
		var rows parquet.Rows
		if err := guarded(func() error { rows = group.Rows(); return nil }); err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		batch := make([]parquet.Row, parquetBatch)
		read := int64(0)
		for {
			n := 0
			err := guarded(func() (err error) {
				n, err = rows.ReadRows(batch)
				return err
			})
			if err != nil && err != io.EOF {
				yield(nil, err)
				return
			}
			for _, values := range batch[:n] {
				if read++; !yield(values, nil) {
					return
				}
			}
			if err == io.EOF || n == 0 {
				if read != group.NumRows() {
					yield(nil, fmt.Errorf("%d rows instead of the %d that its footer promises", read, group.NumRows()))
				}
				return
			}
		}
	}
}

// guarded turns a panic of the library into an error, as the library panics on some invalid schemas and pages, and a dataset is
// untrusted input.
func guarded(read func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = errors.Join(err, fmt.Errorf("%v", caught))
		}
	}()
	return read()
}
