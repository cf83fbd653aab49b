package journal

import (
	"bytes"
	"errors"
	"io"
)

// frameSearch finds frames where it is not known that they begin.
type frameSearch struct {
	r    io.ReaderAt
	size int64
	read int64 // bytes of payloads that turned out to be none
}

// searchFactor bounds what a search reads in vain: a segment may be full of heads that claim the same bytes.
const searchFactor = 8

// next returns the first whole frame at or behind an offset.
func (s *frameSearch) next(from int64) (found head, ok bool, err error) {
	if h, err := s.whole(from); err == nil { // as most are, and without a look at a window
		return h, true, nil
	} else if err := unlessFrame(err); err != nil {
		return head{}, false, err
	}
	err = s.magics(from+1, s.size, func(offset int64) (int64, error) {
		h, err := s.whole(offset)
		if err == nil {
			found, ok = h, true
			return s.size, nil
		}
		return offset + 1, err
	})
	return found, ok, err
}

// heads returns the entries of heads between two offsets, whatever became of their payloads.
func (s *frameSearch) heads(from, to int64) (entries []Entry, err error) {
	err = s.magics(from, to, func(offset int64) (int64, error) {
		h, err := readHead(s.r, offset, s.size)
		if h.ID == "" {
			return offset + 1, err
		}
		entries = append(entries, h.Entry)
		return max(offset+1, min(h.end(), to)), nil
	})
	return entries, err
}

// magics calls visit where a frame may begin between two offsets; it returns where to go on. An errFrame of it says that
// there is none.
func (s *frameSearch) magics(from, to int64, visit func(offset int64) (int64, error)) error {
	const window = 1 << 20
	buf := make([]byte, min(window, max(0, s.size-from)))
	for s.size-from >= frameHead && from < to {
		buf = buf[:min(int64(len(buf)), s.size-from)]
		if err := readFull(s.r, buf, from); err != nil {
			return unlessFrame(err)
		}
		next := from + int64(len(buf)-len(frameMagic)+1)
		for at := from; at < next && at < to; {
			i := bytes.Index(buf[at-from:], []byte(frameMagic))
			if i < 0 {
				break
			}
			at += int64(i)
			if at >= to {
				return nil
			}
			after, err := visit(at)
			if err := unlessFrame(err); err != nil {
				return err
			}
			next, at = max(next, after), after
		}
		from = next
	}
	return nil
}

// unlessFrame drops what only says that there is no frame.
func unlessFrame(err error) error {
	if _, ok := errors.AsType[errFrame](err); ok {
		return nil
	}
	return err
}

// whole reads the frame at an offset. The error is an errFrame when there is none.
func (s *frameSearch) whole(offset int64) (head, error) {
	h, err := readHead(s.r, offset, s.size)
	if err != nil {
		return head{}, err
	}
	if s.read > searchFactor*s.size {
		return head{}, errFrame("too many heads without their payload")
	}
	if _, err = readPayload(s.r, h, nil); err != nil {
		s.read += h.size
	}
	return h, err
}
