package datasets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
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
func (m *arrowMessages) Message() (*ipc.Message, error) {
	message, err := m.next()
	if err != nil && err != io.EOF {
		m.refused = err
	}
	return message, err
}

func (m *arrowMessages) next() (*ipc.Message, error) {
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
