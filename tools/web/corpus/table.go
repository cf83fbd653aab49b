package corpus

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A table has keys in order, each with a value. It consists of blocks of perBlock entries with a checksum, and an index of where
// the blocks begin.
const perBlock = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum continues a checksum. It is a variable for the fuzz test, which looks at what damage does that no checksum finds.
var checksum = func(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// tableWriter writes a table to two spools.
type tableWriter struct {
	body, index *spool
	block       []byte
	inBlock     int
	entries     int
}

// add adds an entry; keys come in order.
func (t *tableWriter) add(key string, value []byte) error {
	t.block = append(binary.AppendUvarint(t.block, uint64(len(key))), key...)
	t.block = append(binary.AppendUvarint(t.block, uint64(len(value))), value...)
	t.entries++
	if t.inBlock++; t.inBlock < perBlock {
		return nil
	}
	return t.flush()
}

func (t *tableWriter) flush() error {
	if t.inBlock == 0 {
		return nil
	}
	_, err := t.index.Write(binary.LittleEndian.AppendUint64(nil, uint64(t.body.size)))
	if err == nil {
		_, err = t.body.Write(binary.LittleEndian.AppendUint32(nil, checksum(0, t.block)))
	}
	if err == nil {
		_, err = t.body.Write(t.block)
	}
	t.block, t.inBlock = t.block[:0], 0
	return err
}

// table is one in a mapped file.
type table struct {
	body, index []byte
}

var errTable = errors.New("a table is damaged")

// find returns the value of a key. Every block on the way is checked, as a damaged one would lead to the wrong place.
func (t table) find(key string) (value []byte, found bool, err error) {
	low, high := 0, len(t.index)/8 // the first block that begins behind the key
	for low < high {
		middle := (low + high) / 2
		block, err := t.block(middle)
		if err != nil {
			return nil, false, err
		}
		first, _, _, err := entry(block)
		if err != nil {
			return nil, false, err
		}
		if string(first) <= key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return nil, false, nil
	}
	block, err := t.block(low - 1)
	for err == nil && len(block) > 0 {
		var name []byte
		name, value, block, err = entry(block)
		if err == nil && string(name) == key {
			return value, true, nil
		}
	}
	return nil, false, err
}

func (t table) block(n int) ([]byte, error) {
	from, to := binary.LittleEndian.Uint64(t.index[8*n:]), uint64(len(t.body))
	if 8*n+8 < len(t.index) {
		to = binary.LittleEndian.Uint64(t.index[8*n+8:])
	}
	if to > uint64(len(t.body)) || from > to || to-from < 4 {
		return nil, errTable
	}
	block := t.body[from+4 : to]
	if checksum(0, block) != binary.LittleEndian.Uint32(t.body[from:]) {
		return nil, errTable
	}
	return block, nil
}

func entry(block []byte) (key, value, rest []byte, err error) {
	if key, rest, err = field(block); err == nil {
		value, rest, err = field(rest)
	}
	return key, value, rest, err
}

// field takes bytes with their number before them.
func field(data []byte) (value, rest []byte, err error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, nil, errTable
	}
	return data[n : n+int(size)], data[n+int(size):], nil
}

// numbers takes numbers from a value.
func numbers(value []byte, into ...*uint64) error {
	for _, one := range into {
		number, n := binary.Uvarint(value)
		if n <= 0 {
			return errTable
		}
		*one, value = number, value[n:]
	}
	return nil
}
