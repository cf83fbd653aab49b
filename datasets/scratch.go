package datasets

import (
	"bufio"
	"fmt"
	"os"
)

// scratch keeps rows until their turn comes, in an unlinked file, which always disappears with the process.
type scratch struct {
	file   *os.File
	out    *bufio.Writer
	end    int64
	places []scratchPlace
}

// scratchPlace is where the id of a task lies, with its row behind it.
type scratchPlace struct {
	at      int64
	id, row int32 // sizes
}

func newScratch(dir string, n int) (*scratch, error) {
	file, err := os.CreateTemp(dir, ".tmp-tasks-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("keep rows in scratch: %w", err)
	}
	return &scratch{file: file, out: bufio.NewWriterSize(file, 1<<20), places: make([]scratchPlace, n)}, nil
}

func (s *scratch) put(place int, id string, row []byte) error {
	s.places[place] = scratchPlace{at: s.end, id: int32(len(id)), row: int32(len(row))}
	s.end += int64(len(id) + len(row))
	s.out.WriteString(id) // the writer returns its first error again
	if _, err := s.out.Write(row); err != nil {
		return fmt.Errorf("keep rows in scratch: %w", bareCause(err))
	}
	return nil
}

// take returns a task's id and its row.
func (s *scratch) take(place int) (id string, row []byte, err error) {
	if err := s.out.Flush(); err != nil {
		return "", nil, fmt.Errorf("keep rows in scratch: %w", bareCause(err))
	}
	kept := s.places[place]
	raw := make([]byte, kept.id+kept.row)
	if _, err := s.file.ReadAt(raw, kept.at); err != nil {
		return "", nil, fmt.Errorf("read back a row from scratch: %w", bareCause(err))
	}
	return string(raw[:kept.id]), raw[kept.id:], nil
}

func (s *scratch) close() { s.file.Close() } // an unlinked file: an error does not matter
