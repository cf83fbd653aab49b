package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Asker is who asks a model.
type Asker struct {
	Role    string `json:"role,omitempty"` // "" is the agent; others play users, judge commands, ...
	Episode string `json:"ep"`
	Attempt int    `json:"at"`
}

// Request is the body of a request in its parts.
type Request struct {
	Fields   []byte // the JSON object without messages and tools
	Messages []byte // a JSON array
	Tools    []byte // a JSON array, or nothing
}

// End is how an exchange ended.
type End string

// The ends of an exchange.
const (
	Whole    End = ""         // with the reply's last byte, whatever the reply says
	Failed   End = "failed"   // before there was a status; Error says for what
	Broken   End = "broken"   // within the body; Error says for what
	TimedOut End = "timeout"  // the whole reply took longer than the client waits
	Stalled  End = "stalled"  // the server was silent for longer than the client waits
	Late     End = "deadline" // the asker's own time was up, perhaps before anything was sent
)

// Exchange is one request and what came of it.
type Exchange struct {
	Asker
	Turn     int    `json:"turn"`
	Try      int    `json:"try,omitempty"`   // of the same call, from 0
	Model    string `json:"model,omitempty"` // that was asked
	Endpoint string `json:"endpoint,omitempty"`
	// LimitField is the name under which the request has the limit of a reply.
	LimitField string      `json:"limit,omitempty"`
	Seedless   bool        `json:"seedless,omitempty"` // no seed was sent
	Masked     bool        `json:"masked,omitempty"`   // a secret was taken out of the answer
	Status     int         `json:"status,omitempty"`
	Header     http.Header `json:"header,omitempty"`
	End        End         `json:"end,omitempty"`
	Error      string      `json:"error,omitempty"`
	Slow       bool        `json:"slow,omitempty"` // Error is a timeout of the network's

	Pause   time.Duration  `json:"pause,omitempty"`  // before it
	Outage  bool           `json:"outage,omitempty"` // the try before died in one
	Elapsed time.Duration  `json:"ns"`
	Left    *time.Duration `json:"left,omitempty"` // of the asker's time, afterwards

	Request Request `json:"-"`
	Body    []byte  `json:"-"`
}

// head is the readable part of an exchange's frame. Its blob is fields, messages and body, one behind the other.
type head struct {
	Exchange
	Fields   int `json:"f,omitempty"` // bytes
	Messages int `json:"m,omitempty"` // bytes
	// Keep is how many bytes of the messages are those of the same asker's exchange before: the rest is in the blob.
	Keep  int `json:"keep,omitempty"`
	Tools int `json:"tools,omitempty"` // the number of the tools' frame, from 1; 0 is none
}

// list is the head of a frame of tools: the number by which exchanges know it, so that damage moves no others.
type list struct {
	Number int `json:"n,omitempty"`
}

// session begins the exchanges of one process.
type session struct {
	Session
	Run string `json:"run"` // fingerprint
}

// resumed says that a play of an episode goes on which an earlier process had begun: so many of its exchanges count, by
// role, and those behind them are made again.
type resumed struct {
	Asker
	Kept map[string]int `json:"kept"`
}

// Session is what a run knew of the model's server beside its replies.
type Session struct {
	Bases  []string `json:"bases,omitempty"`  // URLs
	Window int      `json:"window,omitempty"` // tokens
}

// TapeName is the tape's name where a directory is given.
const TapeName = "tape"

// Path is the file of a tape: path itself, or TapeName in the directory that it is.
func Path(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, TapeName)
	}
	return path
}

const (
	magic    = "trajgen tape 1\n"
	maxFrame = 256 << 20 // bytes of a frame, and of what is packed in it
)

// The codecs are safe for many goroutines.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderConcurrency(0))
)

// pack makes a frame.
func pack(k kind, about any, blob []byte) ([]byte, error) {
	if len(blob) > maxFrame/2 {
		return nil, fmt.Errorf("an exchange of %d MiB (at most %d)", len(blob)>>20, maxFrame>>21)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	frame := tapeFrames.Begin(make([]byte, 0, len(text)+len(blob)/3+64), nil)
	frame = append(frame, byte(k))
	frame = binary.AppendUvarint(frame, uint64(len(text)))
	frame = append(frame, text...)
	frame = packer.EncodeAll(blob, frame)
	tapeFrames.Finish(frame)
	return frame, nil
}

// unpack takes the inside of a frame apart. The blob is left packed.
func unpack(inside []byte, about any) (packed []byte, err error) {
	n, width := binary.Uvarint(inside[1:])
	rest := inside[1:]
	if width <= 0 || n > uint64(len(rest)-width) {
		return nil, errors.New("its head is cut")
	}
	rest = rest[width:]
	if err := json.Unmarshal(rest[:n], about); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	return rest[n:], nil
}

// parts cuts the blob of an exchange.
func (h *head) parts(packed []byte) (fields, messages, body []byte, err error) {
	blob, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if h.Fields < 0 || h.Messages < 0 || h.Fields > len(blob) || h.Messages > len(blob)-h.Fields {
		return nil, nil, nil, errors.New("it is shorter than it says")
	}
	return blob[:h.Fields], blob[h.Fields : h.Fields+h.Messages], blob[h.Fields+h.Messages:], nil
}
