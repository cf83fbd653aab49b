package journal

import (
	"encoding/binary"
	"encoding/json"
)

// Reseal makes the frames that begin at starts one write.
func Reseal(segment []byte, starts ...int64) {
	for _, at := range starts {
		frame := segment[at:]
		size := frameHead + binary.LittleEndian.Uint32(frame[4:]) + binary.LittleEndian.Uint32(frame[8:])
		frames.Seal(frame[:size], at-starts[0])
	}
}

// Hollow is so many bytes of heads, each of which claims the rest of them as its payload.
func Hollow(size int) []byte {
	meta, err := json.Marshal(Entry{ID: "x"})
	if err != nil {
		panic(err)
	}
	segment := make([]byte, 0, size)
	for len(segment)+frameHead+len(meta) <= size {
		at := len(segment)
		segment = frames.Begin(segment, meta)
		binary.LittleEndian.PutUint32(segment[at+8:], uint32(size-len(segment)))
		frames.Seal(segment[at:], 0)
	}
	return append(segment, make([]byte, size-len(segment))...)
}
