package twin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"trajgen/registry"
)

// hash identifies what was asked.
type hash [sha256.Size]byte

func (h hash) String() string { return hex.EncodeToString(h[:]) }

// sum is the hash of parts, each with its length.
func sum(parts ...[]byte) (sum hash) {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// asked is a call as it is looked up.
type asked struct {
	tool      string
	readOnly  bool
	digest    hash // of the tool's schema, and of who answers
	arguments hash
	text      json.RawMessage // the arguments
	history   hash            // of the family's earlier calls that may have changed something
	ordinal   int             // among calls that are otherwise equal
}

func askedOf(c registry.TwinCall) asked {
	t := c.Tool
	a := asked{tool: t.Name, readOnly: t.ReadOnly, digest: sum([]byte(t.Outside), []byte(t.Version), t.Parameters)}
	return a.with(c.Arguments)
}

// with is the same call with the arguments in their one spelling.
func (a asked) with(arguments json.RawMessage) asked {
	a.text = canonical(arguments)
	a.arguments = sum(a.text)
	return a
}

// hash is of the call, whatever came before it.
func (a asked) hash() []byte {
	all := sum([]byte(a.tool), a.digest[:], a.arguments[:])
	return all[:]
}

// loosely is the key of the call, whatever came before it; exactly the key with that.
func (a asked) loosely() hash { return hash(a.hash()) }
func (a asked) exactly() hash { return sum(a.hash(), a.history[:]) }

// canonical writes JSON in the one way in which equal values are equal texts: without white space, its names sorted. Numbers stay
// as they are.
func canonical(text json.RawMessage) json.RawMessage {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return text
	}
	sorted, err := encode(value)
	if err != nil {
		return text
	}
	return sorted
}

// encode is json.Marshal that leaves JSON texts in a value as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// shortened bounds the id of a call, which a model's server made up.
func shortened(id string) string { return id[:min(len(id), 100)] }
