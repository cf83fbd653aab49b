package export

import (
	"errors"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	"trajgen/pipeline/episode"
)

// rowSink is a file with a row for each episode.
type rowSink[Row any] struct {
	rowFile[Row]
	notes
	convert func(*episode.Episode) (Row, error)
}

// rowFile is a file of rows: a line of JSON each, or Parquet.
type rowFile[Row any] interface {
	put(Row) error
	finish() ([]FileInfo, error)
	close() error
}

// rowKind says which.
type rowKind struct {
	as   string // jsonl or parquet
	name string // of the schema, and an example of the file's
	id   string // Parquet: the column that identifies a row
	// json are columns that in Parquet are of the logical type JSON, with all that is below them.
	json []string
}

func openRowSink[Row any](path string, kind rowKind, options Options, n notes, convert func(*episode.Episode) (Row, error)) (target, error) {
	out, err := openRowFile[Row](path, kind, options)
	if err != nil {
		return nil, err
	}
	return &rowSink[Row]{out, n, convert}, nil
}

func openRowFile[Row any](path string, kind rowKind, options Options) (rowFile[Row], error) {
	f, err := openFile(path, kind.name+"."+kind.as)
	if err != nil {
		return nil, err
	}
	if kind.as == "jsonl" {
		return &lines[Row]{file: f}, nil
	}
	schema := parquet.NewSchema(kind.name, typedNode{Node: parquet.SchemaOf(new(Row)), columns: kind.json})
	return &parquetFile[Row]{f, newParquetRows[Row](f, schema, kind.id, options)}, nil
}

func (s *rowSink[Row]) add(ep *episode.Episode) error {
	row, err := s.convert(ep)
	if err != nil {
		return err
	}
	return s.put(row)
}

// lines are rows as lines of JSON.
type lines[Row any] struct {
	*file
	rows int64
}

func (l *lines[Row]) put(row Row) error {
	line, err := encodeLine(row)
	if err == nil {
		_, err = l.Write(line)
	}
	l.rows++
	return err
}

func (l *lines[Row]) finish() ([]FileInfo, error) { return l.commit(l.rows) }

// folderSink is a folder with a file of a line for each episode, and others beside it.
type folderSink struct {
	*folder
	notes
	lines   *lines[object]
	convert func(*episode.Episode) (object, error) // may write other files
	last    func() error                           // writes what stands behind the lines; optional
}

func openFolderSink(path, name string, n notes) (*folderSink, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	out, err := f.begin(name)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return &folderSink{folder: f, notes: n, lines: &lines[object]{file: out}}, nil
}

func (s *folderSink) add(ep *episode.Episode) error {
	row, err := s.convert(ep)
	if err != nil {
		return err
	}
	return s.lines.put(row)
}

func (s *folderSink) finish() ([]FileInfo, error) {
	if err := s.done(s.lines.file, s.lines.rows); err != nil {
		return nil, err
	}
	if s.last != nil {
		if err := s.last(); err != nil {
			return nil, err
		}
	}
	return s.commit()
}

// parquetFile are rows as a Parquet file.
type parquetFile[Row any] struct {
	*file
	*parquetRows[Row]
}

func (p *parquetFile[Row]) finish() ([]FileInfo, error) {
	if err := p.writer.Close(); err != nil {
		return nil, err
	}
	return p.commit(p.rows)
}

// jsonText is JSON as it stands in a row: a line has what it says, and Parquet a text.
type jsonText string

// MarshalJSON is the text itself.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

// typedNode is a schema in which some columns are of the logical type JSON, as only a struct tag could say it otherwise: it
// depends on a setting.
type typedNode struct {
	parquet.Node
	columns []string
	json    bool // the node is one of them, or below one
}

// typedField is a field of one.
type typedField struct {
	typedNode
	field parquet.Field
}

func (f typedField) Name() string                           { return f.field.Name() }
func (f typedField) Value(base reflect.Value) reflect.Value { return f.field.Value(base) }

func (n typedNode) Fields() []parquet.Field {
	fields := slices.Clone(n.Node.Fields())
	for i, field := range fields {
		fields[i] = typedField{typedNode{field, n.columns, n.json || slices.Contains(n.columns, field.Name())}, field}
	}
	return fields
}

func (n typedNode) Type() parquet.Type {
	if n.json && n.Leaf() {
		return parquet.JSON().Type()
	}
	return n.Node.Type()
}
