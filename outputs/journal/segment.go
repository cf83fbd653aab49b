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
func SegmentName(n int) string { return segmentName(n) }

func segmentName(n int) string { return fmt.Sprintf("%06d.seg", n) }

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
		case segmentName(n):
			last, have[n] = max(last, n), true
		case indexName(n):
			last = max(last, n+1)
		case endName(n):
			last = max(last, n)
		}
	}
	for n := 1; n <= last; n++ {
		path := filepath.Join(dir, segmentName(n))
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

// segmentFile is a segment that is read.
type segmentFile interface {
	io.ReaderAt
	Name() string
	Stat() (fs.FileInfo, error)
}

// load adds what a full segment holds, from its index file or, when that is damaged or missing, from its frames. indexErr is
// what is wrong with it.
func (x *index) load(f segmentFile, dir string, n int) (size int64, indexErr, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, fmt.Errorf("read journal segment: %w", err)
	}
	size, frames, indexErr := readIndex(filepath.Join(dir, indexName(n)))
	if indexErr != nil {
		size, _, _, err = scan(f, false, func(h head) { x.add(h.Entry, n, h.offset) })
		return size, indexErr, err
	}
	if size != info.Size() {
		return 0, nil, &ErrDamaged{Segment: f.Name(), Offset: min(size, info.Size()), Reason: otherSize(info.Size(), size)}
	}
	for _, frame := range frames {
		x.add(frame.Entry, n, frame.offset)
	}
	return size, nil, nil
}

// loadLast adds what the last segment holds, as scan does. end is how much of it its file of the end counts.
func (x *index) loadLast(f segmentFile, dir string, n int, visit func(head)) (good, size, end int64, torn bool, err error) {
	end, _, endErr := readIndex(filepath.Join(dir, endName(n)))
	good, size, torn, err = scan(f, true, func(h head) {
		x.add(h.Entry, n, h.offset)
		visit(h)
	})
	if endErr != nil {
		return good, size, 0, torn, err
	}
	if good < end {
		torn, err = false, cmp.Or(err, error(&ErrDamaged{Segment: f.Name(), Offset: good, Reason: otherSize(size, end)}))
	}
	return good, size, end, torn, err
}

func otherSize(segment, index int64) string {
	return fmt.Sprintf("the segment is %d bytes, its index file is for %d", segment, index)
}

// scan reads the heads of a segment and gives each to visit. With verify it checks payloads too. good is the offset
// behind the last frame that is whole; err is nil when that is the end of the file, or an *ErrDamaged. torn says that
// an interrupted write explains the damage.
func scan(f segmentFile, verify bool, visit func(head)) (good, size int64, torn bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, false, err
	}
	// A live writer may append while this reads: what is behind the size of now does not exist for this scan.
	size = info.Size()
	var buf []byte
	before := ""
	for good < size {
		h, err := readHead(f, good, size)
		if err == nil && verify {
			buf, err = readPayload(f, h, buf)
		}
		if reason, ok := errors.AsType[errFrame](err); ok {
			after, torn, err := behind(f, good, size)
			if err != nil {
				return good, size, false, fmt.Errorf("read journal segment %s: %w", f.Name(), err)
			}
			return good, size, torn, &ErrDamaged{
				Segment: f.Name(), Offset: good, Reason: string(reason), ID: h.ID, Before: before, After: after,
			}
		}
		if err != nil {
			return good, size, false, fmt.Errorf("read journal segment %s: %w", f.Name(), err)
		}
		visit(h)
		before, good = h.ID, h.end()
	}
	return good, size, false, nil
}

// behind looks for whole frames after damage. It returns the id of the first, and whether a write that was cut off
// explains the damage: that is so when no whole frame follows, or only frames of the same write, whose pages may have
// reached the disk in any order before the power failed. Nothing of such a write was acknowledged.
func behind(r io.ReaderAt, damage, size int64) (after string, torn bool, err error) {
	search := frameSearch{r: r, size: size}
	for from := damage + 1; ; {
		h, ok, err := search.next(from)
		if err != nil || !ok {
			return after, true, err
		}
		after = cmp.Or(after, h.ID)
		if h.batch > damage {
			return after, false, nil
		}
		from = h.end()
	}
}

// tornAt is where the end of a segment begins that scan would call torn if all damage before it were mended; its size when
// there is none. What is before from is known to be no part of it.
func tornAt(r io.ReaderAt, from, size int64) (int64, error) {
	search := frameSearch{r: r, size: size}
	var gaps []int64 // damage that no frame of a later write follows
	for from < size {
		h, ok, err := search.next(from)
		if err != nil {
			return 0, err
		}
		if !ok || h.offset > from {
			gaps = append(gaps, from)
		}
		if !ok {
			break
		}
		for len(gaps) > 0 && gaps[0] < h.batch {
			gaps = gaps[1:]
		}
		from = h.end()
	}
	if len(gaps) > 0 {
		return gaps[0], nil
	}
	return size, nil
}

// cutTail takes the torn end off the last segment and keeps it beside the journal: the bytes may be worth a look. The copy
// is durable before the end is cut.
func cutTail(system disk.System, f disk.File, good, size int64) (kept string, err error) {
	kept, err = keepBytes(system, f.Name()+".%d.torn", f, good, size-good)
	if err != nil {
		return "", err
	}
	if err := f.Truncate(good); err != nil {
		return "", disk.Explain(f.Name(), err)
	}
	return kept, f.Sync()
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
