package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// SegmentName is the name of the n-th file of a journal, from 1.
func SegmentName(n int) string { return fmt.Sprintf("%06d.seg", n) }

// missingSegments says which of so many segments are gone.
type missingSegments struct {
	ErrDamaged // of the first
	count      int
}

func (m *missingSegments) Unwrap() error { return &m.ErrDamaged }

// segments counts the segments of a journal. They are numbered from 1 without a gap, and the index file of one says that
// there is another behind it, so one that was lost is noticed; the error is then a *missingSegments.
func segments(dir string) (int, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	last := 0
	have := make(map[int]bool)
	for _, entry := range names {
		var n int
		if _, err := fmt.Sscanf(entry.Name(), "%d.", &n); err != nil || n <= 0 || n > maxSegments {
			continue
		}
		switch entry.Name() {
		case SegmentName(n):
			last, have[n] = max(last, n), true
		case indexName(n):
			last = max(last, n+1)
		case endName(n):
			last = max(last, n)
		}
	}
	for n := 1; n <= last; n++ {
		path := filepath.Join(dir, SegmentName(n))
		if have[n] {
			continue
		}
		// A writer may have begun it while the directory was read.
		if _, err := os.Stat(path); err != nil {
			return 0, &missingSegments{ErrDamaged{Segment: path, Reason: "the segment is missing"}, last}
		}
	}
	return last, nil
}

// maxSegments bounds what a name can make of a journal.
const maxSegments = 1 << 20

// found is what was found in a segment.
type found struct {
	number int
	first  int   // number of its first record
	size   int64 // of the file
	good   int64 // bytes of the whole frames with which it begins
	write  int64 // where the last write of those begins
	ended  int64 // how much of the file its file of the end counts
	torn   error // what an interrupted write left behind the good ones; nil when there is nothing
	index  error // why its index file does not say what it holds; nil when it does
}

// load adds what the segments in dir hold, and gives each one to visit, which owns the file.
func (x *index) load(dir string, visit func(*os.File, found) error) error {
	count, err := segments(dir)
	if err != nil {
		return fmt.Errorf("open journal %s: %w", dir, err)
	}
	for n := 1; n <= count; n++ {
		path := filepath.Join(dir, SegmentName(n))
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("open journal segment: %w", disk.Explain(path, err))
		}
		s := found{number: n, first: len(x.records)}
		if n < count {
			err = x.loadFull(f, dir, &s)
		} else {
			err = x.loadLast(f, dir, &s)
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if err := visit(f, s); err != nil {
			return err
		}
	}
	return nil
}

// loadFull adds what a full segment holds, from its index file or, when that is damaged or missing, from its frames.
func (x *index) loadFull(f *os.File, dir string, s *found) error {
	size, indexed, err := readIndex(filepath.Join(dir, indexName(s.number)))
	if s.index = err; err != nil {
		err = x.scan(f, s, false)
		return cmp.Or(err, s.torn)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read journal segment: %w", err)
	}
	if s.size, s.good = info.Size(), size; s.size != size {
		return &ErrDamaged{Segment: f.Name(), Offset: min(s.size, size), Reason: otherSize(s.size, size)}
	}
	for _, frame := range indexed {
		x.add(frame.Entry, s.number, frame.offset)
	}
	return nil
}

// loadLast adds what the last segment holds.
func (x *index) loadLast(f *os.File, dir string, s *found) error {
	ended, _, endErr := readIndex(filepath.Join(dir, endName(s.number)))
	err := x.scan(f, s, true)
	if endErr != nil || err != nil {
		return err
	}
	if s.ended = ended; s.good < ended {
		return cmp.Or(s.torn, error(&ErrDamaged{Segment: f.Name(), Offset: s.good, Reason: otherSize(s.size, ended)}))
	}
	return nil
}

func otherSize(segment, index int64) string {
	return fmt.Sprintf("the segment is %d bytes, its index file is for %d", segment, index)
}

// scan adds the frames of a segment; with verify it checks payloads, too. What no interrupted write explains is an
// *ErrDamaged.
func (x *index) scan(f *os.File, s *found, verify bool) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read journal segment: %w", err)
	}
	// A live writer may append while this reads: what is behind the size of now does not exist for this scan.
	s.size = info.Size()
	before := ""
	var damage *ErrDamaged
	for part, err := range frames.Parts(f, 0, s.size, verify) {
		if err != nil {
			return fmt.Errorf("read journal segment %s: %w", f.Name(), err)
		}
		about := part.Frame.About
		if part.Broken == nil && damage == nil {
			x.add(about, s.number, part.From)
			before, s.good, s.write = about.ID, part.To, part.Frame.Batch
		} else if damage == nil {
			damage = &ErrDamaged{Segment: f.Name(), Offset: s.good, Reason: part.Broken.Error(), ID: about.ID, Before: before}
		} else if part.Broken == nil {
			damage.After = about.ID
			break
		}
	}
	if damage == nil {
		return nil
	}
	torn, err := frames.Torn(f, s.good, s.size)
	if err != nil {
		return fmt.Errorf("read journal segment %s: %w", f.Name(), err)
	}
	if torn > s.good {
		return damage
	}
	s.torn = damage
	return nil
}

// keepBytes copies bytes of a segment into a new file whose name has the first number that is free.
func keepBytes(system disk.System, pattern string, from io.ReaderAt, offset, size int64) (kept string, err error) {
	for n := 1; ; n++ {
		kept = fmt.Sprintf(pattern, n)
		copied, err := system.Create(kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", disk.Explain(kept, err)
		}
		_, err = io.Copy(io.NewOffsetWriter(copied, 0), io.NewSectionReader(from, offset, size))
		err = errors.Join(err, copied.Sync(), copied.Close())
		if err != nil {
			return "", disk.Explain(kept, err)
		}
		return kept, system.Sync(filepath.Dir(kept))
	}
}
