package log

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// Part is what a reader of a whole file comes to: a frame, or bytes that are no whole one.
type Part[T any] struct {
	Frame   Frame[T] // also of a broken one whose head is whole
	Payload []byte   // valid until the next part
	Broken  error    // why the frame is not whole; nil
	From    int64
	To      int64
}

// Parts goes over a file of so many bytes, in which a frame begins at from. With payloads it reads and checks them; without,
// a head is enough for a frame to be whole. An error of reading ends it.
func (f *Format[T]) Parts(r io.ReaderAt, from, size int64, payloads bool) iter.Seq2[Part[T], error] {
	return func(yield func(Part[T], error) bool) {
		search := search[T]{format: f, r: r, size: size}
		var buf []byte
		for from < size {
			p := Part[T]{From: from}
			var err error
			if p.Frame, err = f.ReadHead(r, from, size); err == nil && payloads {
				buf, err = f.ReadPayload(r, p.Frame, buf)
				p.Payload = buf
			}
			if broken, ok := errors.AsType[Broken](err); ok {
				p.Broken, err = broken, nil
				if f.HeadSumAt == 0 { // it may be the head that is damaged
					p.Frame = Frame[T]{}
				}
			}
			p.To = p.Frame.End()
			// A head tells where its frame ends, unless that is damaged or not there any more.
			if p.Broken != nil && (p.Frame.Payload == 0 || p.To > size) {
				p.To, err = search.next(from + 1)
			}
			if err != nil {
				yield(p, err)
				return
			}
			if !yield(p, nil) {
				return
			}
			from = p.To
		}
	}
}

// Torn is where the end of a file begins that an interrupted write explains: the first frame, at or behind from, which is not
// whole and has no whole one of a later write behind it. Frames of the same write prove nothing: its pages may reach the disk
// in any order before the power fails, and none of it was acknowledged. Without such an end it is the size of the file.
func (f *Format[T]) Torn(r io.ReaderAt, from, size int64) (int64, error) {
	var broken []int64
	for p, err := range f.Parts(r, from, size, true) {
		if err != nil {
			return 0, err
		}
		if p.Broken != nil {
			broken = append(broken, p.From)
			continue
		}
		for len(broken) > 0 && broken[0] < p.Frame.Batch {
			broken = broken[1:]
		}
	}
	if len(broken) > 0 {
		return broken[0], nil
	}
	return size, nil
}

// Heads returns the frames whose heads are whole between two offsets, whatever became of their payloads.
func (f *Format[T]) Heads(r io.ReaderAt, from, to, size int64) (heads []Frame[T], err error) {
	search := search[T]{format: f, r: r, size: size}
	err = search.magics(from, to, func(offset int64) (int64, error) {
		h, err := f.ReadHead(r, offset, size)
		if h.Payload == 0 {
			return offset + 1, err
		}
		heads = append(heads, h)
		return max(offset+1, min(h.End(), to)), nil
	})
	return heads, err
}

// search finds frames where it is not known that they begin.
type search[T any] struct {
	format *Format[T]
	r      io.ReaderAt
	size   int64
	read   int64 // bytes of payloads that turned out to be none
}

// searchFactor bounds what a search reads in vain: a file may be full of heads that claim the same bytes.
const searchFactor = 8

// next is where the first whole frame at or behind an offset begins; the size of the file when there is none.
func (s *search[T]) next(from int64) (found int64, err error) {
	found = s.size
	err = s.magics(from, s.size, func(offset int64) (int64, error) {
		h, err := s.format.ReadHead(s.r, offset, s.size)
		if err == nil && s.read > searchFactor*s.size {
			err = Broken("too many heads without their payload")
		}
		if err == nil {
			if _, err = s.format.ReadPayload(s.r, h, nil); err != nil {
				s.read += h.Size
			}
		}
		if err != nil {
			return offset + 1, err
		}
		found = offset
		return s.size, nil
	})
	return found, err
}

// magics calls visit where a frame may begin between two offsets; it returns where to go on. When its error is Broken, there
// is none.
func (s *search[T]) magics(from, to int64, visit func(offset int64) (int64, error)) error {
	const window = 1 << 20
	magic := []byte(s.format.Magic)
	buf := make([]byte, min(window, max(0, s.size-from)))
	for s.size-from >= int64(s.format.Head) && from < to {
		buf = buf[:min(int64(len(buf)), s.size-from)]
		if err := readFull(s.r, buf, from); err != nil {
			return unlessBroken(err)
		}
		next := from + int64(len(buf)-len(magic)+1)
		for at := from; at < next && at < to; {
			i := bytes.Index(buf[at-from:], magic)
			if i < 0 {
				break
			}
			at += int64(i)
			if at >= to {
				return nil
			}
			after, err := visit(at)
			if err := unlessBroken(err); err != nil {
				return err
			}
			next, at = max(next, after), after
		}
		from = next
	}
	return nil
}

// unlessBroken drops what only says that there is no frame.
func unlessBroken(err error) error {
	if _, ok := errors.AsType[Broken](err); ok {
		return nil
	}
	return err
}
