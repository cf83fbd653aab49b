// Package wire carries messages between the runner, the broker and the guests: a compact encoding, and sockets that pass
// descriptors.
package wire

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed means that a message does not have the format of its kind.
var ErrMalformed = errors.New("malformed message")

// Encoder appends values to a message. The order is the format: the Decoder must read in the same order.
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

// Message is a type that is sent field by field.
type Message interface {
	// Fields passes all fields to c, always in the same order.
	Fields(c Coder)
}

// Coder appends the fields of a message, or reads them, so that a type lists its fields once for both directions.
type Coder struct {
	e *Encoder
	d *Decoder // exactly one of them is set
}

// Coder returns a Coder that appends.
func (e *Encoder) Coder() Coder { return Coder{e: e} }

// Coder returns a Coder that reads.
func (d *Decoder) Coder() Coder { return Coder{d: d} }

// Add appends a message.
func (e *Encoder) Add(m Message) { m.Fields(e.Coder()) }

// Take reads a message.
func (d *Decoder) Take(m Message) { m.Fields(d.Coder()) }

// Int appends or reads numbers.
func (c Coder) Int(all ...*int64) { each(c, all, (*Encoder).Int, (*Decoder).Int) }

// Bool appends or reads truth values.
func (c Coder) Bool(all ...*bool) { each(c, all, (*Encoder).Bool, (*Decoder).Bool) }

// String appends or reads texts.
func (c Coder) String(all ...*string) { each(c, all, (*Encoder).String, (*Decoder).String) }

// Strings appends or reads lists of texts.
func (c Coder) Strings(all ...*[]string) { each(c, all, (*Encoder).Strings, (*Decoder).Strings) }

// Blob appends or reads bytes, which it reads without a copy.
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

// Ints appends or reads a list of numbers.
func (c Coder) Ints(all *[]int64) {
	List(c, all, func(v *int64, c Coder) { c.Int(v) })
}

// List appends or reads a list of values with fields.
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

// Decoder reads values from a message. After the first malformed value, every value is zero and Err is set: a guest may be
// under the control of what it confines, so its messages are not trusted.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder returns a Decoder of message.
func NewDecoder(message []byte) *Decoder { return &Decoder{rest: message} }

// Err returns ErrMalformed when a value so far was malformed.
func (d *Decoder) Err() error { return d.err }

// Int reads a number.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Bool reads a truth value.
func (d *Decoder) Bool() bool { return d.Int() != 0 }

// Blob reads bytes, which share memory with the message.
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

// String reads text.
func (d *Decoder) String() string { return string(d.Blob()) }

// Strings reads a list; nil when it is empty.
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

// Len reads the length of a list; it never exceeds what the message could hold.
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
