package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"trajgen/outputs/log"
	"trajgen/pipeline/episode"
)

// A full segment has an index file beside it, from which a journal is opened without a look at every frame:
//
//	magic      4 bytes, the last of them is the format's version
//	size       uint64, bytes of the segment, little endian like all below
//	count      uint32, of its frames
//	frames     each: length of the frame, row, sample, attempt as uvarint; 1 byte, 1 for pending; outcome and id as
//	           uvarint length and text
//	CRC32C     uint32, over all before
//
// It is a copy of what the segment says: one that is missing or damaged is made anew, and a reader of a frame compares. It
// is written after the next segment was begun, so that it also proves that there was one.
//
// The last segment gets one under another name when its writer closes it. It proves that so many bytes were acknowledged, so
// that what is missing of them is damage and no interrupted write. A later writer may have appended more.
const indexMagic = "tgX\x01"

func indexName(n int) string { return fmt.Sprintf("%06d.idx", n) }
func endName(n int) string   { return fmt.Sprintf("%06d.end", n) }

// encodeFile makes the index file of a segment of the given size from its records.
func (x *index) encodeFile(first, end int, size int64) []byte {
	data := append(make([]byte, 0, 64*(end-first)+64), indexMagic...)
	data = binary.LittleEndian.AppendUint64(data, uint64(size))
	data = binary.LittleEndian.AppendUint32(data, uint32(end-first))
	text := func(s string) {
		data = binary.AppendUvarint(data, uint64(len(s)))
		data = append(data, s...)
	}
	for n := first; n < end; n++ {
		next := size
		if n+1 < end {
			next = x.records[n+1].offset
		}
		e := x.records[n].Entry
		data = binary.AppendUvarint(data, uint64(next-x.records[n].offset))
		data = binary.AppendUvarint(data, uint64(e.Row))
		data = binary.AppendUvarint(data, uint64(e.Sample))
		data = binary.AppendUvarint(data, uint64(e.Attempt))
		pending := byte(0)
		if e.Pending {
			pending = 1
		}
		data = append(data, pending)
		text(string(e.Outcome))
		text(e.ID)
	}
	return binary.LittleEndian.AppendUint32(data, log.Sum(data))
}

// indexed is a frame as an index file has it.
type indexed struct {
	Entry
	offset int64
}

var errIndex = errors.New("the index file is damaged")

// decodeIndex reads an index file, and how large its segment was.
func decodeIndex(data []byte) (size int64, frames []indexed, err error) {
	const head = len(indexMagic) + 8 + 4
	if len(data) < head+4 || !bytes.HasPrefix(data, []byte(indexMagic)) {
		return 0, nil, errIndex
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	length, count := binary.LittleEndian.Uint64(data[4:]), binary.LittleEndian.Uint32(data[12:])
	if log.Sum(body) != binary.LittleEndian.Uint32(sum) || length > 1<<62 || uint64(count) > length/frameHead || int(count) > len(data) {
		return 0, nil, errIndex
	}
	size = int64(length)
	in := indexReader{rest: body[head:]}
	frames = make([]indexed, 0, count)
	var offset int64
	for range count {
		f := indexed{offset: offset}
		offset += in.number()
		f.Row, f.Sample, f.Attempt = int(in.number()), int(in.number()), int(in.number())
		f.Pending = in.number() == 1
		f.Outcome, f.ID = episode.Outcome(in.text()), in.text()
		if in.bad || offset < f.offset+frameHead || offset > size || f.strange() != "" {
			return 0, nil, errIndex
		}
		frames = append(frames, f)
	}
	if offset != size || len(in.rest) > 0 {
		return 0, nil, errIndex
	}
	return size, frames, nil
}

// indexReader reads the parts of an index file.
type indexReader struct {
	rest []byte
	bad  bool
}

func (r *indexReader) number() int64 {
	n, used := binary.Uvarint(r.rest)
	if used <= 0 || n > 1<<62 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[used:]
	return int64(n)
}

func (r *indexReader) text() string {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

// maxIndex bounds an index file: a segment of a gigabyte has less.
const maxIndex = 1 << 30

// readIndex reads an index file. The error wraps errIndex or fs.ErrNotExist, or is one of reading.
func readIndex(path string) (size int64, frames []indexed, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return 0, nil, err
	}
	return decodeIndex(data)
}
