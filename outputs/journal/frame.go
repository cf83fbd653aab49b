package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	gojson "github.com/goccy/go-json"
	"github.com/klauspost/compress/zstd"

	"trajgen/pipeline/episode"
)

// A frame holds one episode:
//
//	 0  magic            4 bytes, the last of them is the format's version
//	 4  meta length      uint32, little endian like all below
//	 8  payload length   uint32
//	12  batch            uint32, bytes from the first frame of the same write to this one
//	16  payload CRC32C   uint32
//	20  head CRC32C      uint32, over the 20 bytes before and the meta
//	24  meta             JSON of Entry, so that opening a journal decompresses nothing
//	    payload          zstd of the JSON of an episode.Episode, in one zstd frame or several that follow each other
//
// The head has its own checksum so that a damaged payload does not hide where the next frame begins.
const (
	frameMagic  = "tgJ\x01"
	frameHead   = 24
	maxMeta     = 1 << 20
	maxPayload  = 1 << 30
	maxExpanded = 4 << 30 // of a payload; stops a damaged or hostile file from filling the memory
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Entry is what a journal knows of an episode without reading it.
type Entry struct {
	ID      string          `json:"id"`
	Row     int             `json:"row"`
	Sample  int             `json:"sample"`
	Attempt int             `json:"attempt"`
	Outcome episode.Outcome `json:"outcome"`
	Pending bool            `json:"pending,omitempty"` // another attempt follows, and this one is no row
}

func entryOf(ep *episode.Episode) Entry {
	return Entry{ID: ep.ID, Row: ep.Row, Sample: ep.Key.Sample, Attempt: ep.Attempt, Outcome: ep.Outcome, Pending: ep.Pending}
}

// The codecs are safe for concurrent use in their one-shot form, and hold no goroutines then. For 20 KB of an episode the
// fastest level takes half of the time of the default one and 4 % more room; whoever wants small files exports.
var (
	compressor, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxExpanded), zstd.WithDecoderConcurrency(0))
)

// Encode is the one JSON form of an episode, with its line break. HTML characters stay as they are: what the
// model saw is what is stored. Bytes that are not UTF-8 become U+FFFD, and white space between the tokens of embedded
// JSON goes, as encoding/json has it.
func Encode(ep *episode.Episode) ([]byte, error) {
	before, tools, after, err := encodeAround(ep)
	if err != nil {
		return nil, fmt.Errorf("encode episode %s: %w", ep.ID, err)
	}
	return slices.Concat(before, tools.raw, after), nil
}

// encodeFrame returns the frame of an episode; seal completes it.
func encodeFrame(ep *episode.Episode) ([]byte, error) {
	if ep.ID == "" {
		return nil, errors.New("episode without an id (want Key.ID())")
	}
	before, tools, after, err := encodeAround(ep)
	if err != nil {
		return nil, fmt.Errorf("encode episode %s: %w", ep.ID, err)
	}
	if what := entryOf(ep).strange(); what != "" {
		return nil, fmt.Errorf("episode %s does not fit into a journal: %s", ep.ID, what)
	}
	meta, err := json.Marshal(entryOf(ep))
	if err != nil {
		return nil, fmt.Errorf("encode entry of episode %s: %w", ep.ID, err)
	}
	frame := make([]byte, frameHead, frameHead+len(meta)+len(tools.zst)+(len(before)+len(after))/2)
	frame = append(frame, meta...)
	if len(before) > 0 {
		frame = compressor.EncodeAll(before, frame)
	}
	frame = append(frame, tools.zst...)
	frame = compressor.EncodeAll(after, frame)
	size := len(frame) - frameHead - len(meta)
	if size > maxPayload || len(meta) > maxMeta {
		return nil, fmt.Errorf("episode %s is %d bytes after compression (want at most %d)", ep.ID, size, maxPayload)
	}
	copy(frame, frameMagic)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(meta)))
	binary.LittleEndian.PutUint32(frame[8:], uint32(size))
	binary.LittleEndian.PutUint32(frame[16:], crc32.Checksum(frame[frameHead+len(meta):], castagnoli))
	return frame, nil
}

// seal puts a frame at its place in a write.
func seal(frame []byte, batch uint32) {
	binary.LittleEndian.PutUint32(frame[12:], batch)
	meta := binary.LittleEndian.Uint32(frame[4:])
	binary.LittleEndian.PutUint32(frame[20:], headSum(frame[:frameHead+int(meta)]))
}

// headSum is the checksum over a head, without the checksum itself, and its meta.
func headSum(head []byte) uint32 {
	sum := crc32.Update(0, castagnoli, head[:20])
	return crc32.Update(sum, castagnoli, head[frameHead:])
}

// head is a frame without its payload.
type head struct {
	Entry
	offset  int64 // of the frame in its segment
	batch   int64 // offset of the first frame of the same write
	payload int64 // offset of the payload
	size    int64 // of the payload
	sum     uint32
}

func (h head) end() int64 { return h.payload + h.size }

// is compares a head with what the index has.
func (h head) is(want Entry) error {
	if h.Entry != want {
		return errFrame(fmt.Sprintf("the frame is %+v, the index says %+v", h.Entry, want))
	}
	return nil
}

// errFrame is what is wrong with a frame.
type errFrame string

func (e errFrame) Error() string { return string(e) }

// readHead reads the frame at offset of a segment that is size bytes long. The error is an errFrame, or one of
// reading.
func readHead(r io.ReaderAt, offset, size int64) (head, error) {
	if size-offset < frameHead {
		return head{}, errFrame("the segment ends inside the head of a frame")
	}
	// Most metas fit into the first read.
	buf := make([]byte, min(frameHead+256, size-offset))
	if err := readFull(r, buf, offset); err != nil {
		return head{}, err
	}
	if string(buf[:4]) != frameMagic {
		return head{}, errFrame("no frame begins here")
	}
	metaSize := int64(binary.LittleEndian.Uint32(buf[4:]))
	h := head{
		offset:  offset,
		batch:   offset - int64(binary.LittleEndian.Uint32(buf[12:])),
		payload: offset + frameHead + metaSize,
		size:    int64(binary.LittleEndian.Uint32(buf[8:])),
		sum:     binary.LittleEndian.Uint32(buf[16:]),
	}
	if metaSize > maxMeta || h.size > maxPayload {
		return head{}, errFrame("the head of the frame is damaged: impossible lengths")
	}
	if h.payload > size {
		return head{}, errFrame("the segment ends inside the head of a frame")
	}
	if n := frameHead + metaSize; n <= int64(len(buf)) {
		buf = buf[:n]
	} else {
		buf = make([]byte, n)
		if err := readFull(r, buf, offset); err != nil {
			return head{}, err
		}
	}
	if headSum(buf) != binary.LittleEndian.Uint32(buf[20:]) {
		return head{}, errFrame("the head of the frame is damaged: wrong checksum")
	}
	if err := json.Unmarshal(buf[frameHead:], &h.Entry); err != nil || h.batch < 0 {
		return head{}, errFrame("the head of the frame names no episode")
	}
	if what := h.strange(); what != "" {
		return head{}, errFrame("the head of the frame is none of ours: " + what)
	}
	if h.end() > size {
		return h, errFrame("the segment ends inside the payload of the frame")
	}
	return h, nil
}

// readPayload reads and checks a payload into buf, which it returns grown.
func readPayload(r io.ReaderAt, h head, buf []byte) ([]byte, error) {
	if int64(cap(buf)) < h.size {
		buf = make([]byte, h.size)
	}
	buf = buf[:h.size]
	if err := readFull(r, buf, h.payload); err != nil {
		return buf, err
	}
	if crc32.Checksum(buf, castagnoli) != h.sum {
		return buf, errFrame("the payload of the frame is damaged: wrong checksum")
	}
	return buf, nil
}

// readEpisode reads and checks the frame at offset of a segment that is size bytes long, with buf as scratch space. The
// error is an errFrame when the frame is not that of the entry or is damaged.
func readEpisode(r io.ReaderAt, want Entry, offset, size int64, buf []byte) (*episode.Episode, []byte, error) {
	h, err := readHead(r, offset, size)
	if err == nil {
		err = h.is(want)
	}
	if err != nil {
		return nil, buf, err
	}
	if buf, err = readPayload(r, h, buf); err != nil {
		return nil, buf, err
	}
	ep, err := decodePayload(buf)
	if err == nil {
		err = h.check(ep)
	}
	if err != nil {
		return nil, buf, errFrame(err.Error())
	}
	return ep, buf, nil
}

// check compares an episode with the head of its frame.
func (e Entry) check(ep *episode.Episode) error {
	if got := entryOf(ep); got != e {
		return errFrame(fmt.Sprintf("the payload is %+v, the head says %+v", got, e))
	}
	return nil
}

// decodePayload turns a checked payload into an episode.
func decodePayload(payload []byte) (*episode.Episode, error) {
	scratch := rawJSON.Get().(*[]byte)
	defer rawJSON.Put(scratch)
	raw, err := decompressor.DecodeAll(payload, (*scratch)[:0])
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if cap(raw) <= keptScratch {
		*scratch = raw
	}
	// Decoding is most of the work of an export, and this library does it in less than half the time. It reads what Encode
	// wrote: the text is checksummed, and no stranger's.
	ep := new(episode.Episode)
	if err := gojson.Unmarshal(raw, ep); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return ep, nil
}

// rawJSON holds buffers for episodes on their way from compressed to decoded, which copies what it keeps.
var rawJSON = sync.Pool{New: func() any { return new([]byte) }}

const keptScratch = 1 << 20

// readFull fills buf; a segment that shrank meanwhile is an errFrame, like any other missing byte.
func readFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == io.EOF {
		return errFrame("the segment ends inside a frame")
	}
	return err
}
