package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"trajgen/pipeline/episode"
)

// defaultHold is how many bytes of the rows that are laid aside stay in memory.
const defaultHold = 64 << 20

// aside keeps rows until their turn comes: in memory at first, then in an unlinked file, which always disappears with the process.
type aside struct {
	dir    string
	hold   int
	places []laidRow
	held   []byte
	file   *os.File
	end    int64
}

// laidRow is where a row lies: in held, and beyond its end in the file.
type laidRow struct {
	at   int64
	size int32
}

// laidHead goes before the row's object.
type laidHead struct {
	ID   string `json:"id"`
	Row  int    `json:"row"`
	File string `json:"file"`
	Line int    `json:"line"`
	Unit string `json:"unit"`
}

func newAside(n int, c Choice) *aside {
	return &aside{dir: c.Scratch, hold: cmp.Or(c.Hold, defaultHold), places: make([]laidRow, n)}
}

func (a *aside) put(place int, read readTask) error {
	head, err := json.Marshal(laidHead{ID: read.task.ID, Row: read.task.Row, File: read.row.file, Line: read.row.line, Unit: read.row.unit})
	if err != nil {
		return fmt.Errorf("lay row %d aside: %w", read.task.Row+1, err)
	}
	raw := append(append(head, '\n'), read.row.text...)
	a.places[place] = laidRow{at: int64(len(a.held)) + a.end, size: int32(len(raw))}
	if a.dir == "" || a.file == nil && len(a.held)+len(raw) <= a.hold {
		a.held = append(a.held, raw...)
		return nil
	}
	if a.file == nil {
		if a.file, err = os.CreateTemp(a.dir, ".tmp-tasks-*"); err != nil {
			return fmt.Errorf("lay rows aside: %w", err)
		}
		if err := os.Remove(a.file.Name()); err != nil {
			return fmt.Errorf("lay rows aside: %w", err)
		}
	}
	if _, err := a.file.WriteAt(raw, a.end); err != nil {
		return fmt.Errorf("lay rows aside in %s: %w", a.dir, bareCause(err))
	}
	a.end += int64(len(raw))
	return nil
}

// take returns a row. Of its task only the id and the row are set.
func (a *aside) take(place int) (readTask, error) {
	laid := a.places[place]
	raw := make([]byte, laid.size)
	if before := int64(len(a.held)); laid.at < before {
		copy(raw, a.held[laid.at:])
	} else if _, err := a.file.ReadAt(raw, laid.at-before); err != nil {
		return readTask{}, fmt.Errorf("read what was laid aside in %s: %w", a.dir, bareCause(err))
	}
	first, text, _ := bytes.Cut(raw, []byte("\n"))
	var head laidHead
	if err := json.Unmarshal(first, &head); err != nil {
		return readTask{}, fmt.Errorf("read what was laid aside: %w", err)
	}
	return readTask{
		task: &episode.Task{ID: head.ID, Row: head.Row},
		row:  row{file: head.File, line: head.Line, unit: head.Unit, text: text},
	}, nil
}

func (a *aside) close() {
	if a.file != nil {
		a.file.Close() // an unlinked scratch file: an error does not matter
	}
}
