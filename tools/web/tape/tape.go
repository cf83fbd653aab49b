// Package tape keeps the HTTP exchanges of a run, and answers the same requests from them without any network.
//
// A recording is one of package index, with a record for each exchange, in the order in which they ended, and the bodies.
//
// Nothing in it tells a key: request and response headers are kept by a list of names, and URLs and bodies without secrets.
package tape

import (
	"net/http"

	"trajgen/outputs/log/blobs"
	"trajgen/outputs/log/index"
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
	maxURL    = 32 << 10
	maxHeader = 64 << 10  // of what is kept of a response's
	maxBody   = blobs.Max // of a response, as far as it is kept
	maxSent   = 16 << 20  // of a request
	maxError  = 4 << 10
)

// kind is the recordings of the web, whose records have the JSON of an exchange.
var kind = index.Kind{Name: "a recording of the web", Title: "trajgen web tape 1\n", Magic: "\xf7wt\x01"}

// unusable is the error about a recording that cannot be written, or read.
func unusable(err error) *source.Error {
	return source.Errorf(source.Operator, source.Recording, "%v", err)
}
