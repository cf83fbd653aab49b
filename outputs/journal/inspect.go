package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/outputs/log"
)

// Damage is a part of a journal that cannot be read. It is like ErrDamaged, after a look at everything.
type Damage struct {
	Segment string `json:"segment"` // path of the file
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"` // 0 for what is missing at the end of a segment, or with the whole of it
	Reason  string `json:"reason"`
	// Lost are the attempts that were there, as far as their heads or the index file beside the segment tell.
	Lost []Entry `json:"lost"`
	// Unknown says that there may have been others.
	Unknown bool   `json:"unknown,omitempty"`
	Before  string `json:"before,omitempty"` // id of the last whole frame in front of it in the segment
	After   string `json:"after,omitempty"`  // id of the first one behind it
	// Torn is the end of the last segment as an interrupted write leaves it: nothing of it was acknowledged, and the next
	// run cuts it off.
	Torn bool `json:"torn,omitempty"`

	number int // of the segment
}

func (d Damage) String() string {
	where := fmt.Sprintf("%s: %d bytes at %d", d.Segment, d.Length, d.Offset)
	return fmt.Sprintf("%s, between %s and %s: %s", where, cmp.Or(d.Before, "its start"), cmp.Or(d.After, "its end"), d.Reason)
}

// Inspect reads every byte of a journal in the order of writing, also of one that is being written, and hands each attempt
// that is whole to visit: the checksums of its head and its payload are right, and the index entry agrees. It decodes
// nothing; a Reader does, which may be Strict. An error of visit ends it.
func Inspect(ctx context.Context, dir string, visit func(segment int, attempt Entry) error) ([]Damage, error) {
	in := inspection{ctx: ctx, dir: dir, packed: true, visit: func(segment int, h frame) error { return visit(segment, h.About) }}
	err := in.all()
	return in.damages, err
}

// DamagedIndexes names the index files that cannot be read. No episode is lost with one.
func DamagedIndexes(dir string) (names []string, err error) {
	for _, pattern := range []string{"*.idx", "*.end"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			switch _, _, err := readIndex(path); {
			case errors.Is(err, errIndex):
				names = append(names, filepath.Base(path))
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return nil, err
			}
		}
	}
	return names, nil
}

type inspection struct {
	ctx     context.Context
	dir     string
	packed  bool // nothing is decoded
	visit   func(segment int, h frame) error
	damages []Damage

	// Of the segment that is read.
	number  int
	indexed []indexed
	known   int64 // bytes of which indexed tells all frames; -1 without an index file
	at      int   // of indexed, the frame that is next
}

// all reads every segment.
func (in *inspection) all() error {
	count, err := segments(in.dir)
	if missing, ok := errors.AsType[*missingSegments](err); ok {
		count, err = missing.count, nil
	}
	if err != nil {
		return fmt.Errorf("inspect journal %s: %w", in.dir, err)
	}
	for n := 1; n <= count; n++ {
		if err := in.segment(n, n == count); err != nil {
			return err
		}
	}
	return nil
}

// segment reads one.
func (in *inspection) segment(n int, last bool) error {
	path := filepath.Join(in.dir, SegmentName(n))
	in.number = n
	name := indexName(n)
	if last {
		name = endName(n)
	}
	size, indexed, err := readIndex(filepath.Join(in.dir, name))
	in.indexed, in.known, in.at = indexed, size, 0
	if err != nil {
		in.known = -1
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errIndex) {
		return fmt.Errorf("inspect journal: %w", err)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		in.damage(Damage{Segment: path, Reason: "the segment is missing"}, 0, size)
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect journal: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("inspect journal: %w", err)
	}
	whole := info.Size()
	if last {
		if whole, err = frames.Torn(f, min(size, whole), whole); err != nil {
			return fmt.Errorf("inspect journal segment %s: %w", path, err)
		}
	}
	if err := in.frames(f, whole, last); err != nil {
		return err
	}
	if whole < info.Size() {
		in.add(Damage{Segment: path, Offset: whole, Length: info.Size() - whole, Reason: "an interrupted write", Torn: true})
	}
	return nil
}

// frames reads the frames of a segment. The last one may be longer than its index file says.
func (in *inspection) frames(f *os.File, size int64, last bool) error {
	before := ""
	for part, err := range frames.Parts(f, 0, size, true) {
		if err != nil {
			return fmt.Errorf("inspect journal segment %s: %w", f.Name(), err)
		}
		if err := context.Cause(in.ctx); err != nil {
			return err
		}
		if part.Broken == nil {
			part.Broken = in.check(part)
		}
		about := part.Frame.About
		if part.Broken == nil {
			in.after(about.ID)
			if err := in.visit(in.number, part.Frame); err != nil {
				return err
			}
			before = about.ID
			continue
		}
		d := Damage{Segment: f.Name(), Offset: part.From, Length: part.To - part.From, Reason: part.Broken.Error(), Before: before}
		if from := max(part.From, in.known); from < part.To {
			d.Unknown = about.ID == ""
			heads, err := frames.Heads(f, from, part.To, size)
			if err != nil {
				return fmt.Errorf("inspect journal segment %s: %w", f.Name(), err)
			}
			for _, h := range heads {
				d.Lost = append(d.Lost, h.About)
			}
		}
		in.damage(d, part.From, part.To)
	}
	if in.known > size || in.known >= 0 && in.known < size && !last {
		in.damage(Damage{Segment: f.Name(), Offset: min(size, in.known), Before: before, Reason: otherSize(size, in.known)}, size, in.known)
	}
	return nil
}

// check compares a frame with its index entry and, where it is to be decoded, with its payload.
func (in *inspection) check(part log.Part[Entry]) error {
	want := in.expected(part.Frame)
	err := part.Frame.About.is(want)
	if err == nil && !in.packed {
		_, err = want.decode(part.Payload)
	}
	return err
}

// damage takes down damage with what the index file says of the bytes from one offset to another.
func (in *inspection) damage(d Damage, from, to int64) {
	for _, frame := range in.indexed {
		if frame.offset >= from && frame.offset < to {
			d.Lost = append(d.Lost, frame.Entry)
		}
	}
	d.Unknown = d.Unknown || in.known < 0 && len(d.Lost) == 0
	in.add(d)
}

// after names the frame behind the damage that was last taken down.
func (in *inspection) after(id string) {
	for i := len(in.damages) - 1; i >= 0 && in.damages[i].number == in.number && in.damages[i].After == ""; i-- {
		in.damages[i].After = id
	}
}

func (in *inspection) add(d Damage) {
	d.number = in.number
	in.damages = append(in.damages, d)
}

// expected is the entry that the index file has for a frame, or the frame's own.
func (in *inspection) expected(h frame) Entry {
	for in.at < len(in.indexed) && in.indexed[in.at].offset < h.Offset {
		in.at++
	}
	if in.at < len(in.indexed) && in.indexed[in.at].offset == h.Offset {
		return in.indexed[in.at].Entry
	}
	return h.About
}
