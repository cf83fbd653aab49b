package tools

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"trajgen/registry"
)

// pythonName matches names for the module and its parameters: ASCII, and not private.
var pythonName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// pythonTaken are the keywords of the language, and the names in the module.
var pythonTaken = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for " +
	"from global if import in is lambda nonlocal not or pass raise return try while with yield " +
	"json os shlex socket threading time json_parse shell_quote retry")

func pythonCan(name string) bool {
	return pythonName.MatchString(name) && !slices.Contains(pythonTaken, name)
}

// functionOf makes a tool's function for scripts, from its parameters: required ones come first. A parameter whose name is not
// valid in Python is passed by name in a dict with two stars.
func functionOf(tool registry.Tool) (codeTool, bool) {
	function := codeTool{name: tool.Name, doc: "-> see the tool " + tool.Name}
	if !tool.Script || !pythonCan(function.python()) {
		return codeTool{}, false
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(tool.Parameters, &schema) != nil {
		return codeTool{}, false
	}
	var params, seen []string
	others := false
	for _, param := range slices.Concat(schema.Required, slices.Sorted(maps.Keys(schema.Properties))) {
		switch {
		case !pythonCan(param) || param == "others":
			others = true
		case slices.Contains(seen, param):
		case slices.Contains(schema.Required, param):
			params = append(params, param)
		default:
			params = append(params, param+"=None")
		}
		seen = append(seen, param)
	}
	if others {
		params = append(params, "**others")
	}
	function.params = strings.Join(params, ", ")
	return function, true
}
