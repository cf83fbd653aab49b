package tape

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A frame is a mark, the length of its inside, the inside's CRC-32C, and the inside: its kind, its readable head and
// a blob. The mark lets a reader go on behind a damaged place.
const (
	mark      = "\xf7tp\x01"
	frameHead = len(mark) + 4 + 4
)

type kind byte

const (
	sessionFrame  kind = 's'
	toolsFrame    kind = 't'
	exchangeFrame kind = 'x'
	resumeFrame   kind = 'r'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendFrame(to, inside []byte) []byte {
	to = append(to, mark...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(inside)))
	to = binary.LittleEndian.AppendUint32(to, crc32.Checksum(inside, castagnoli))
	return append(to, inside...)
}

var errFrame = errors.New("no whole frame")

// readFrame reads the frame at the reader's place into buf.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var start [frameHead]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		if err == io.EOF {
			return nil, err
		}
		return nil, noFrame(err)
	}
	n := int(binary.LittleEndian.Uint32(start[len(mark):]))
	if string(start[:len(mark)]) != mark || n < 2 || n > maxFrame {
		return nil, errFrame
	}
	// What a damaged length promises is not there: memory grows only with what is read.
	inside := bytes.NewBuffer(buf[:0])
	if _, err := io.CopyN(inside, r, int64(n)); err != nil {
		return nil, noFrame(err)
	}
	if crc32.Checksum(inside.Bytes(), castagnoli) != binary.LittleEndian.Uint32(start[len(mark)+4:]) {
		return nil, errFrame
	}
	return inside.Bytes(), nil
}

// noFrame keeps a disk's error apart from a file that is too short.
func noFrame(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errFrame
	}
	return err
}

// gap is a place without a whole frame.
type gap struct{ from, to int64 }

// scan goes through the frames of a tape. tail is where the last whole one ends: what lies behind it was being written
// when its writer died. A gap has whole frames behind it: that is damage.
func scan(file *os.File, each func(at int64, inside []byte) error) (tail int64, gaps []gap, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size()
	first := make([]byte, len(magic))
	if n, err := file.ReadAt(first, 0); err != nil && err != io.EOF {
		return 0, nil, err
	} else if string(first[:n]) != magic[:n] {
		return 0, nil, fmt.Errorf("%s is not a tape", file.Name())
	} else if n < len(magic) {
		return 0, nil, nil
	}
	at := int64(len(magic))
	var buf []byte
	r := bufio.NewReaderSize(nil, 1<<20)
	r.Reset(io.NewSectionReader(file, at, size-at))
	lost := int64(-1) // where the present gap begins
	for tail = at; at < size; {
		inside, err := readFrame(r, buf)
		switch {
		case err == nil:
			if lost >= 0 {
				gaps, lost = append(gaps, gap{lost, at}), -1
			}
			if err := each(at, inside); err != nil {
				return 0, nil, err
			}
			at += int64(frameHead + len(inside))
			tail, buf = at, inside
			continue
		case !errors.Is(err, errFrame):
			return 0, nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if lost < 0 {
			lost = at
		}
		next, err := nextMark(file, at+1, size)
		if err != nil {
			return 0, nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if at = next; at < 0 {
			break
		}
		r.Reset(io.NewSectionReader(file, at, size-at))
	}
	return tail, gaps, nil
}

// nextMark is where the next frame could begin, or -1.
func nextMark(file *os.File, from, size int64) (int64, error) {
	chunk := make([]byte, 1<<16)
	for from < size {
		n, err := file.ReadAt(chunk, from)
		if i := bytes.Index(chunk[:n], []byte(mark)); i >= 0 {
			return from + int64(i), nil
		}
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err == io.EOF || n < len(mark) {
			break
		}
		from += int64(n - len(mark) + 1)
	}
	return -1, nil
}
