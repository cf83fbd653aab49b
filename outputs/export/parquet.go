package export

import (
	"errors"
	"io"
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
	media        *mediaTable
}

const pageBytes = 4 << 20

// compression is shared by all tables: one encoder is enough where one is at work.
var compression = newPageCodec()

var parquetFormat = Format{
	imaging: named,
	nests:   true,
	Rows:    true,
	About:   "trajectories/*.parquet with a row per episode, tool_calls/*.parquet with a row per call, media/*.parquet with a row per image where there are any",
	Folder:  true,
	open:    openParquet,
}

func openParquet(dir string, options Options) (target, error) {
	return openParquetTables(filepath.Join(dir, "trajectories"), filepath.Join(dir, "tool_calls"), filepath.Join(dir, mediaName), options)
}

func openParquetTables(trajectoriesDir, callsDir, mediaDir string, options Options) (*parquetSink, error) {
	trajectories, err := openParts(trajectoriesDir, partPrefix, parquetSuffix)
	if err != nil {
		return nil, err
	}
	calls, err := openParts(callsDir, partPrefix, parquetSuffix)
	if err != nil {
		return nil, err
	}
	return newParquetSink(trajectories, calls, newMediaTable(options, mediaDir, func() (partFiles, error) {
		return openParts(mediaDir, partPrefix, parquetSuffix)
	}), options)
}

// newParquetSink writes the tables into files, which it closes.
func newParquetSink(trajectories, calls partFiles, media *mediaTable, options Options) (*parquetSink, error) {
	s := &parquetSink{media: media}
	var err error
	if s.trajectories, err = newTable[rows.Trajectory](trajectories, rows.Trajectories, "episode_id", options); err != nil {
		return nil, errors.Join(err, calls.close())
	}
	if s.calls, err = newTable[rows.ToolCall](calls, rows.ToolCalls, "episode_id", options); err != nil {
		return nil, errors.Join(err, s.trajectories.parts.close())
	}
	return s, nil
}

func (s *parquetSink) add(ep *episode.Episode) error {
	if err := s.media.add(ep); err != nil {
		return err
	}
	return writeTables(ep, s.trajectories.put, s.calls.put)
}

// writeTables writes the rows of an episode and behind them those of its subagents. A nil function is a table that is not
// written.
func writeTables(ep *episode.Episode, trajectory func(rows.Trajectory) error, call func(rows.ToolCall) error) error {
	for each := range ep.Tree() {
		if err := writeRows(each, trajectory, call); err != nil {
			return err
		}
	}
	return nil
}

func writeRows(ep *episode.Episode, trajectory func(rows.Trajectory) error, call func(rows.ToolCall) error) error {
	if trajectory != nil {
		row, err := rows.New(ep)
		if err != nil {
			return err
		}
		if err := trajectory(row); err != nil {
			return err
		}
	}
	if call != nil {
		for _, row := range rows.Calls(ep) {
			if err := call(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *parquetSink) finish() ([]FileInfo, error) {
	// All tables are complete on disk before any takes its name.
	if err := errors.Join(s.trajectories.end(), s.calls.end(), s.media.end()); err != nil {
		return nil, err
	}
	files, err := s.trajectories.parts.commit()
	if err != nil {
		return files, err
	}
	for _, commit := range []func() ([]FileInfo, error){s.calls.parts.commit, s.media.commit} {
		more, err := commit()
		if files = append(files, more...); err != nil {
			return files, err
		}
	}
	return files, nil
}

// Notes say how many images are missing.
func (s *parquetSink) Notes() []string { return s.media.notes.Notes() }

func (s *parquetSink) close() error {
	return errors.Join(s.trajectories.parts.close(), s.calls.parts.close(), s.media.close())
}

// parquetTable is a sequence of part files with rows of one type.
type parquetTable[Row any] struct {
	*parquetRows[Row]
	parts partFiles
	open  bool // a part is being written
}

const partPrefix, parquetSuffix = "part-", ".parquet"

// newTable begins the first part, so that an export of nothing has the schema too.
func newTable[Row any](p partFiles, schema *parquet.Schema, id string, options Options) (*parquetTable[Row], error) {
	t := &parquetTable[Row]{newParquetRows[Row](nil, schema, id, options), p, false}
	if err := t.begin(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return t, nil
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

// put adds a row, and ends the part when that made it full.
func (t *parquetTable[Row]) put(row Row) error {
	if !t.open {
		if err := t.begin(); err != nil {
			return err
		}
	}
	if err := t.parquetRows.put(row); err != nil {
		return err
	}
	if t.writer.Size() >= t.options.PartBytes || t.rows >= t.options.PartRows {
		return t.end()
	}
	return nil
}

// end completes the part on disk.
func (t *parquetTable[Row]) end() error {
	if !t.open {
		return nil
	}
	t.open = false
	if err := t.writer.Close(); err != nil {
		return err
	}
	return t.parts.finish(t.rows)
}

// parquetRows writes the rows of one file.
type parquetRows[Row any] struct {
	writer  *parquet.GenericWriter[Row]
	options Options
	rows    int64
	grouped int64 // of them in finished row groups
	flushed int64 // the writer's size after the last row group: Size counts the whole file
}

func newParquetRows[Row any](w io.Writer, schema *parquet.Schema, id string, options Options) *parquetRows[Row] {
	return &parquetRows[Row]{writer: parquet.NewGenericWriter[Row](w, parquetOptions(schema, id)...), options: options}
}

// put adds a row, and ends the row group when that made it full.
func (p *parquetRows[Row]) put(row Row) error {
	if _, err := p.writer.Write([]Row{row}); err != nil {
		return err
	}
	p.rows++
	if p.writer.Size()-p.flushed < p.options.RowGroupBytes && p.rows-p.grouped < p.options.RowGroupRows {
		return nil
	}
	err := p.writer.Flush()
	p.flushed, p.grouped = p.writer.Size(), p.rows
	return err
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
