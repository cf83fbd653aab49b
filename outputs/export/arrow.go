package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	Rows:   true,
	About:  "Arrow IPC files with the columns of parquet: trajectories.arrow and tool_calls.arrow",
	Folder: true,
	open:   openArrow,
}

var arrowStreamFormat = Format{
	Rows:     true,
	About:    "an Arrow IPC stream of one of the two tables",
	Settings: map[string]string{"table": "which one: trajectories (default) or tool_calls"},
	open:     openArrowStream,
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

// arrowTable writes rows in record batches, of which it holds one.
type arrowTable[Row any] struct {
	builder *array.RecordBuilder
	writer  interface {
		Write(arrow.Record) error
		Close() error
	}
	options Options
	rows    int64
	pending int64 // of them in the batch
	size    int64 // of the batch
}

func newArrowTable[Row any](schema *arrow.Schema, options Options, open func(...ipc.Option) (*arrowTable[Row], error)) (*arrowTable[Row], error) {
	t, err := open(ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return nil, err
	}
	t.builder, t.options = array.NewRecordBuilder(memory.DefaultAllocator, schema), options
	return t, nil
}

func (t *arrowTable[Row]) write(row *Row) error {
	t.size += rows.AppendArrow(t.builder, row)
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

// finish completes what is written, without closing the file.
func (t *arrowTable[Row]) finish() error { return errors.Join(t.flush(), t.writer.Close()) }

// arrowSink is a folder with the two tables.
type arrowSink struct {
	*folder
	disks        []*os.File
	trajectories *arrowTable[rows.Trajectory]
	calls        *arrowTable[rows.ToolCall]
	failed       error
}

func openArrow(path string, options Options) (Sink, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	s := &arrowSink{folder: f}
	s.trajectories, err = openArrowFile[rows.Trajectory](s, arrowTrajectories, arrowTrajectorySchema, options)
	if err == nil {
		s.calls, err = openArrowFile[rows.ToolCall](s, arrowCalls, arrowCallSchema, options)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func openArrowFile[Row any](s *arrowSink, name string, schema *arrow.Schema, options Options) (*arrowTable[Row], error) {
	path, err := s.at(name)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", s.path, disk.Explain(s.path, err))
	}
	s.disks = append(s.disks, out)
	return newArrowTable(schema, options, func(o ...ipc.Option) (*arrowTable[Row], error) {
		w, err := ipc.NewFileWriter(out, o...)
		return &arrowTable[Row]{writer: w}, err
	})
}

func (s *arrowSink) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed == nil {
		if err := s.write(ep); err != nil {
			s.failed = fmt.Errorf("write %s: %w", s.path, disk.Explain(s.path, err))
		}
	}
	return s.failed
}

func (s *arrowSink) write(ep *episode.Episode) error {
	row, err := rows.New(ep)
	if err != nil {
		return err
	}
	if err := s.trajectories.write(&row); err != nil {
		return err
	}
	calls := rows.Calls(ep)
	for i := range calls {
		if err := s.calls.write(&calls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *arrowSink) Commit() ([]FileInfo, error) {
	if s.failed != nil {
		return nil, fmt.Errorf("commit %s: it is not complete: %w", s.path, s.failed)
	}
	if s.committed {
		return s.commit() // which says so
	}
	err := errors.Join(s.trajectories.finish(), s.calls.finish())
	for _, out := range s.disks {
		err = errors.Join(err, out.Sync(), out.Close())
	}
	s.disks = nil
	if err == nil {
		err = errors.Join(s.wrote(arrowTrajectories, s.trajectories.rows), s.wrote(arrowCalls, s.calls.rows))
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", s.path, disk.Explain(s.path, err))
	}
	return s.commit()
}

func (s *arrowSink) Close() error {
	var err error
	for _, out := range s.disks {
		err = errors.Join(err, out.Close())
	}
	s.disks = nil
	return errors.Join(err, s.close())
}

// arrowStream is one table in one file, which may be a pipe.
type arrowStream struct {
	*file
	add    func(*episode.Episode) error
	finish func() (rows int64, err error)
	notes  []string
}

func openArrowStream(path string, options Options) (Sink, error) {
	table := options.Set["table"]
	if table != "" && table != "trajectories" && table != "tool_calls" {
		return nil, fmt.Errorf("table=%q (want trajectories or tool_calls)", table)
	}
	f, err := openFile(path, "trajectories.arrows")
	if err != nil {
		return nil, err
	}
	s := &arrowStream{file: f}
	if table == "tool_calls" {
		calls, err := openArrowTableOf[rows.ToolCall](f, arrowCallSchema, options)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		s.add = func(ep *episode.Episode) error {
			list := rows.Calls(ep)
			for i := range list {
				if err := calls.write(&list[i]); err != nil {
					return err
				}
			}
			return nil
		}
		s.finish = func() (int64, error) { return calls.rows, calls.finish() }
		return s, nil
	}
	trajectories, err := openArrowTableOf[rows.Trajectory](f, arrowTrajectorySchema, options)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	calls := 0
	s.add = func(ep *episode.Episode) error {
		calls += len(ep.Calls)
		row, err := rows.New(ep)
		if err != nil {
			return err
		}
		return trajectories.write(&row)
	}
	s.finish = func() (int64, error) {
		if calls > 0 {
			s.notes = append(s.notes, fmt.Sprintf("the stream has the trajectories; the traces of their %d tool calls are in another (--set table=tool_calls)", calls))
		}
		return trajectories.rows, trajectories.finish()
	}
	return s, nil
}

func openArrowTableOf[Row any](out io.Writer, schema *arrow.Schema, options Options) (*arrowTable[Row], error) {
	return newArrowTable(schema, options, func(o ...ipc.Option) (*arrowTable[Row], error) {
		return &arrowTable[Row]{writer: ipc.NewWriter(out, o...)}, nil
	})
}

func (s *arrowStream) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed != nil {
		return s.failed
	}
	if err := s.add(ep); err != nil {
		return s.fail(fmt.Errorf("write %s: %w", filepath.Base(s.path), err))
	}
	return nil
}

func (s *arrowStream) Commit() ([]FileInfo, error) {
	if s.committed || s.failed != nil {
		return s.commit(0) // which says why not
	}
	n, err := s.finish()
	if err != nil {
		return nil, s.fail(fmt.Errorf("write %s: %w", s.path, err))
	}
	return s.commit(n)
}

func (s *arrowStream) Notes() []string { return s.notes }

func (s *arrowStream) Close() error { return s.close() }
