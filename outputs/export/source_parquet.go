package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// parquetPart is a file of a table.
type parquetPart struct {
	path    string
	file    *parquet.File
	version int // of the schema
}

const (
	// parquetBatch is how many rows are decoded at a time.
	parquetBatch = 16
	// maxChunkValues bounds a column of a row group, and with it what hostile lengths can make a reader ask for.
	maxChunkValues = 1 << 28
	// maxCalls bounds the calls of one episode.
	maxCalls = 1 << 20
)

// beginParquet opens the two tables of a run directory or an export. What reading them holds is a page of each column, and
// a few rows.
func (in *input) beginParquet(trajectoryPaths, callPaths []string) error {
	trajectories, err := in.openParquet(trajectoryPaths, rows.Trajectories.Name())
	if err != nil {
		return err
	}
	calls, err := in.openParquet(callPaths, rows.ToolCalls.Name())
	if err != nil {
		return err
	}
	in.rows, in.count = true, 0
	for _, part := range trajectories {
		in.count += part.roots()
	}
	in.episodes = func(ctx context.Context) iter.Seq2[*episode.Episode, error] {
		return nested(joined(ctx, trajectoriesOf(trajectories), tableOf[rows.ToolCall](calls)))
	}
	return nil
}

func (in *input) openParquet(paths []string, table string) (parts []*parquetPart, err error) {
	for _, path := range paths {
		f, err := in.open(path)
		if err != nil {
			return nil, err
		}
		part, err := newParquetPart(f, table)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func newParquetPart(f *os.File, table string) (*parquetPart, error) {
	p := &parquetPart{path: f.Name()}
	err := guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		p.file, err = parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged or cut off: %w", err)
	}
	return p, p.ours(table)
}

// ours says what is wrong with a file that no trajgen, or a later one, wrote.
func (p *parquetPart) ours(table string) error {
	have, ok := p.file.Lookup("trajgen.table")
	if !ok {
		return errors.New(`trajgen did not write it: its metadata has no key "trajgen.table" (a dataset of another make is played with run --dataset)`)
	}
	if have != table {
		return fmt.Errorf("it holds the table %.40q (want %s)", have, table)
	}
	text, _ := p.file.Lookup("trajgen.schema_version")
	var err error
	if p.version, err = strconv.Atoi(text); err != nil || p.version < 1 || p.version > episode.SchemaVersion {
		return fmt.Errorf("its schema version is %.40q (this trajgen knows 1 to %d)", text, episode.SchemaVersion)
	}
	for g, group := range p.file.Metadata().RowGroups {
		for _, column := range group.Columns {
			if n := column.MetaData.NumValues; n < 0 || n > maxChunkValues {
				return fmt.Errorf("row group %d claims %d values in a column (want at most %d)", g, n, maxChunkValues)
			}
		}
	}
	return nil
}

// roots counts the rows of trajectories that are no subagents', as far as the file's own statistics tell.
func (p *parquetPart) roots() int {
	n := p.file.NumRows()
	for _, group := range p.file.Metadata().RowGroups {
		for _, column := range group.Columns {
			if m := &column.MetaData; slices.Equal(m.PathInSchema, []string{"parent_id"}) {
				n -= m.NumValues - m.Statistics.NullCount
			}
		}
	}
	return int(max(n, 0))
}

// trajectoriesOf yields rows of any schema. Until 4 the episode's id was called id.
func trajectoriesOf(parts []*parquetPart) iter.Seq2[placed[rows.Trajectory], error] {
	trajectories := tableOf[rows.Trajectory](parts)
	if len(parts) == 0 || parts[0].version > 4 {
		return trajectories
	}
	type named struct {
		ID string `parquet:"id"`
	}
	return func(yield func(placed[rows.Trajectory], error) bool) {
		next, stop := iter.Pull2(tableOf[named](parts))
		defer stop()
		for at, err := range trajectories {
			if id, failed, ok := next(); err == nil && ok {
				if err = failed; err == nil {
					at.row.ID = id.row.ID
				}
			}
			if !yield(at, err) || err != nil {
				return
			}
		}
	}
}

// tableOf yields the rows of a table's parts.
func tableOf[Row any](parts []*parquetPart) iter.Seq2[placed[Row], error] {
	return func(yield func(placed[Row], error) bool) {
		for _, part := range parts {
			number := 0
			for _, group := range part.file.RowGroups() {
				for row, err := range groupRows[Row](group) {
					number++
					if err != nil {
						yield(placed[Row]{}, fmt.Errorf("read %s, row %d: the Parquet file is damaged: %w", part.path, number, err))
						return
					}
					if !yield(placed[Row]{row, part.path, number}, nil) {
						return
					}
				}
			}
		}
	}
}

// groupRows yields the rows of a row group. Each is the caller's.
func groupRows[Row any](group parquet.RowGroup) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		var reader *parquet.GenericReader[Row]
		if err := guarded(func() error { reader = parquet.NewGenericRowGroupReader[Row](group); return nil }); err != nil {
			yield(nil, err)
			return
		}
		defer guarded(reader.Close)
		for left := group.NumRows(); left > 0; {
			batch := make([]Row, min(left, parquetBatch)) // new each time: what is in a row is used again otherwise
			n := 0
			err := guarded(func() (err error) {
				n, err = reader.Read(batch)
				return err
			})
			for i := range batch[:n] {
				if !yield(&batch[i], nil) {
					return
				}
			}
			left -= int64(n)
			if err != nil && err != io.EOF || n == 0 {
				if err == nil || err == io.EOF {
					err = fmt.Errorf("%d rows are missing of the %d that its footer promises", left, group.NumRows())
				}
				if left > 0 {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// guarded turns a panic of a library into an error: some damage is met with one.
func guarded(read func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = errors.Join(err, fmt.Errorf("%v", caught))
		}
	}()
	return read()
}
