package datasets

// What is taken apart without encoding/json, for the tests that compare.
var (
	SplitObject  = splitObject
	SplitList    = splitList
	Unquote      = unquote
	AppendText   = appendText
	EncodeSlowly = encodeSlowly
)

// Member is an entry of an object.
type Member = member

func (m Member) Name() string  { return m.name }
func (m Member) Value() []byte { return m.value }

// Canonical is the fast half of object.
func Canonical(list []Member, nulls bool) ([]byte, bool) {
	return appendObject(nil, list, true, nulls, maxDepth)
}
