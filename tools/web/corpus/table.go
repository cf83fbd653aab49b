package corpus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// A table has entries, a key with a value each, in the order of keys, in blocks of about blockSize bytes: large enough to
// compress well, small enough to be read for one document. What begins a key says what its entry is; blocks of documents are
// compressed. An index behind the blocks has the first key, the size and the checksum of each.
const (
	documentKey = "d" // and the number of the document, in 4 bytes: its fields
	idKey       = "i" // and an id: the number of its document
	lengthsKey  = "l" // and the number of the first of window documents, in 4 bytes: the length of each in words, in 4 bytes
	termKey     = "t" // and a term: how many documents have it, and the list of its postings
	urlKey      = "u" // and a URL: the number of its first document
)

const blockSize = 16 << 10

// zstd's defaults, with one goroutine, give the same bytes each time.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxDocument+blockSize+1<<10))
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is a variable for the fuzz test, which looks at what damage does that no checksum finds.
var checksum = func(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

var errDamaged = errors.New("a part of it is damaged")

// numbered is the key of what has a number.
func numbered(kind string, number uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(kind), number))
}

// appendFields appends texts, each with its length before it.
func appendFields[T string | []byte](to []byte, fields ...T) []byte {
	for _, field := range fields {
		to = append(binary.AppendUvarint(to, uint64(len(field))), field...)
	}
	return to
}

// takeFields undoes appendFields.
func takeFields(data []byte, into ...*[]byte) (rest []byte, err error) {
	for _, one := range into {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, errDamaged
		}
		*one, data = data[n:n+int(size)], data[n+int(size):]
	}
	return data, nil
}

// takeNumbers takes numbers from the beginning of a value.
func takeNumbers(value []byte, into ...*uint64) (rest []byte, err error) {
	for _, one := range into {
		number, n := binary.Uvarint(value)
		if n <= 0 {
			return nil, errDamaged
		}
		*one, value = number, value[n:]
	}
	return value, nil
}

// tableWriter writes a table.
type tableWriter struct {
	out           *bufio.Writer
	size          int64 // of the blocks so far
	first         string
	block, packed []byte
	index         []byte
}

// add adds an entry; keys come in order.
func (t *tableWriter) add(key string, value []byte) error {
	if len(t.block) > 0 && (len(t.block)+len(value) > blockSize || key[0] != t.first[0]) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if len(t.block) == 0 {
		t.first = key
	}
	t.block = appendFields(appendFields(t.block, key), value)
	return nil
}

func (t *tableWriter) flush() error {
	block := t.block
	if t.first[:1] == documentKey {
		t.packed = packer.EncodeAll(t.block, t.packed[:0])
		block = t.packed
	}
	about := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(block))), uint64(checksum(block)))
	t.index = appendFields(appendFields(t.index, t.first), about)
	t.size += int64(len(block))
	t.block = t.block[:0]
	_, err := t.out.Write(block)
	return err
}

// end writes the last block and the index.
func (t *tableWriter) end() error {
	if err := t.flush(); err != nil {
		return err
	}
	if _, err := t.out.Write(t.index); err != nil {
		return err
	}
	return t.out.Flush()
}

// block is one of a mapped file.
type block struct {
	first, data []byte
	sum         uint32
}

// table is the blocks of a mapped file.
type table []block

// readTable finds the blocks by their index.
func readTable(blocks, index []byte) (t table, err error) {
	for len(index) > 0 {
		var b block
		var about []byte
		var size, sum uint64
		if index, err = takeFields(index, &b.first, &about); err == nil {
			_, err = takeNumbers(about, &size, &sum)
		}
		if err != nil || len(b.first) == 0 || size > uint64(len(blocks)) {
			return nil, errDamaged
		}
		b.data, b.sum, blocks = blocks[:size], uint32(sum), blocks[size:]
		t = append(t, b)
	}
	if len(blocks) > 0 {
		return nil, errDamaged
	}
	return t, nil
}

// find returns the value of a key.
func (t table) find(key string) (value []byte, found bool, err error) {
	n := sort.Search(len(t), func(n int) bool { return string(t[n].first) > key }) - 1
	if n < 0 {
		return nil, false, nil
	}
	data := t[n].data
	if checksum(data) != t[n].sum {
		return nil, false, errDamaged
	}
	if t[n].first[0] == documentKey[0] {
		if data, err = unpacker.DecodeAll(data, nil); err != nil {
			return nil, false, errDamaged
		}
	}
	for len(data) > 0 {
		var name []byte
		if data, err = takeFields(data, &name, &value); err != nil {
			return nil, false, err
		}
		if bytes.Equal(name, []byte(key)) {
			return value, true, nil
		}
	}
	return nil, false, nil
}
