package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	gojson "github.com/goccy/go-json"
	"github.com/klauspost/compress/zstd"

	"trajgen/outputs/log"
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
	frameHead   = 24
	maxMeta     = 1 << 20
	maxPayload  = 1 << 30
	maxExpanded = 4 << 30 // of a payload; stops a damaged or hostile file from filling the memory
)

var frames = log.Format[Entry]{
	Magic: "tgJ\x01", Head: frameHead, MetaSizeAt: 4, SizeAt: 8, BatchAt: 12, SumAt: 16, HeadSumAt: 20, MaxMeta: maxMeta, Max: maxPayload, Parse: parseEntry,
}

type frame = log.Frame[Entry]

// Entry is what a journal knows of an episode without reading it.
type Entry struct {
	ID      string          `json:"id"`
	Row     int             `json:"row"`
	Sample  int             `json:"sample"`
	Attempt int             `json:"attempt"`
	Outcome episode.Outcome `json:"outcome"`
	Pending bool            `json:"pending,omitempty"` // another attempt follows, and this one is not a row
}

func entryOf(ep *episode.Episode) Entry {
	return Entry{ID: ep.ID, Row: ep.Row, Sample: ep.Key.Sample, Attempt: ep.Attempt, Outcome: ep.Outcome, Pending: ep.Pending}
}

// The codecs are safe for concurrent use in their one-shot form, and hold no goroutines then. For 20 KB of an episode the
// fastest level takes half of the time of the default one and 4 % more room; an export makes small files.
var (
	compressor, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxExpanded), zstd.WithDecoderConcurrency(0))
)

// Encode is the one JSON form of an episode, with its line break. HTML characters stay as they are: what the
// model saw is what is stored. Bytes that are not UTF-8 become U+FFFD, and white space between the tokens of embedded
// JSON goes, as encoding/json has it.
func Encode(ep *episode.Episode) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ep); err != nil {
		return nil, fmt.Errorf("encode episode %s: %w", ep.ID, err)
	}
	return buf.Bytes(), nil
}

// encodeFrame returns the frame of an episode; Seal puts it at its place.
func encodeFrame(ep *episode.Episode) ([]byte, error) {
	if ep.ID == "" {
		return nil, errors.New("episode without an id (want Key.ID())")
	}
	raw, err := Encode(ep)
	if err != nil {
		return nil, err
	}
	if what := entryOf(ep).strange(); what != "" {
		return nil, fmt.Errorf("episode %s does not fit into a journal: %s", ep.ID, what)
	}
	meta, err := json.Marshal(entryOf(ep))
	if err != nil {
		return nil, fmt.Errorf("encode entry of episode %s: %w", ep.ID, err)
	}
	frame := frames.Begin(make([]byte, 0, frameHead+len(meta)+len(raw)/2), meta)
	frame = compressor.EncodeAll(raw, frame)
	size := len(frame) - frameHead - len(meta)
	if size > maxPayload || len(meta) > maxMeta {
		return nil, fmt.Errorf("episode %s is %d bytes after compression (want at most %d)", ep.ID, size, maxPayload)
	}
	frames.Finish(frame)
	return frame, nil
}

// parseEntry reads what a frame is about.
func parseEntry(_, meta []byte) (e Entry, err error) {
	if err := json.Unmarshal(meta, &e); err != nil {
		return e, errors.New("it names no episode")
	}
	if what := e.strange(); what != "" {
		return e, errors.New(what)
	}
	return e, nil
}

// is compares a frame with what the index has.
func (e Entry) is(want Entry) error {
	if e != want {
		return log.Broken(fmt.Sprintf("the frame is %+v, the index says %+v", e, want))
	}
	return nil
}

// readFrame reads and checks the frame at offset of a segment that is size bytes long, without decoding it. The error is a
// log.Broken when the frame is not that of the entry or is damaged.
func readFrame(r io.ReaderAt, want Entry, offset, size int64) (h frame, payload []byte, err error) {
	h, err = frames.ReadHead(r, offset, size)
	if err == nil {
		err = h.About.is(want)
	}
	if err == nil {
		payload, err = frames.ReadPayload(r, h, nil)
	}
	return h, payload, err
}

// decode turns a checked payload into an episode, which has to be that of the entry. The error is a log.Broken.
func (e Entry) decode(payload []byte) (*episode.Episode, error) {
	ep, err := decodePayload(payload)
	if err != nil {
		return nil, log.Broken(err.Error())
	}
	if is := entryOf(ep); is != e {
		return nil, log.Broken(fmt.Sprintf("the payload is %+v, the head says %+v", is, e))
	}
	return ep, nil
}

// decodes makes the decoder of an episode before goroutines ask for it, see episode.Members.
var decodes = sync.OnceFunc(func() { _ = gojson.Unmarshal([]byte("{}"), new(episode.Episode)) })

// decodePayload turns a checked payload into an episode.
func decodePayload(payload []byte) (*episode.Episode, error) {
	raw, err := decompressor.DecodeAll(payload, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	// Decoding is most of the work of an export, and this library does it in less than half the time. It reads what Encode
	// wrote: the text is checksummed, and no stranger's.
	decodes()
	ep := new(episode.Episode)
	if err := gojson.Unmarshal(raw, ep); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return ep, nil
}
