package datasets

import "encoding/json"

// What is taken apart without encoding/json, for the tests that compare.
var (
	Unquote      = unquote
	AppendText   = appendText
	EncodeSlowly = encodeSlowly
)

func SplitObject(text []byte) ([]Member, bool)        { return splitObject(nil, text) }
func SplitList(text []byte) ([]json.RawMessage, bool) { return splitList(nil, text) }

// Member is an entry of an object.
type Member = member

func (m Member) Name() string  { return m.name }
func (m Member) Value() []byte { return m.value }

// Canonical is the fast half of object.
func Canonical(list []Member, nulls bool) ([]byte, bool) {
	return appendObject(nil, list, true, nulls, maxDepth)
}
