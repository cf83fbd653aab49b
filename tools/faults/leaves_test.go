package faults

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLeavesTooDeep reads what a stranger could write to fill the memory with pointers.
func TestLeavesTooDeep(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	if got := len(leaves(nested(deepest))); got != deepest {
		t.Errorf("%d values that lie in each other: got %d", deepest, got)
	}
	if got := leaves(nested(200_000)); got != nil {
		t.Errorf("200,000 values that lie in each other: got %d", len(got))
	}
}

// FuzzLeaves checks that each value lies where it is said to, whatever the text is.
func FuzzLeaves(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"b\u00e4",null,true],"c/~":{"d":-1.5e3}}`, ` [ ] `, `"x"`, `{"a"`, `[1,,2]`, "{\"\xff\":1}", `1 2`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range leaves(text) {
			if part := text[l.start:l.end]; !json.Valid([]byte(part)) {
				t.Errorf("%q: at %q stands %q", text, l.pointer, part)
			}
		}
	})
}
