package datasets

// What takes JSON apart and puts it together, for the tests that compare it with encoding/json.
var (
	NotObject = notObject
	Members   = members
	Elements  = elements
	AsString  = asString
	Object    = canonical
)

// Member is an entry of an object.
type Member = member

func (m Member) Name() string  { return m.name }
func (m Member) Value() []byte { return m.value }
