// Package wire carries messages between the runner, the broker and the guests: a compact encoding, and sockets that
// pass descriptors along.
package wire

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed means that a message does not hold what its kind promises.
var ErrMalformed = errors.New("malformed message")

// Encoder appends values to a message. The order is the format: the Decoder must ask in the same order.
type Encoder struct {
	Bytes []byte
}

// Int appends a number.
func (e *Encoder) Int(v int64) { e.Bytes = binary.AppendVarint(e.Bytes, v) }

// Bool appends a truth value.
func (e *Encoder) Bool(v bool) {
	var n int64
	if v {
		n = 1
	}
	e.Int(n)
}

// Blob appends bytes.
func (e *Encoder) Blob(v []byte) {
	e.Int(int64(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// String appends text.
func (e *Encoder) String(v string) {
	e.Int(int64(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// Strings appends a list.
func (e *Encoder) Strings(v []string) {
	e.Int(int64(len(v)))
	for _, s := range v {
		e.String(s)
	}
}

// Decoder takes values off a message. After the first thing that does not fit, every value is zero and Err says so:
// a guest may be under the control of what it confines, so nothing it sends can be trusted to be well formed.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder returns a Decoder of message.
func NewDecoder(message []byte) *Decoder { return &Decoder{rest: message} }

// Err is ErrMalformed when anything so far did not fit.
func (d *Decoder) Err() error { return d.err }

// Int takes a number.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Bool takes a truth value.
func (d *Decoder) Bool() bool { return d.Int() != 0 }

// Blob takes bytes, which share memory with the message.
func (d *Decoder) Blob() []byte {
	n := d.Int()
	if n < 0 || n > int64(len(d.rest)) {
		d.fail()
		return nil
	}
	v := d.rest[:n:n]
	d.rest = d.rest[n:]
	return v
}

// String takes text.
func (d *Decoder) String() string { return string(d.Blob()) }

// Strings takes a list.
func (d *Decoder) Strings() []string {
	v := make([]string, 0, d.Len())
	for range cap(v) {
		v = append(v, d.String())
	}
	return v
}

// Len takes the length of a list; it is never more than what the message could hold.
func (d *Decoder) Len() int {
	n := d.Int()
	if n < 0 || n > int64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *Decoder) fail() {
	d.rest, d.err = nil, ErrMalformed
}
