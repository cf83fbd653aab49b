package journal

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrDamaged says that a journal holds bytes that no crash of its writer leaves behind. It is used by pointer.
type ErrDamaged struct {
	Segment string // path of the file
	Offset  int64  // where the first frame that cannot be read begins
	Reason  string
	ID      string // the damaged episode, when its head can be read
	Before  string // id of the last whole episode in front of it; empty when it is the first of its segment
	After   string // id of the first whole episode behind it; empty when it is the last of its segment
}

func (e *ErrDamaged) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "journal segment %s is damaged at byte %d", e.Segment, e.Offset)
	if e.ID != "" {
		fmt.Fprintf(&text, ", in episode %s", e.ID)
	}
	fmt.Fprintf(&text, ", between %s and %s: %s", cmp.Or(e.Before, "its start"), cmp.Or(e.After, "its end"), e.Reason)
	// The journal lies in its run directory.
	fmt.Fprintf(&text, " (trajgen repair --run %s says what is lost and takes it out, so that --resume plays it again)",
		filepath.Dir(filepath.Dir(e.Segment)))
	return text.String()
}

// LostText names the attempts that the damage took.
func (d Damage) LostText() string {
	var names []string
	for _, e := range d.Lost {
		name := fmt.Sprintf("%s (row %d, sample %d, attempt %d)", e.ID, e.Row, e.Sample, e.Attempt)
		if e.Pending {
			name += " that another one followed"
		}
		names = append(names, name)
	}
	if d.Unknown {
		names = append(names, "it is unknown what (trajgen verify says afterwards what is missing)")
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
