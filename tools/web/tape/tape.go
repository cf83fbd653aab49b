// Package tape keeps the HTTP exchanges of a run, and answers the same requests from them without any network.
//
// A recording is a directory: index has a frame for each exchange, in the order in which they ended, and blobs has the bodies,
// each once, named after its SHA-256 and compressed. A body is in place before the frame that names it, so that a recording is
// whole up to its end, whenever its writer is killed.
//
// Nothing in it tells a key: request and response headers are kept by a list of names, and URLs and bodies without secrets.
package tape

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"trajgen/outputs/log"
	"trajgen/outputs/log/blobs"
	"trajgen/tools/web/source"
)

// exchange is a request and what came of it, as the index has it.
type exchange struct {
	Episode string `json:"ep"`
	Attempt int    `json:"at"`
	Session int    `json:"session"` // of the processes that recorded, from 1
	Order   int    `json:"n"`       // of the requests of the attempt in this session, from 0, as they began
	Call    string `json:"call,omitempty"`
	asked

	Status  int         `json:"status,omitempty"` // 0 where no answer came
	Header  http.Header `json:"header,omitempty"`
	Length  int64       `json:"length"`         // of the body as the server announced it; -1 where it did not
	Body    string      `json:"body,omitempty"` // the blob with what was read of it; "" for nothing
	Bytes   int         `json:"bytes,omitempty"`
	Cut     bool        `json:"cut,omitempty"`    // the body was longer than what was read
	Failure *failure    `json:"failed,omitempty"` // before there was a status, or within the body

	// These come last: a recording is identified by what stands before them.
	Began int64 `json:"began_ms"` // Unix time
	Took  int64 `json:"took_us"`
}

// failure is an error of the transport.
type failure struct {
	Class   string       `json:"class"`
	Blame   source.Blame `json:"blame"`
	Message string       `json:"message"`
}

func (f *failure) error() *source.Error {
	return &source.Error{Class: f.Class, Blame: f.Blame, Message: f.Message}
}

const (
	indexName = "index"
	blobsName = "blobs"
	title     = "trajgen web tape 1\n" // with which the index begins
	maxFrame  = 1 << 20                // of the index: room for the longest URL, headers and error, however they are escaped
	maxURL    = 32 << 10
	maxHeader = 64 << 10  // of what is kept of a response's
	maxBody   = blobs.Max // of a response, as far as it is kept
	maxSent   = 16 << 20  // of a request
	maxError  = 4 << 10
)

// frames have the JSON of an exchange.
var frames = log.Format[struct{}]{Magic: "\xf7wt\x01", Head: 12, SizeAt: 4, SumAt: 8, Max: maxFrame}

// scan goes through the exchanges of an index that is open. tail is where the last whole one ends: what lies behind it was
// being written when its writer died. A gap has whole ones behind it: that is damage.
func scan(file *os.File, each func(at int64, x *exchange, text []byte)) (tail int64, gaps []error, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size()
	first := make([]byte, len(title))
	if n, err := file.ReadAt(first, 0); err != nil && err != io.EOF {
		return 0, nil, err
	} else if string(first[:n]) != title[:n] {
		return 0, nil, fmt.Errorf("%s is not a recording of the web", file.Name())
	} else if n < len(title) {
		return 0, nil, nil
	}
	tail = int64(len(title))
	for part, err := range frames.Parts(file, tail, size, true) {
		if err != nil {
			return 0, nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if part.Broken != nil {
			continue
		}
		if part.From > tail {
			gaps = append(gaps, fmt.Errorf("%s is damaged from byte %d to %d", file.Name(), tail, part.From))
		}
		x := &exchange{}
		if err := json.Unmarshal(part.Payload, x); err != nil {
			gaps = append(gaps, fmt.Errorf("%s is damaged at byte %d: %w", file.Name(), part.From, err))
		} else {
			each(part.From, x, part.Payload)
		}
		tail = part.To
	}
	return tail, gaps, nil
}

// bodies is the store of a recording's bodies.
func bodies(dir string) *blobs.Store {
	return &blobs.Store{Dir: filepath.Join(dir, blobsName), Packed: true}
}

// unusable is the error about a recording that cannot be written, or read.
func unusable(err error) *source.Error {
	return source.Errorf(source.Operator, source.Recording, "%v", err)
}
