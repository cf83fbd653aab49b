package datasets

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

var (
	arrowFileMagic    = []byte("ARROW1")
	arrowMessageMagic = []byte{0xff, 0xff, 0xff, 0xff} // begins each message of a stream
	featherMagic      = []byte("FEA1")                 // the format before Arrow's own
)

func looksLikeArrow(head []byte) bool {
	return bytes.HasPrefix(head, arrowFileMagic) || bytes.HasPrefix(head, arrowMessageMagic) || bytes.HasPrefix(head, featherMagic)
}

// arrowRows reads an IPC file or stream of any schema but one with unions, batch by batch: of the file, one batch and the
// dictionaries are in memory. Each row becomes a JSON object in the order of the columns; see arrowRow for what the
// types become.
func arrowRows(file *os.File, yield func(row) bool) error {
	messages, err := arrowSection(file)
	if err != nil {
		return err
	}
	number := 0
	for batch, err := range arrowBatches(messages) {
		if err != nil {
			return fmt.Errorf("after row %d: %w", number, err)
		}
		for i := range int(batch.NumRows()) {
			number++
			r := row{line: number, unit: "row"}
			if r.text, err = arrowObject(batch, i); err != nil {
				r.text, r.broken = nil, err.Error()
			}
			if !yield(r) {
				return nil
			}
		}
	}
	return nil
}

// arrowSection is the messages of a stream, or those of a file, which is a stream between a magic and a footer. The footer, which
// only lists the batches, shows that the file is complete.
func arrowSection(file *os.File) (*io.SectionReader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	head := make([]byte, len(arrowFileMagic))
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, size), head); err != nil {
		return nil, errCutArrow
	}
	if bytes.HasPrefix(head, featherMagic) {
		return nil, errors.New("it is a Feather file of version 1; write it anew as Arrow IPC, which is Feather version 2")
	}
	if !bytes.Equal(head, arrowFileMagic) {
		return io.NewSectionReader(file, 0, size), nil
	}
	const begin, tail = 8, 4 + 6 // the magic, padded; the footer's length and the magic
	end := make([]byte, tail)
	if size < begin+tail {
		return nil, errCutArrow
	}
	if _, err := file.ReadAt(end, size-tail); err != nil {
		return nil, err
	}
	footer := int64(binary.LittleEndian.Uint32(end))
	if !bytes.Equal(end[4:], arrowFileMagic) || footer > size-begin-tail {
		return nil, errCutArrow
	}
	return io.NewSectionReader(file, begin, size-begin-tail-footer), nil
}

var errCutArrow = errors.New("the Arrow file is cut off: its end is not there")

// arrowBatches streams the record batches. A batch is valid until the next one.
func arrowBatches(section *io.SectionReader) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		memory := &boundedMemory{}
		messages := &arrowMessages{section: section, memory: memory}
		reader, err := ipc.NewReaderFromMessageReader(messages, ipc.WithAllocator(memory))
		if err != nil {
			yield(nil, messages.explain(err))
			return
		}
		for reader.Next() {
			batch := reader.Record()
			if rows := batch.NumRows(); rows > 8*int64(memory.used) {
				yield(nil, fmt.Errorf("a record batch claims %d rows and has no values for them", rows))
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
		if err := reader.Err(); err != nil {
			yield(nil, messages.explain(err))
		}
	}
}

// arrowObject builds the JSON object of a row.
func arrowObject(batch arrow.Record, i int) (object json.RawMessage, err error) {
	err = guarded(func() (err error) {
		object, err = new(arrowRow).object(batch.Schema().Fields(), batch.Columns(), i)
		return err
	})
	return object, err
}
