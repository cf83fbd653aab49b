package export

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	"trajgen/pipeline/episode"
)

// rowSink is a sink of one file with rows of one type: a line of JSON each, or Parquet.
type rowSink[Row any] struct {
	rowWriter[Row]
	notes
	convert func(*episode.Episode) ([]Row, error)
}

// rowWriter writes rows into a file, which is its own.
type rowWriter[Row any] interface {
	// put writes rows that come of an episode. An error is for good.
	put(id string, rows ...Row) error
	// writable and fail are those of its file.
	writable(ctx context.Context, ep *episode.Episode) error
	fail(error) error
	Commit() ([]FileInfo, error)
	Close() error
}

func (s *rowSink[Row]) Write(ctx context.Context, ep *episode.Episode) error {
	if err := s.writable(ctx, ep); err != nil {
		return err
	}
	rows, err := s.convert(ep)
	if _, refused := err.(*Refusal); refused {
		return err
	}
	if err != nil {
		return s.fail(err)
	}
	return s.put(ep.ID, rows...)
}

// jsonRows are rows as lines of JSON.
type jsonRows[Row any] struct{ *lines }

func openJSONRows[Row any](path, example string) (rowWriter[Row], error) {
	l, err := openLines(path, example+".jsonl", nil)
	if err != nil {
		return nil, err
	}
	return jsonRows[Row]{l}, nil
}

func (j jsonRows[Row]) put(id string, rows ...Row) error {
	for i := range rows {
		if err := j.add(id, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// parquetRows are rows as a Parquet file. It holds a row group in memory.
type parquetRows[Row any] struct {
	*file
	writer        *parquet.GenericWriter[Row]
	options       Options
	rows, grouped int64 // all, and those in finished row groups
	flushed       int64 // the writer's size after the last row group
	one           [1]Row
}

// openParquetRows begins a file whose rows have a column of that name that tells them apart.
func openParquetRows[Row any](path, name, id string, options Options) (rowWriter[Row], error) {
	f, err := openFile(path, name+".parquet")
	if err != nil {
		return nil, err
	}
	schema := parquet.NewSchema(name, logical{Node: parquet.SchemaOf(new(Row))})
	return &parquetRows[Row]{file: f, options: options, writer: parquet.NewGenericWriter[Row](f, parquetOptions(schema, id)...)}, nil
}

func (p *parquetRows[Row]) put(id string, rows ...Row) error {
	for _, row := range rows {
		p.one[0] = row
		_, err := p.writer.Write(p.one[:])
		clear(p.one[:])
		if err != nil {
			return p.fail(fmt.Errorf("write the row of episode %s: %w", id, err))
		}
		p.rows++
		if p.writer.Size()-p.flushed < p.options.RowGroupBytes && p.rows-p.grouped < p.options.RowGroupRows {
			continue
		}
		if err := p.writer.Flush(); err != nil {
			return p.fail(err)
		}
		p.flushed, p.grouped = p.writer.Size(), p.rows
	}
	return nil
}

func (p *parquetRows[Row]) Commit() ([]FileInfo, error) {
	if p.failed == nil && !p.committed {
		if err := p.writer.Close(); err != nil {
			_ = p.fail(err)
		}
	}
	return p.commit(p.rows)
}

func (p *parquetRows[Row]) Close() error { return p.close() }

// logical is a schema in which values of the type jsonValue are texts of the logical type JSON, as a struct tag says it, which
// a type parameter cannot have.
type logical struct{ parquet.Node }

// logicalField is a field of one.
type logicalField struct {
	logical
	field parquet.Field
}

func (f logicalField) Name() string                           { return f.field.Name() }
func (f logicalField) Value(base reflect.Value) reflect.Value { return f.field.Value(base) }

func (l logical) Fields() []parquet.Field {
	fields := slices.Clone(l.Node.Fields())
	for i, field := range fields {
		fields[i] = logicalField{logical{field}, field}
	}
	return fields
}

func (l logical) Type() parquet.Type {
	if l.Leaf() && l.GoType() == reflect.TypeFor[jsonValue]() {
		return parquet.JSON().Type()
	}
	return l.Node.Type()
}
