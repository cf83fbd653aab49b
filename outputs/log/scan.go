package log

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// Part is what a reader of a whole file comes to: a frame, or bytes that are not a whole one.
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
	for {
		at, err := search.magic(from, to)
		if err != nil || at == to {
			return heads, err
		}
		h, err := f.ReadHead(r, at, size)
		if err := unlessBroken(err); err != nil {
			return heads, err
		}
		if from = at + 1; h.Payload > 0 {
			heads = append(heads, h)
			from = min(h.End(), to)
		}
	}
}

// search finds frames where it is not known that they begin.
type search[T any] struct {
	format *Format[T]
	r      io.ReaderAt
	size   int64
	read   int64 // bytes of payloads that turned out to be none

	window []byte // of the file
	begin  int64  // where it begins
}

// searchFactor bounds what a search reads in vain: a file may be full of heads that claim the same bytes.
const searchFactor = 8

// next is where the first whole frame at or behind an offset begins; the size of the file when there is none.
func (s *search[T]) next(from int64) (int64, error) {
	for ; s.read <= searchFactor*s.size; from++ {
		at, err := s.magic(from, s.size)
		if err != nil || at == s.size {
			return at, err
		}
		h, err := s.format.ReadHead(s.r, at, s.size)
		if err == nil {
			if _, err = s.format.ReadPayload(s.r, h, nil); err == nil {
				return at, nil
			}
			s.read += h.Size
		}
		if err := unlessBroken(err); err != nil {
			return at, err
		}
		from = at
	}
	return s.size, nil
}

// magic is where a frame may begin between two offsets; to when none does.
func (s *search[T]) magic(from, to int64) (int64, error) {
	const size = 1 << 20
	magic := []byte(s.format.Magic)
	for from < to {
		if from < s.begin || from+int64(len(magic)) > s.begin+int64(len(s.window)) {
			if s.size-from < int64(len(magic)) {
				break
			}
			s.begin, s.window = from, append(s.window[:0], make([]byte, min(size, s.size-from))...)
			if err := readFull(s.r, s.window, from); err != nil {
				s.window = nil
				return to, unlessBroken(err)
			}
		}
		if i := bytes.Index(s.window[from-s.begin:], magic); i >= 0 {
			return min(from+int64(i), to), nil
		}
		from = s.begin + int64(len(s.window)-len(magic)+1)
	}
	return to, nil
}

// unlessBroken drops what only says that there is no frame.
func unlessBroken(err error) error {
	if _, ok := errors.AsType[Broken](err); ok {
		return nil
	}
	return err
}
