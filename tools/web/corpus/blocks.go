package corpus

import (
	"encoding/binary"
	"errors"
	"io"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// Documents lie in blocks of about blockSize bytes, each compressed on its own: large enough to compress well, small enough to be
// read for one document. A directory of blocks has dirEntry bytes for each: where it begins, its first document, its checksum.
const (
	blockSize = 16 << 10
	dirEntry  = 16
)

// zstd's defaults, with one goroutine, give the same bytes each time.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxDocument+blockSize+1<<10))
)

// blockWriter writes blocks of documents, and their directory.
type blockWriter struct {
	out       io.Writer
	directory io.Writer
	written   uint64
	block     []byte
	first     uint32 // document of the block
	next      uint32
	packed    []byte
}

func (b *blockWriter) add(d Document) error {
	for _, field := range []string{d.ID, d.Title, d.URL, d.Text} {
		b.block = append(binary.AppendUvarint(b.block, uint64(len(field))), field...)
	}
	b.next++
	if len(b.block) < blockSize {
		return nil
	}
	return b.flush()
}

func (b *blockWriter) flush() error {
	if len(b.block) == 0 {
		return nil
	}
	b.packed = packer.EncodeAll(b.block, b.packed[:0])
	where := binary.LittleEndian.AppendUint64(nil, b.written)
	where = binary.LittleEndian.AppendUint32(where, b.first)
	where = binary.LittleEndian.AppendUint32(where, checksum(0, b.packed))
	if _, err := b.directory.Write(where); err != nil {
		return err
	}
	if _, err := b.out.Write(b.packed); err != nil {
		return err
	}
	b.written += uint64(len(b.packed))
	b.block, b.first = b.block[:0], b.next
	return nil
}

var errBlock = errors.New("a block of documents is damaged")

// blocks are those of a mapped file.
type blocks struct {
	data, directory []byte
}

func (b blocks) first(n int) uint32 { return binary.LittleEndian.Uint32(b.directory[dirEntry*n+8:]) }

func (b blocks) document(number uint32) (Document, error) {
	count := len(b.directory) / dirEntry
	n := sort.Search(count, func(n int) bool { return b.first(n) > number }) - 1
	if n < 0 {
		return Document{}, errBlock
	}
	from, to := binary.LittleEndian.Uint64(b.directory[dirEntry*n:]), uint64(len(b.data))
	if n+1 < count {
		to = binary.LittleEndian.Uint64(b.directory[dirEntry*(n+1):])
	}
	if to > uint64(len(b.data)) || from > to {
		return Document{}, errBlock
	}
	packed := b.data[from:to]
	if checksum(0, packed) != binary.LittleEndian.Uint32(b.directory[dirEntry*n+12:]) {
		return Document{}, errBlock
	}
	block, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return Document{}, errBlock
	}
	var d Document
	for skip := number - b.first(n); ; skip-- {
		var fields [4][]byte
		for i := range fields {
			if fields[i], block, err = field(block); err != nil {
				return Document{}, errBlock
			}
		}
		if skip == 0 {
			d.ID, d.Title, d.URL, d.Text = string(fields[0]), string(fields[1]), string(fields[2]), string(fields[3])
			return d, nil
		}
	}
}
