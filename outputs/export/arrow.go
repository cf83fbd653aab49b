package export

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"trajgen/outputs/log/disk"
	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// The files of an export to arrow.
const arrowTrajectories, arrowCalls = "trajectories.arrow", "tool_calls.arrow"

var arrowFormat = Format{
	imaging: named,
	nests:   true,
	Rows:    true,
	About:   "Arrow IPC files with the columns of parquet: trajectories.arrow and tool_calls.arrow",
	Folder:  true,
	open:    openArrow,
}

var arrowStreamFormat = Format{
	imaging: named,
	nests:   true,
	Rows:    true,
	About:   "an Arrow IPC stream of one of the two tables",
	Settings: map[string]Setting{
		"table": {About: "which one: trajectories (default) or tool_calls", words: []string{"trajectories", "tool_calls"}},
	},
	open: openArrowStream,
}

// arrowSchema says in its metadata whose table it is.
func arrowSchema(schema *arrow.Schema, table string) *arrow.Schema {
	metadata := arrow.NewMetadata([]string{"trajgen.table", "trajgen.schema_version"}, []string{table, strconv.Itoa(episode.SchemaVersion)})
	return arrow.NewSchema(schema.Fields(), &metadata)
}

var (
	arrowTrajectorySchema = arrowSchema(rows.ArrowTrajectories, rows.Trajectories.Name())
	arrowCallSchema       = arrowSchema(rows.ArrowToolCalls, rows.ToolCalls.Name())
)

// arrowTable writes the rows of a file in record batches, of which it holds one.
type arrowTable[Row any] struct {
	file    *file
	writer  arrowWriter
	builder *array.RecordBuilder
	options Options
	rows    int64
	pending int64 // of them in the batch
	size    int64 // of the batch
}

// arrowWriter is that of a file, or of a stream.
type arrowWriter interface {
	Write(arrow.Record) error
	Close() error
}

func newArrowTable[Row any](f *file, w arrowWriter, schema *arrow.Schema, options Options) *arrowTable[Row] {
	return &arrowTable[Row]{file: f, writer: w, builder: array.NewRecordBuilder(memory.DefaultAllocator, schema), options: options}
}

func (t *arrowTable[Row]) put(row Row) error {
	t.size += rows.AppendArrow(t.builder, &row)
	t.rows++
	t.pending++
	if t.size < t.options.RowGroupBytes && t.pending < t.options.RowGroupRows {
		return nil
	}
	return t.flush()
}

func (t *arrowTable[Row]) flush() error {
	if t.pending == 0 {
		return nil
	}
	record := t.builder.NewRecord()
	defer record.Release()
	t.pending, t.size = 0, 0
	return guarded(func() error { return t.writer.Write(record) })
}

// end completes what is written, without closing the file.
func (t *arrowTable[Row]) end() error { return errors.Join(t.flush(), t.writer.Close()) }

// arrowSink is a folder with the two tables.
type arrowSink struct {
	*folder
	trajectories *arrowTable[rows.Trajectory]
	calls        *arrowTable[rows.ToolCall]
}

func openArrow(path string, options Options) (target, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	s := &arrowSink{folder: f}
	s.trajectories, err = beginArrowTable[rows.Trajectory](f, arrowTrajectories, arrowTrajectorySchema, options)
	if err == nil {
		s.calls, err = beginArrowTable[rows.ToolCall](f, arrowCalls, arrowCallSchema, options)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return s, nil
}

func beginArrowTable[Row any](f *folder, name string, schema *arrow.Schema, options Options) (*arrowTable[Row], error) {
	out, err := f.begin(name)
	if err != nil {
		return nil, err
	}
	w, err := ipc.NewFileWriter(out.disk, ipc.WithSchema(schema), ipc.WithZstd())
	return newArrowTable[Row](out, w, schema, options), err
}

func (s *arrowSink) add(ep *episode.Episode) error {
	return s.explain(writeTables(ep, s.trajectories.put, s.calls.put))
}

func (s *arrowSink) finish() ([]FileInfo, error) {
	if err := errors.Join(s.trajectories.end(), s.calls.end()); err != nil {
		return nil, s.explain(err)
	}
	if err := errors.Join(s.done(s.trajectories.file, s.trajectories.rows), s.done(s.calls.file, s.calls.rows)); err != nil {
		return nil, err
	}
	return s.commit()
}

func (s *arrowSink) explain(err error) error {
	if err != nil {
		err = fmt.Errorf("write %s: %w", s.path, disk.Explain(s.path, err))
	}
	return err
}

// arrowStream is one table in one file, which may be a pipe.
type arrowStream[Row any] struct {
	*file
	table   *arrowTable[Row]
	write   func(*arrowStream[Row], *episode.Episode) error
	leftOut int // calls, which are in another stream
}

func openArrowStream(path string, options Options) (target, error) {
	f, err := openFile(path, "trajectories.arrows")
	if err != nil {
		return nil, err
	}
	if options.Set["table"] == "tool_calls" {
		return newArrowStream(f, arrowCallSchema, options, func(s *arrowStream[rows.ToolCall], ep *episode.Episode) error {
			return writeTables(ep, nil, s.table.put)
		}), nil
	}
	return newArrowStream(f, arrowTrajectorySchema, options, func(s *arrowStream[rows.Trajectory], ep *episode.Episode) error {
		s.leftOut += len(ep.Calls)
		return writeTables(ep, s.table.put, nil)
	}), nil
}

func newArrowStream[Row any](f *file, schema *arrow.Schema, options Options, write func(*arrowStream[Row], *episode.Episode) error) target {
	w := ipc.NewWriter(f, ipc.WithSchema(schema), ipc.WithZstd())
	return &arrowStream[Row]{file: f, table: newArrowTable[Row](f, w, schema, options), write: write}
}

func (s *arrowStream[Row]) add(ep *episode.Episode) error { return s.write(s, ep) }

func (s *arrowStream[Row]) finish() ([]FileInfo, error) {
	if err := s.table.end(); err != nil {
		return nil, err
	}
	return s.commit(s.table.rows)
}

// Notes say where the calls are.
func (s *arrowStream[Row]) Notes() []string {
	if s.leftOut == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the stream has the trajectories; the traces of their %d tool calls are in another (--set table=tool_calls)", s.leftOut)}
}
