package datasets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

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
	section, err := arrowSection(file)
	if err != nil {
		return err
	}
	messages := &arrowMessages{section: section, live: map[int64]int{}}
	reader, err := ipc.NewReaderFromMessageReader(messages, ipc.WithAllocator(&messages.memory))
	number := 0
	for err == nil && reader.Next() {
		batch := reader.Record() // until the next one
		if rows := batch.NumRows(); rows > 8*int64(messages.memory.used) {
			return fmt.Errorf("after row %d: a record batch claims %d rows and has no values for them", number, rows)
		}
		for i := range int(batch.NumRows()) {
			number++
			r := row{line: number, unit: "row"}
			err := guarded(func() (err error) {
				r.text, err = new(arrowRow).object(batch.Schema().Fields(), batch.Columns(), i)
				return err
			})
			if err != nil {
				r.text, r.broken = nil, err.Error()
			}
			if !yield(r) {
				return nil
			}
		}
	}
	if err == nil {
		err = reader.Err()
	}
	if err != nil {
		return fmt.Errorf("after row %d: %w", number, messages.explain(err))
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
