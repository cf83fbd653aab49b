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

// Message is what travels as its fields.
type Message interface {
	// Fields goes through all of them, in one order.
	Fields(c Coder)
}

// Coder appends the fields of a message, or takes them: what both ends have to do alike is written once.
type Coder struct {
	e *Encoder
	d *Decoder // one of them is nil
}

// Coder appends to the message.
func (e *Encoder) Coder() Coder { return Coder{e: e} }

// Coder takes off the message.
func (d *Decoder) Coder() Coder { return Coder{d: d} }

// Add appends a message.
func (e *Encoder) Add(m Message) { m.Fields(e.Coder()) }

// Take takes a message.
func (d *Decoder) Take(m Message) { m.Fields(d.Coder()) }

// Int is for numbers.
func (c Coder) Int(all ...*int64) { each(c, all, (*Encoder).Int, (*Decoder).Int) }

// Bool is for truth values.
func (c Coder) Bool(all ...*bool) { each(c, all, (*Encoder).Bool, (*Decoder).Bool) }

// String is for texts.
func (c Coder) String(all ...*string) { each(c, all, (*Encoder).String, (*Decoder).String) }

// Strings is for lists of texts.
func (c Coder) Strings(all ...*[]string) { each(c, all, (*Encoder).Strings, (*Decoder).Strings) }

// Blob is for bytes, which are taken without a copy.
func (c Coder) Blob(all ...*[]byte) { each(c, all, (*Encoder).Blob, (*Decoder).Blob) }

func each[T any](c Coder, all []*T, add func(*Encoder, T), take func(*Decoder) T) {
	for _, v := range all {
		if c.e != nil {
			add(c.e, *v)
		} else {
			*v = take(c.d)
		}
	}
}

// Ints is for a list of numbers.
func (c Coder) Ints(all *[]int64) {
	List(c, all, func(v *int64, c Coder) { c.Int(v) })
}

// List is for a list of what has fields.
func List[T any](c Coder, all *[]T, fields func(*T, Coder)) {
	n := len(*all)
	if c.e != nil {
		c.e.Int(int64(n))
	} else {
		n, *all = c.d.Len(), (*all)[:0]
	}
	for i := range n {
		if c.d != nil {
			if c.d.err != nil {
				return
			}
			*all = append(*all, *new(T))
		}
		fields(&(*all)[i], c)
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

// Strings takes a list; nil when it is empty.
func (d *Decoder) Strings() []string {
	n := d.Len()
	if n == 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = d.String()
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
