package datasets

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"trajgen/pipeline/episode"
)

// scratch keeps tasks until their turn comes, in an unlinked file, which always disappears with the process.
type scratch struct {
	file *os.File
	out  *bufio.Writer
	ends []int64 // of each task in the file
}

func newScratch(dir string) (*scratch, error) {
	file, err := os.CreateTemp(dir, ".tmp-tasks-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("keep rows in scratch: %w", err)
	}
	return &scratch{file: file, out: bufio.NewWriterSize(file, 1<<20), ends: []int64{0}}, nil
}

func (s *scratch) put(task *episode.Task) error {
	data, err := encode(task)
	if err == nil {
		_, err = s.out.Write(data)
	}
	if err != nil {
		return fmt.Errorf("keep row %d in scratch: %w", task.Row+1, bareCause(err))
	}
	s.ends = append(s.ends, s.ends[len(s.ends)-1]+int64(len(data)))
	return nil
}

// take returns the task that was put there at that place, from 0.
func (s *scratch) take(place int) (*episode.Task, error) {
	data := make([]byte, s.ends[place+1]-s.ends[place])
	task := &episode.Task{}
	err := s.out.Flush()
	if err == nil {
		_, err = s.file.ReadAt(data, s.ends[place])
	}
	if err == nil {
		err = json.Unmarshal(data, task)
	}
	if err != nil {
		return nil, fmt.Errorf("read back a row from scratch: %w", bareCause(err))
	}
	return task, nil
}

func (s *scratch) close() { s.file.Close() } // an unlinked file: an error does not matter
