package log

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Format is how the frames of a file look: a head of fixed size, what the frame is about, and its payload. T is what a
// reader knows of a frame without its payload. The fields whose names end in At say where in the head a number stands, an
// uint32 in little endian; 0 is nowhere.
type Format[T any] struct {
	Magic        string // with which a head begins; the last byte is the format's version
	Head         int    // bytes
	MetaSizeAt   int    // how long the part is that says what the frame is about; nowhere: there is none
	SizeAt       int    // of the payload
	BatchAt      int    // bytes from the first frame of the same write to this one; nowhere: each is a write of its own
	SumAt        int    // CRC32C of the payload
	HeadSumAt    int    // CRC32C of the head before it and the meta, so that a damaged payload hides no later frame
	MaxMeta, Max int64  // bytes of meta and payload
	// Parse reads a head whose checksum is right. Its error says why the frame is none of ours. Optional.
	Parse func(head, meta []byte) (T, error)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum that files of ours have.
func Sum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

func number(head []byte, at int) int64 { return int64(binary.LittleEndian.Uint32(head[at:])) }

// Begin adds a frame to buf without its payload, which is to follow. Seal completes it.
func (f *Format[T]) Begin(buf, meta []byte) []byte {
	from := len(buf)
	buf = append(append(buf, make([]byte, f.Head)...), meta...)
	copy(buf[from:], f.Magic)
	if f.MetaSizeAt > 0 {
		binary.LittleEndian.PutUint32(buf[from+f.MetaSizeAt:], uint32(len(meta)))
	}
	return buf
}

// Finish completes a frame that has its payload, as the first of its write.
func (f *Format[T]) Finish(frame []byte) {
	payload := frame[f.meta(frame):]
	binary.LittleEndian.PutUint32(frame[f.SizeAt:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[f.SumAt:], Sum(payload))
	f.Seal(frame, 0)
}

// Seal puts a finished frame at its place in a write.
func (f *Format[T]) Seal(frame []byte, batch int64) {
	if f.BatchAt > 0 {
		binary.LittleEndian.PutUint32(frame[f.BatchAt:], uint32(min(batch, 1<<32-1)))
	}
	if f.HeadSumAt > 0 {
		binary.LittleEndian.PutUint32(frame[f.HeadSumAt:], f.headSum(frame[:f.meta(frame)]))
	}
}

// meta is how long a frame is in front of its payload.
func (f *Format[T]) meta(frame []byte) int64 {
	if f.MetaSizeAt == 0 {
		return int64(f.Head)
	}
	return int64(f.Head) + number(frame, f.MetaSizeAt)
}

func (f *Format[T]) headSum(head []byte) uint32 {
	return crc32.Update(Sum(head[:f.HeadSumAt]), castagnoli, head[f.Head:])
}

// Frame is a frame without its payload.
type Frame[T any] struct {
	About   T
	Offset  int64
	Batch   int64 // offset of the first frame of the same write
	Payload int64 // offset of the payload; 0 where the head cannot be read
	Size    int64 // of the payload
	Sum     uint32
}

// End is the offset behind the frame.
func (f Frame[T]) End() int64 { return f.Payload + f.Size }

// Bytes reads the frame as it is.
func (f Frame[T]) Bytes(r io.ReaderAt) ([]byte, error) {
	buf := make([]byte, f.End()-f.Offset)
	return buf, readFull(r, buf, f.Offset)
}

// Broken is what is wrong with a frame.
type Broken string

func (b Broken) Error() string { return string(b) }

// usualMeta is as much as is read with a head: most metas fit.
const usualMeta = 256

// ReadHead reads the frame at offset of a file that is size bytes long. The error is Broken, or one of reading. A frame that
// is cut off within its payload comes with it.
func (f *Format[T]) ReadHead(r io.ReaderAt, offset, size int64) (h Frame[T], err error) {
	if size-offset < int64(f.Head) {
		return h, Broken("the file ends inside the head of a frame")
	}
	buf := make([]byte, min(int64(f.Head)+usualMeta, size-offset))
	if err := readFull(r, buf, offset); err != nil {
		return h, err
	}
	if string(buf[:len(f.Magic)]) != f.Magic {
		return h, Broken("no frame begins here")
	}
	length := f.meta(buf)
	read := Frame[T]{Offset: offset, Batch: offset, Payload: offset + length, Size: number(buf, f.SizeAt), Sum: uint32(number(buf, f.SumAt))}
	if f.BatchAt > 0 {
		read.Batch -= number(buf, f.BatchAt)
	}
	if length-int64(f.Head) > f.MaxMeta || read.Size > f.Max || read.Batch < 0 {
		return h, Broken("the head of the frame is damaged: impossible lengths")
	}
	if read.Payload > size {
		return h, Broken("the file ends inside the head of a frame")
	}
	if length > int64(len(buf)) {
		buf = make([]byte, length)
		if err := readFull(r, buf, offset); err != nil {
			return h, err
		}
	}
	if f.HeadSumAt > 0 && f.headSum(buf[:length]) != uint32(number(buf, f.HeadSumAt)) {
		return h, Broken("the head of the frame is damaged: wrong checksum")
	}
	if f.Parse != nil {
		if read.About, err = f.Parse(buf[:f.Head], buf[f.Head:length]); err != nil {
			return h, Broken("the head of the frame is none of ours: " + err.Error())
		}
	}
	if read.End() > size {
		return read, Broken("the file ends inside the payload of the frame")
	}
	return read, nil
}

// ReadPayload reads and checks a payload into buf, which it returns grown.
func (f *Format[T]) ReadPayload(r io.ReaderAt, h Frame[T], buf []byte) ([]byte, error) {
	if int64(cap(buf)) < h.Size {
		buf = make([]byte, h.Size)
	}
	buf = buf[:h.Size]
	if err := readFull(r, buf, h.Payload); err != nil {
		return buf, err
	}
	if Sum(buf) != h.Sum {
		return buf, Broken("the payload of the frame is damaged: wrong checksum")
	}
	return buf, nil
}

// readFull fills buf; a file that shrank meanwhile is Broken, like any other missing byte.
func readFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return Broken("the file ends inside a frame")
	}
	return err
}
