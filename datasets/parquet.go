package datasets

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// parquetBatch is how many rows are decoded at a time: rows of agent tasks are large, and pages are read lazily.
const parquetBatch = 16

// parquetRows reads a file of any schema. Each row becomes a JSON object in the order of the columns; see parquetColumn for what
// the types become.
func parquetRows(opened *os.File, yield func(row) bool) error {
	var (
		file    *parquet.File
		rows    *parquet.Reader
		columns []*parquetColumn
	)
	err := guarded(func() error {
		info, err := opened.Stat()
		if err != nil {
			return err
		}
		if file, err = parquet.OpenFile(opened, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
			return err
		}
		columns = parquetColumns(file.Root().Columns(), 0, 0)
		rows = parquet.NewReader(file)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the Parquet file is damaged or cut off: %w", err)
	}
	defer rows.Close()
	number := 0
	damaged := func(err error) error {
		return fmt.Errorf("after row %d: the Parquet file is damaged: %w", number, err)
	}
	batch := make([]parquet.Row, parquetBatch)
	for {
		n := 0
		err := guarded(func() (err error) {
			n, err = rows.ReadRows(batch)
			return err
		})
		if err != nil && err != io.EOF {
			return damaged(err)
		}
		for _, values := range batch[:n] {
			number++
			r := row{line: number, unit: "row"}
			if r.text, err = parquetObject(columns, values); err != nil {
				r.broken = err.Error()
			} else if len(r.text) > maxRow {
				r.broken = fmt.Sprintf("the row is larger than %d MiB", maxRow>>20)
			}
			if !yield(r) {
				return nil
			}
		}
		if n > 0 && err != io.EOF {
			continue
		}
		if int64(number) != file.NumRows() {
			return damaged(fmt.Errorf("%d rows instead of the %d that its footer promises", number, file.NumRows()))
		}
		return nil
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
