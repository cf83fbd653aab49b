package compress

import "trajgen/outputs/export"

// Marks is the file that says of each episode what was done, one JSON object a line. It has its name only when it is
// whole, and is locked against a second writer meanwhile.
type Marks struct{ *export.WholeLines }

// NewMarks begins the file.
func NewMarks(path string) (*Marks, error) {
	lines, err := export.NewWholeLines(path)
	if err != nil {
		return nil, err
	}
	return &Marks{lines}, nil
}

// Write adds a mark.
func (m *Marks) Write(mark Mark) error { return m.Add(mark) }
