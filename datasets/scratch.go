package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"trajgen/pipeline/episode"
)

// defaultHold is how many bytes of the rows that wait for their turn stay in memory.
const defaultHold = 64 << 20

// scratch keeps rows until their turn comes: in memory at first, then in an unlinked file, which always disappears with the
// process.
type scratch struct {
	dir    string
	hold   int
	places []scratchPlace
	held   []byte
	file   *os.File
	end    int64
}

// scratchPlace is where a row is: in held, or in the file, whose offsets count on from the end of held.
type scratchPlace struct {
	at   int64
	size int32
}

// scratchHead goes before the row's object.
type scratchHead struct {
	ID   string `json:"id"`
	Row  int    `json:"row"`
	File string `json:"file"`
	Line int    `json:"line"`
	Unit string `json:"unit"`
}

func newScratch(n int, c Choice) *scratch {
	return &scratch{dir: c.Scratch, hold: cmp.Or(c.Hold, defaultHold), places: make([]scratchPlace, n)}
}

func (a *scratch) put(place int, read readTask) error {
	head, err := json.Marshal(scratchHead{ID: read.task.ID, Row: read.task.Row, File: read.row.file, Line: read.row.line, Unit: read.row.unit})
	if err != nil {
		return fmt.Errorf("keep row %d in scratch: %w", read.task.Row+1, err)
	}
	raw := append(append(head, '\n'), read.row.text...)
	a.places[place] = scratchPlace{at: int64(len(a.held)) + a.end, size: int32(len(raw))}
	if a.dir == "" || a.file == nil && len(a.held)+len(raw) <= a.hold {
		a.held = append(a.held, raw...)
		return nil
	}
	if a.file == nil {
		if a.file, err = os.CreateTemp(a.dir, ".tmp-tasks-*"); err != nil {
			return fmt.Errorf("keep rows in scratch: %w", err)
		}
		if err := os.Remove(a.file.Name()); err != nil {
			return fmt.Errorf("keep rows in scratch: %w", err)
		}
	}
	if _, err := a.file.WriteAt(raw, a.end); err != nil {
		return fmt.Errorf("keep rows in %s: %w", a.dir, bareCause(err))
	}
	a.end += int64(len(raw))
	return nil
}

// take returns a row. Of its task only the id and the row are set.
func (a *scratch) take(place int) (readTask, error) {
	laid := a.places[place]
	raw := make([]byte, laid.size)
	if before := int64(len(a.held)); laid.at < before {
		copy(raw, a.held[laid.at:])
	} else if _, err := a.file.ReadAt(raw, laid.at-before); err != nil {
		return readTask{}, fmt.Errorf("read back a row from %s: %w", a.dir, bareCause(err))
	}
	first, text, _ := bytes.Cut(raw, []byte("\n"))
	var head scratchHead
	if err := json.Unmarshal(first, &head); err != nil {
		return readTask{}, fmt.Errorf("read back a row: %w", err)
	}
	return readTask{
		task: &episode.Task{ID: head.ID, Row: head.Row},
		row:  row{file: head.File, line: head.Line, unit: head.Unit, text: text},
	}, nil
}

func (a *scratch) close() {
	if a.file != nil {
		a.file.Close() // an unlinked scratch file: an error does not matter
	}
}
