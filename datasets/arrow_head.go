package datasets

import (
	"errors"
	"fmt"
	"iter"

	flatbuffers "github.com/google/flatbuffers/go"
)

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
