package export

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// parquetSink writes trajectories/part-*.parquet and tool_calls/part-*.parquet below a directory. What it holds in
// memory is bounded: for each of the two, one row group (Options.RowGroupBytes of compressed pages) and one page
// of up to 4 MiB, or one value when that is larger, for each column.
type parquetSink struct {
	trajectories *parquetTable[rows.Trajectory]
	calls        *parquetTable[rows.ToolCall]
	failed       error
}

const pageBytes = 4 << 20

// compression is shared by all tables: one encoder is enough where one is at work.
var compression = newPageCodec()

var parquetFormat = Format{
	Rows:   true,
	About:  "trajectories/*.parquet with a row per episode, tool_calls/*.parquet with a row per call",
	Folder: true,
	open:   openParquet,
}

func openParquet(dir string, options Options) (Sink, error) {
	trajectories, err := openParts(filepath.Join(dir, "trajectories"), partPrefix, parquetSuffix)
	if err != nil {
		return nil, err
	}
	calls, err := openParts(filepath.Join(dir, "tool_calls"), partPrefix, parquetSuffix)
	if err != nil {
		return nil, err
	}
	return newParquetSink(trajectories, calls, options)
}

// newParquetSink writes both tables into files, which it closes.
func newParquetSink(trajectories, calls partFiles, options Options) (Sink, error) {
	s := &parquetSink{}
	var err error
	if s.trajectories, err = newTable[rows.Trajectory](trajectories, rows.Trajectories, "episode_id", options); err != nil {
		return nil, errors.Join(err, calls.close())
	}
	if s.calls, err = newTable[rows.ToolCall](calls, rows.ToolCalls, "episode_id", options); err != nil {
		return nil, errors.Join(err, s.trajectories.close())
	}
	return s, nil
}

func (s *parquetSink) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed == nil {
		s.failed = writeTables(s.trajectories, s.calls, ep)
	}
	return s.failed
}

// writeTables adds an episode and its calls.
func writeTables(trajectories *parquetTable[rows.Trajectory], calls *parquetTable[rows.ToolCall], ep *episode.Episode) error {
	row, err := rows.New(ep)
	if err != nil {
		return err
	}
	if err := trajectories.write(row); err != nil {
		return err
	}
	for _, call := range rows.Calls(ep) {
		if err := calls.write(call); err != nil {
			return err
		}
	}
	return nil
}

func (s *parquetSink) Commit() ([]FileInfo, error) {
	if s.failed != nil {
		return nil, fmt.Errorf("commit Parquet files: they are not complete: %w", s.failed)
	}
	// Both tables are complete on disk before either takes its name.
	if err := errors.Join(s.trajectories.finish(), s.calls.finish()); err != nil {
		return nil, err
	}
	files, err := s.trajectories.parts.commit()
	if err != nil {
		return files, err
	}
	more, err := s.calls.parts.commit()
	return append(files, more...), err
}

func (s *parquetSink) Close() error {
	return errors.Join(s.trajectories.close(), s.calls.close())
}

// parquetTable is a sequence of part files with rows of one type.
type parquetTable[Row any] struct {
	parts   partFiles
	writer  *parquet.GenericWriter[Row]
	options Options

	rows    int64 // of the part
	grouped int64 // of them in finished row groups
	flushed int64 // the writer's size after the last row group: Size counts the whole file
	open    bool  // a part is being written
	one     [1]Row
}

// openTable makes the directory and the first part, so that an export of nothing has the schema too.
func openTable[Row any](dir string, schema *parquet.Schema, id string, options Options) (*parquetTable[Row], error) {
	p, err := openParts(dir, partPrefix, parquetSuffix)
	if err != nil {
		return nil, err
	}
	return newTable[Row](p, schema, id, options)
}

const partPrefix, parquetSuffix = "part-", ".parquet"

func newTable[Row any](p partFiles, schema *parquet.Schema, id string, options Options) (*parquetTable[Row], error) {
	t := &parquetTable[Row]{parts: p, options: options}
	t.writer = parquet.NewGenericWriter[Row](nil, parquetOptions(schema, id)...)
	if err := t.begin(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return t, nil
}

// parquetOptions are how every Parquet file is written. Its rows can be found by the id.
func parquetOptions(schema *parquet.Schema, id string) []parquet.WriterOption {
	config := []parquet.WriterOption{
		schema,
		// Without a version of ours or of parquet-go, so that a build does not change the bytes.
		parquet.CreatedBy("trajgen", strconv.Itoa(episode.SchemaVersion), "trajgen"),
		parquet.KeyValueMetadata("trajgen.schema_version", strconv.Itoa(episode.SchemaVersion)),
		parquet.KeyValueMetadata("trajgen.table", schema.Name()),
		// Large pages, so that the compressor sees the samples of a task, which resemble each other, together. They pay for
		// the better level: a file is a seventh smaller for the same time.
		parquet.Compression(compression),
		parquet.PageBufferSize(pageBytes),
		// Page headers repeat the bounds of every page; the column index has them.
		parquet.DataPageStatistics(false),
		// Model-written names have dictionaries too; this stops one from growing with hostile names.
		parquet.DictionaryMaxBytes(1 << 20),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, id)),
	}
	for _, path := range rows.Unbounded(schema) {
		config = append(config, parquet.SkipPageBounds(path...))
	}
	return config
}

// begin begins a part.
func (t *parquetTable[Row]) begin() error {
	f, err := t.parts.next()
	if err != nil {
		return err
	}
	t.writer.Reset(f)
	t.rows, t.grouped, t.flushed, t.open = 0, 0, 0, true
	return nil
}

// write adds a row, and ends the row group or the part when that made it full.
func (t *parquetTable[Row]) write(row Row) error {
	if !t.open {
		if err := t.begin(); err != nil {
			return err
		}
	}
	t.one[0] = row
	_, err := t.writer.Write(t.one[:])
	clear(t.one[:]) // its texts are the episode's
	if err != nil {
		return t.parts.explain(err)
	}
	t.rows++
	if t.writer.Size()-t.flushed >= t.options.RowGroupBytes || t.rows-t.grouped >= t.options.RowGroupRows {
		if err := t.writer.Flush(); err != nil {
			return t.parts.explain(err)
		}
		t.flushed, t.grouped = t.writer.Size(), t.rows
	}
	if t.writer.Size() >= t.options.PartBytes || t.rows >= t.options.PartRows {
		return t.finish()
	}
	return nil
}

// finish completes the part on disk.
func (t *parquetTable[Row]) finish() error {
	if !t.open {
		return nil
	}
	t.open = false
	if err := t.writer.Close(); err != nil {
		return t.parts.explain(err)
	}
	return t.parts.finish(t.rows)
}

func (t *parquetTable[Row]) close() error { return t.parts.close() }
