package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"trajgen/pipeline/episode"
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

// Attempts returns every attempt of an episode, pending ones too, in their order.
func (j *Journal) Attempts(id string) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var entries []Entry
	for _, n := range j.index.byID[id] {
		entries = append(entries, j.index.records[n].Entry)
	}
	return entries
}

// Attempts returns every attempt of an episode, pending ones too, in their order. The error wraps ErrNoEpisode when the
// journal has none.
func (r *Reader) Attempts(id string) ([]*episode.Episode, error) {
	var attempts []*episode.Episode
	for _, n := range r.index.byID[id] {
		ep, err := r.read(int(n))
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, ep)
	}
	if attempts == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoEpisode, id)
	}
	return attempts, nil
}
