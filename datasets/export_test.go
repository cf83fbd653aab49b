package datasets

// What takes JSON apart and puts it together, for the tests that compare it with encoding/json.
var (
	NotObject = notObject
	Members   = members
	Elements  = elements
	AsString  = asString
	Object    = canonical
)
