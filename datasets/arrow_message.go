package datasets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

const (
	// maxArrowBatch bounds a record batch, and all dictionaries together, as they lie in the file and unpacked.
	maxArrowBatch = 1 << 30
	// maxArrowHead bounds the head of a message.
	maxArrowHead = 16 << 20
)

var errArrowBatch = fmt.Errorf("a record batch, or the dictionaries, have more than %d MiB; write the file in smaller batches", maxArrowBatch>>20)

// arrowMessages passes the messages of a stream to the library after a check, as the library trusts the sizes in a message and
// allocates that memory.
type arrowMessages struct {
	section *io.SectionReader
	at      int64 // in the section
	memory  boundedMemory
	refused error         // the error that was returned to the library
	last    arrowHead     // the message before
	live    map[int64]int // dictionary → its bytes in memory
}

// Retain and Release are part of the library's interface; they do nothing.
func (m *arrowMessages) Retain()  {}
func (m *arrowMessages) Release() {}

// explain returns the error of the check, or else the library's own.
func (m *arrowMessages) explain(err error) error {
	if m.refused != nil {
		return m.refused
	}
	if m.memory.over {
		return errArrowBatch
	}
	return fmt.Errorf("the Arrow data is damaged: %w", err)
}

// Message returns the next one, or io.EOF.
func (m *arrowMessages) Message() (_ *ipc.Message, err error) {
	defer func() {
		if err != io.EOF {
			m.refused = err
		}
	}()
	if err := m.settle(); err != nil {
		return nil, err
	}
	size, err := m.headSize()
	if err != nil {
		return nil, err
	}
	if size > maxArrowHead {
		return nil, fmt.Errorf("the head of an Arrow message has %d bytes; at most %d", size, maxArrowHead)
	}
	raw, err := m.take(size)
	if err != nil {
		return nil, err
	}
	if err := guarded(func() (err error) { m.last, err = readArrowHead(raw); return err }); err != nil {
		return nil, err
	}
	if m.last.body < 0 || m.last.body > maxArrowBatch {
		return nil, errArrowBatch
	}
	body, err := m.take(m.last.body)
	if err != nil {
		return nil, err
	}
	return ipc.NewMessage(memory.NewBufferBytes(raw), memory.NewBufferBytes(body)), nil
}

// headSize reads the prefix of a message. Older writers leave the mark out, and a stream may end without an end mark.
func (m *arrowMessages) headSize() (int64, error) {
	if m.at == m.section.Size() {
		return 0, io.EOF
	}
	raw, err := m.take(4)
	if err == nil && bytes.Equal(raw, arrowMessageMagic) {
		raw, err = m.take(4)
	}
	if err != nil {
		return 0, err
	}
	size := binary.LittleEndian.Uint32(raw)
	if size == 0 {
		return 0, io.EOF
	}
	return int64(size), nil
}

// take reads a number of bytes if the file has them.
func (m *arrowMessages) take(size int64) ([]byte, error) {
	if size > m.section.Size()-m.at {
		return nil, errCutArrow
	}
	raw := make([]byte, size)
	_, err := m.section.ReadAt(raw, m.at)
	m.at += size
	return raw, err
}

// settle counts the memory of the previous message. Dictionaries stay in memory; a batch does not.
func (m *arrowMessages) settle() error {
	if m.last.kind == arrowDictionary {
		if !m.last.delta {
			m.live[m.last.dictionary] = 0
		}
		m.live[m.last.dictionary] += m.memory.used
		all := 0
		for _, size := range m.live {
			all += size
		}
		if all > maxArrowBatch || len(m.live) > maxColumns {
			return errArrowBatch
		}
	}
	m.memory.used = 0
	return nil
}

// boundedMemory is an allocator of the library that panics, which the reader turns into an error, when a message takes
// too much.
type boundedMemory struct {
	memory.GoAllocator
	used int
	over bool
}

func (b *boundedMemory) Allocate(size int) []byte {
	b.count(size)
	return b.GoAllocator.Allocate(size)
}

func (b *boundedMemory) Reallocate(size int, old []byte) []byte {
	b.count(max(0, size-len(old)))
	return b.GoAllocator.Reallocate(size, old)
}

func (b *boundedMemory) count(size int) {
	if size < 0 || size > maxArrowBatch-b.used {
		b.over = true
		panic(errArrowBatch)
	}
	b.used += size
}

// The kinds of messages and of types that are told apart here, by their numbers in Arrow's format.
const (
	arrowSchema     = 1
	arrowDictionary = 2
	arrowRecord     = 3

	arrowTimestamp = 10
	arrowUnion     = 14
)

// maxArrowDepth is how deep the library follows types.
const maxArrowDepth = 64

// arrowHead is the metadata of a message.
type arrowHead struct {
	kind       byte
	body       int64
	dictionary int64
	delta      bool // the dictionary extends an earlier one
}

// readArrowHead reads a head, and refuses one that would cost the library much more than its size: heads contain offsets into
// themselves, so that a few bytes can stand for very many columns and very long names. Invalid offsets panic.
func readArrowHead(raw []byte) (arrowHead, error) {
	message := flatTable{flatbuffers.Table{Bytes: raw}}.at(0)
	head := arrowHead{kind: message.GetByteSlot(6, 0), body: message.GetInt64Slot(10, 0)}
	inner, ok := message.table(8)
	if !ok {
		return head, errors.New("an Arrow message without a header")
	}
	switch head.kind {
	case arrowSchema:
		vetted := arrowVetted{room: maxArrowHead}
		vetted.metadata(inner, 8)
		vetted.fields(inner, 6, "", 0)
		return head, vetted.err
	case arrowDictionary:
		head.dictionary, head.delta = inner.GetInt64Slot(4, 0), inner.GetBoolSlot(8, false)
		data, ok := inner.table(6)
		if !ok {
			return head, errors.New("an Arrow dictionary without values")
		}
		return head, checkViews(data)
	case arrowRecord:
		return head, checkViews(inner)
	}
	return head, fmt.Errorf("an Arrow message of kind %d, want a schema, a dictionary or a record batch", head.kind)
}

// checkViews looks at how many buffers the columns of views claim.
func checkViews(batch flatTable) error {
	_, buffers := batch.vector(8)
	start, n := batch.vector(12)
	for i := range n {
		if claimed := batch.GetUint64(start + 8*flatbuffers.UOffsetT(i)); claimed > uint64(buffers) {
			return fmt.Errorf("a column claims %d buffers where its batch has %d", claimed, buffers)
		}
	}
	return nil
}

// arrowVetted walks a schema until something is wrong with it.
type arrowVetted struct {
	columns int
	room    int // bytes left for texts
	err     error
}

func (v *arrowVetted) fields(parent flatTable, slot flatbuffers.VOffsetT, path string, depth int) {
	for field := range parent.items(slot) {
		name := path + v.text(field, 4)
		kind := field.GetByteSlot(8, 0)
		if v.columns++; v.columns > maxColumns || depth > maxArrowDepth {
			v.err = fmt.Errorf("the schema has more than %d columns, or is nested deeper than %d levels", maxColumns, maxArrowDepth)
		} else if kind == arrowUnion {
			v.err = fmt.Errorf("column %s is a union, which is not read; give each kind of value a column of its own", name)
		}
		if details, ok := field.table(10); ok && kind == arrowTimestamp {
			v.text(details, 6)
		}
		v.metadata(field, 16)
		if v.err != nil {
			return
		}
		v.fields(field, 14, name+".", depth+1)
	}
}

// metadata counts the texts of a list of names and values.
func (v *arrowVetted) metadata(parent flatTable, slot flatbuffers.VOffsetT) {
	for pair := range parent.items(slot) {
		v.text(pair, 4)
		v.text(pair, 6)
		if v.room -= 16; v.err != nil {
			return
		}
	}
}

// text takes a text that is in the room that is left.
func (v *arrowVetted) text(parent flatTable, slot flatbuffers.VOffsetT) string {
	start, n := parent.vector(slot)
	if v.room -= n; v.room < 0 && v.err == nil {
		v.err = fmt.Errorf("the names and metadata of the schema have more than %d MiB", maxArrowHead>>20)
	}
	if v.err != nil {
		return ""
	}
	return string(parent.Bytes[start : start+flatbuffers.UOffsetT(n)])
}

// flatTable is a table of FlatBuffers, the serialisation of Arrow's heads. An offset outside its bytes panics.
type flatTable struct{ flatbuffers.Table }

// at follows the offset that stands at a position.
func (t flatTable) at(position flatbuffers.UOffsetT) flatTable {
	return flatTable{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(position)}}
}

func (t flatTable) table(slot flatbuffers.VOffsetT) (flatTable, bool) {
	offset := t.Offset(slot)
	if offset == 0 {
		return flatTable{}, false
	}
	return t.at(t.Pos + flatbuffers.UOffsetT(offset)), true
}

// vector is where the items of a list begin, and how many there are.
func (t flatTable) vector(slot flatbuffers.VOffsetT) (start flatbuffers.UOffsetT, n int) {
	offset := flatbuffers.UOffsetT(t.Offset(slot))
	if offset == 0 {
		return 0, 0
	}
	return t.Vector(offset), t.VectorLen(offset)
}

// items are the tables of a list.
func (t flatTable) items(slot flatbuffers.VOffsetT) iter.Seq[flatTable] {
	return func(yield func(flatTable) bool) {
		start, n := t.vector(slot)
		for i := range n {
			if !yield(t.at(start + 4*flatbuffers.UOffsetT(i))) {
				return
			}
		}
	}
}
