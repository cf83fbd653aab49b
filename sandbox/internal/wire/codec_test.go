package wire_test

import (
	"errors"
	"slices"
	"testing"

	"trajgen/sandbox/internal/wire"
)

func TestCodec(t *testing.T) {
	var e wire.Encoder
	e.Int(-5)
	e.Bool(true)
	e.Strings([]string{"a", "", "b\x00"})
	e.Blob([]byte{1, 2})
	d := wire.NewDecoder(e.Bytes)
	if n, b, s, blob := d.Int(), d.Bool(), d.Strings(), d.Blob(); n != -5 || !b || !slices.Equal(s, []string{"a", "", "b\x00"}) || !slices.Equal(blob, []byte{1, 2}) || d.Err() != nil {
		t.Errorf("got %d %v %q %v, %v", n, b, s, blob, d.Err())
	}
	if d.Int(); !errors.Is(d.Err(), wire.ErrMalformed) {
		t.Errorf("past the end: got %v", d.Err())
	}
}

// FuzzDecoder feeds what a guest in the wrong hands could send.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{3, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		d := wire.NewDecoder(message)
		for d.Err() == nil {
			d.Int()
			if got := d.Strings(); len(got) > len(message) {
				t.Fatalf("%d strings from %d bytes", len(got), len(message))
			}
			d.Blob()
		}
	})
}

type parcel struct {
	name    string
	heavy   bool
	weights []int64
	labels  []string
	content []byte
	inside  []parcel
}

func (p *parcel) Fields(c wire.Coder) {
	c.String(&p.name)
	c.Bool(&p.heavy)
	c.Ints(&p.weights)
	c.Strings(&p.labels)
	c.Blob(&p.content)
	wire.List(c, &p.inside, (*parcel).Fields)
}

func TestMessage(t *testing.T) {
	give := parcel{
		name: "box", heavy: true, weights: []int64{1, -2}, labels: []string{"a", "b"}, content: []byte("x"),
		inside: []parcel{{name: "one"}, {name: "two", inside: []parcel{{content: []byte("y")}}}},
	}
	var e wire.Encoder
	e.Add(&give)
	var got parcel
	d := wire.NewDecoder(e.Bytes)
	if d.Take(&got); d.Err() != nil || got.inside[1].inside[0].content[0] != 'y' || got.weights[1] != -2 || len(got.labels) != 2 || !got.heavy || got.name != "box" {
		t.Errorf("got %+v, %v", got, d.Err())
	}
	for n := range len(e.Bytes) {
		d := wire.NewDecoder(e.Bytes[:n])
		if d.Take(&parcel{}); !errors.Is(d.Err(), wire.ErrMalformed) {
			t.Errorf("the first %d bytes: got %v", n, d.Err())
		}
	}
}
