package toolbench

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
)

// script is a file of tests.
type script struct {
	Tests []struct {
		Name   string            `yaml:"name"`
		Files  map[string]string `yaml:"files,omitempty"`
		Before []invocation      `yaml:"before,omitempty"` // calls that are made first, in the same sandbox
		Tool   string            `yaml:"tool"`
		With   any               `yaml:"arguments,omitempty"` // a mapping, or the text that a model would send
		Want   Want              `yaml:"want,omitempty"`
	} `yaml:"tests"`
}

type invocation struct {
	Tool string `yaml:"tool"`
	With any    `yaml:"arguments,omitempty"`
}

func (i invocation) request(n int) registry.Request {
	arguments, ok := i.With.(string)
	switch {
	case i.With == nil:
		arguments = "{}"
	case !ok:
		arguments = text(i.With)
	}
	return registry.Request{ID: fmt.Sprintf("call_%d", n), Turn: n, Name: i.Tool, Arguments: arguments}
}

var statuses = []episode.CallStatus{"", episode.CallOK, episode.CallError, episode.CallTimeout, episode.CallDenied,
	episode.CallInvalidArguments, episode.CallUnknownTool, episode.CallUnavailable}

// fromScript reads tests of tools.
func fromScript(path string) (cases []Case, err error) {
	var s script
	if err := run.Decode(path, "a file of tool tests", &s); err != nil {
		return nil, err
	}
	var wrong []error
	seen := map[string]bool{}
	for n, test := range s.Tests {
		bad := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s: tests[%d]: %s", path, n, fmt.Sprintf(format, args...)))
		}
		c := Case{ID: test.Name, Tool: test.Tool, Files: test.Files, Want: test.Want}
		if c.ID == "" || seen[c.ID] {
			bad("name is %q; want one that no other test has", c.ID)
		}
		seen[c.ID] = true
		if c.Tool == "" {
			bad("tool is missing; trajgen tools list has the names")
		}
		if !slices.Contains(statuses, c.Want.Status) {
			bad("status %q (have %v)", c.Want.Status, statuses[1:])
		}
		for at := range maps.Keys(c.Want.At) {
			if at != "" && !strings.HasPrefix(at, "/") {
				bad("at: %q is not a JSON pointer, such as /content", at)
			}
		}
		for i, before := range test.Before {
			c.Before = append(c.Before, before.request(i))
		}
		c.Call = invocation{test.Tool, test.With}.request(len(test.Before))
		cases = append(cases, c)
	}
	return cases, errors.Join(wrong...)
}
