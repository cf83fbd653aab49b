package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// maxArrowBatch bounds what reading a record batch may take: ours are of Options.RowGroupBytes, or of one row.
const maxArrowBatch = 1 << 30

// beginArrow opens an export to arrow. What reading it holds is a record batch of each table.
func (in *input) beginArrow() error {
	trajectories, err := in.openArrow(arrowTrajectories, arrowTrajectorySchema)
	if err != nil {
		return err
	}
	calls, err := in.openArrow(arrowCalls, arrowCallSchema)
	if err != nil {
		return err
	}
	in.rows = true
	in.episodes = func(ctx context.Context) iter.Seq2[*episode.Episode, error] {
		ofCalls := arrowRowsOf[rows.ToolCall](calls, arrowCallSchema)
		return nested(joined(ctx, arrowRowsOf[rows.Trajectory](trajectories, arrowTrajectorySchema), ofCalls))
	}
	return nil
}

func (in *input) openArrow(name string, schema *arrow.Schema) (*os.File, error) {
	f, err := in.open(filepath.Join(in.path, name))
	if err != nil {
		return nil, err
	}
	if _, err := arrowMessages(f, schema); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return f, nil
}

// An Arrow file is its magic, padded to eight bytes, a stream, a footer, the footer's length and the magic again.
const arrowMagic = "ARROW1"

// arrowMessages is the stream within a file. Its schema must be ours byte for byte: the library believes the lengths in
// a schema, and asks for as much memory. The footer, which repeats it, is not read.
func arrowMessages(f *os.File, schema *arrow.Schema) (*io.SectionReader, error) {
	damaged := errors.New("the Arrow file is damaged or cut off")
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := "ARROW1\x00\x00" + arrowHead(schema)
	begin, end := make([]byte, len(head)), make([]byte, 4+len(arrowMagic))
	if _, err := f.ReadAt(begin, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if string(begin) != head {
		return nil, errors.New("its columns are not those that this trajgen writes, or it is damaged (a dataset of another make is played with run --dataset)")
	}
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil {
		return nil, damaged
	}
	footer := info.Size() - int64(len(end)) - int64(binary.LittleEndian.Uint32(end))
	if string(end[4:]) != arrowMagic || footer < int64(len(head)) {
		return nil, damaged
	}
	return io.NewSectionReader(f, 8, footer-8), nil
}

// arrowHead is the message of a schema, as writers begin a stream with it.
func arrowHead(schema *arrow.Schema) string {
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(schema), ipc.WithZstd())
	if err := w.Close(); err != nil { // into memory
		panic(err)
	}
	return stream.String()[:stream.Len()-8] // the mark of the end
}

// arrowRowsOf yields the rows of a file.
func arrowRowsOf[Row any](f *os.File, schema *arrow.Schema) iter.Seq2[placed[Row], error] {
	return func(yield func(placed[Row], error) bool) {
		number, batch := 0, 0
		fail := func(err error) {
			yield(placed[Row]{}, fmt.Errorf("read %s, record batch %d, behind row %d: the Arrow file is damaged: %w", f.Name(), batch, number, err))
		}
		messages, err := arrowMessages(f, schema)
		if err != nil {
			fail(err)
			return
		}
		var reader *ipc.Reader
		err = guarded(func() (err error) {
			reader, err = ipc.NewReader(messages, ipc.WithAllocator(&bounded{}))
			return err
		})
		if err != nil {
			fail(err)
			return
		}
		defer guarded(func() error { reader.Release(); return nil })
		for ; ; batch++ {
			var record arrow.Record
			err := guarded(func() error {
				if reader.Next() {
					record = reader.Record()
				}
				return reader.Err()
			})
			if err != nil {
				fail(err)
				return
			}
			if record == nil {
				break
			}
			for i := range int(record.NumRows()) {
				row := new(Row)
				if err := guarded(func() error { return rows.ReadArrow(record, i, row) }); err != nil {
					fail(err)
					return
				}
				number++
				if !yield(placed[Row]{row, f.Name(), number}, nil) {
					return
				}
			}
		}
		// A damaged message can look like the end.
		if at, err := messages.Seek(0, io.SeekCurrent); err != nil || at != messages.Size() {
			fail(fmt.Errorf("its record batches end at byte %d, and its footer begins at %d", 8+at, 8+messages.Size()))
		}
	}
}

// bounded gives out memory as far as a batch of ours could need it: hostile lengths end in an error and not in the end of
// the process.
type bounded struct{ given int }

func (b *bounded) Allocate(size int) []byte {
	b.take(size, size)
	return memory.DefaultAllocator.Allocate(size)
}

func (b *bounded) Reallocate(size int, buf []byte) []byte {
	b.take(size, size-len(buf))
	return memory.DefaultAllocator.Reallocate(size, buf)
}

func (b *bounded) Free(buf []byte) {
	b.given -= len(buf)
	memory.DefaultAllocator.Free(buf)
}

func (b *bounded) take(size, more int) {
	if size < 0 || size > maxArrowBatch || b.given+more > maxArrowBatch {
		panic(fmt.Sprintf("a record batch of more than %d MiB", maxArrowBatch>>20))
	}
	b.given += more
}
