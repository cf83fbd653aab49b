package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

// shownAs is how a schema from elsewhere is shown, and the session that calls its tool.
func shownAs(t *testing.T, schema string, quirks ...string) (string, *registry.Session) {
	t.Helper()
	tool, err := registry.DefineSchema(registry.Definition{Name: "x", Toolset: "mcp-x"}, json.RawMessage(schema),
		func(_ context.Context, _ *registry.Env, args json.RawMessage) (any, error) { return args, nil })
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	set, err := mustNew(t, tool).WithQuirks(quirks).Select([]string{"mcp-x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := parametersOf(t, set.Schemas()[0])
	if tool, _ := mustNew(t, tool).Tool("x"); !strings.Contains(schema, " ") && string(tool.Parameters) != schema {
		t.Errorf("the tool's own schema became %s", tool.Parameters)
	}
	return string(shown), set.Session(registry.SessionConfig{})
}

func parametersOf(t *testing.T, schema json.RawMessage) json.RawMessage {
	t.Helper()
	var shown struct {
		Function struct{ Parameters json.RawMessage }
	}
	if err := json.Unmarshal(schema, &shown); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return shown.Function.Parameters
}

func object(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }

func TestShownSchema(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"kept", object(`"b":{"type":"string","minLength":1},"a":{"type":"integer"}`),
			object(`"b":{"type":"string","minLength":1},"a":{"type":"integer"}`)},
		{"no type", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"empty", `{}`, `{"type":"object","properties":{}}`},
		{"objects without properties", object(`"a":{"type":"object"},"b":{"type":"array","items":{"type":"object"}}`),
			object(`"a":{"type":"object","properties":{}},"b":{"type":"array","items":{"type":"object","properties":{}}}`)},
		{"null in a list of types", object(`"a":{"type":["string","null"]}`), object(`"a":{"type":"string","nullable":true}`)},
		{"null first", object(`"a":{"type":["null","integer"]}`), object(`"a":{"type":"integer","nullable":true}`)},
		{"several types", object(`"a":{"type":["string","integer","null"]}`),
			object(`"a":{"anyOf":[{"type":"string"},{"type":"integer"}],"nullable":true}`)},
		{"nullable union", object(`"a":{"anyOf":[{"type":"string","minLength":1},{"type":"null"}],"description":"A."}`),
			object(`"a":{"description":"A.","type":"string","minLength":1,"nullable":true}`)},
		{"null in a larger union", object(`"a":{"oneOf":[{"type":"string"},{"type":"null"},{"type":"object"}]}`),
			object(`"a":{"oneOf":[{"type":"string"},{"type":"object","properties":{}}],"nullable":true}`)},
		{"beside a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","default":1,"description":"A."}},"$defs":{"x":{"type":"object"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"A."}},"$defs":{"x":{"type":"object","properties":{}}}}`},
		{"required without a property", `{"type":"object","properties":{"a":{}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{}},"required":["a"]}`},
		{"only such", `{"type":"object","required":["b"]}`, `{"type":"object","properties":{}}`},
		{"root union", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":["string","null"]}},"required":["b"]},{"required":["a","b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","nullable":true}},"required":["b"]}`},
		{"root all of", `{"type":"object","allOf":[{"properties":{"b":{"type":"string"}},"required":["b"]},{"properties":{"a":{"type":"string"}}}]}`,
			object(`"b":{"type":"string"},"a":{"type":"string"}`)[:len(object(`"b":{"type":"string"},"a":{"type":"string"}`))-1] + `,"required":["b"]}`},
		{"root not", `{"type":"object","properties":{},"not":{"required":["x"]}}`, object("")},
		{"a property of the name type", object(`"type":{"type":"string"},"required":{"type":"boolean"},"$ref":{"type":"string"}`),
			object(`"type":{"type":"string"},"required":{"type":"boolean"},"$ref":{"type":"string"}`)},
	}
	for _, tt := range tests {
		if got, _ := shownAs(t, tt.give); got != tt.want {
			t.Errorf("%s: (-want +got)\n%s", tt.name, cmp.Diff(tt.want, got))
		}
	}
}

func TestQuirks(t *testing.T) {
	const defs = `,"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"$ref":"#/$defs/v"}}},"v":{"type":["string","null"]}}`
	tests := []struct{ name, quirks, give, want string }{
		{"pattern", "pattern", object(`"a":{"type":"string","description":"A name.","pattern":"^\\d+$"}`),
			object(`"a":{"type":"string","description":"A name. Matches the regular expression ^\\d+$."}`)},
		{"format", "format", object(`"a":{"type":"string","format":"uri"}`), object(`"a":{"type":"string","description":"Format: uri."}`)},
		{"slashes", "slash_enums", object(`"a":{"enum":["a/b","c"]},"b":{"enum":["c"]}`),
			object(`"a":{"description":"One of \"a/b\", \"c\"."},"b":{"enum":["c"]}`)},
		{"nullable", "nullable", object(`"a":{"type":["string","null"],"enum":["x",null]}`), object(`"a":{"type":"string","enum":["x"]}`)},
		{"unions", "unions", object(`"a":{"type":["string","integer","null"]},"b":{"anyOf":[{"type":"object"},{"type":"string"}]}`),
			object(`"a":{"nullable":true,"type":"string"},"b":{"type":"object","properties":{}}`)},
		{"union types", "union_types", object(`"a":{"type":"object","anyOf":[{"required":["x"]},{"type":"string"}]}`),
			object(`"a":{"anyOf":[{"type":"object","properties":{}},{"type":"string"}]}`)},
		{"references", "refs", `{"type":"object","properties":{"a":{"$ref":"#/$defs/n","description":"A."}}` + defs + `}`,
			object(`"a":{"type":"object","properties":{"next":{"type":"object","properties":{}},"v":{"type":"string","nullable":true}},"description":"A."}`)},
		{"keywords", "keywords", `{"type":"object","additionalProperties":false,"$schema":"x","properties":{"a":{"const":5},"b":{"type":"integer","enum":[1,2],"exclusiveMinimum":0}}}`,
			object(`"a":{"description":"The value is 5."},"b":{"type":"integer","description":"One of 1, 2."}`)},
	}
	for _, tt := range tests {
		give := tt.give
		if tt.name == "keywords" {
			give = strings.Replace(give, `"$schema":"x",`, "", 1)
		}
		if got, _ := shownAs(t, give, strings.Fields(tt.quirks)...); !equalJSON(t, got, tt.want) {
			t.Errorf("%s: (-want +got)\n%s", tt.name, cmp.Diff(tt.want, got))
		}
	}
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return cmp.Equal(x, y)
}

// What is not shown is checked all the same.
func TestHiddenKeywordsHold(t *testing.T) {
	_, s := shownAs(t, object(`"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":["integer","null"]}`), "pattern", "nullable")
	if got := call(t, s, "x", `{"a":"UP"}`); got.Status != "invalid_arguments" {
		t.Errorf("status %s: %s", got.Status, got.Result)
	}
	if got := call(t, s, "x", `{"a":"low","b":null}`); got.Status != "ok" {
		t.Errorf("status %s: %s", got.Status, got.Result)
	}
}

// References that double at each step must not be followed to their end.
func TestReferencesAreBounded(t *testing.T) {
	defs := `"d40":{"type":"string"}`
	for i := range 40 {
		defs += fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1)
	}
	schema := `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + defs + `}}`
	if got, _ := shownAs(t, schema, "refs"); len(got) > 1<<20 || strings.Contains(got, "$ref") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestQuirksOf(t *testing.T) {
	for model, want := range map[string]string{
		"grok-4": "pattern", "x-ai/grok-4.1-fast": "slash_enums", "google/gemini-2.5-pro": "keywords", "Kimi-K2": "refs",
		"moonshotai/kimi-k2.6": "union_types", "qwen3-8b-q4.gguf": "pattern",
	} {
		if got := registry.QuirksOf(model); !strings.Contains(strings.Join(got, " "), want) {
			t.Errorf("QuirksOf(%s) = %v, want %s among them", model, got, want)
		} else if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, model := range []string{"", "gpt-5", "claude-opus-4", "qwen3", "not-a-grok"} {
		if got := registry.QuirksOf(model); got != nil {
			t.Errorf("QuirksOf(%s) = %v", model, got)
		}
	}
	err := registry.Quirks{"formt", "refs"}.Validate()
	if err == nil || !strings.Contains(err.Error(), `"formt" (did you mean "format"?)`) {
		t.Errorf("Validate = %v", err)
	}
}

func FuzzShown(f *testing.F) {
	f.Add(object(`"a":{"type":["string","null"]}`), 255)
	f.Add(`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"$ref":"#"}}}}}`, 64)
	f.Add(`{"anyOf":[{"$ref":"#/anyOf/1"},{"type":"object","required":["a"]}]}`, 8)
	all := strings.Fields("pattern format slash_enums nullable unions union_types refs keywords")
	f.Fuzz(func(t *testing.T, schema string, bits int) {
		tool, err := registry.DefineSchema(registry.Definition{Name: "x", Toolset: "mcp-x"}, json.RawMessage(schema),
			func(_ context.Context, _ *registry.Env, args json.RawMessage) (any, error) { return args, nil })
		if err != nil {
			return
		}
		var quirks []string
		for i, name := range all {
			if bits&(1<<i) != 0 {
				quirks = append(quirks, name)
			}
		}
		r, err := registry.New(tool)
		if err != nil {
			t.Fatal(err)
		}
		set, err := r.WithQuirks(quirks).Select([]string{"mcp-x"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct {
			Function struct {
				Parameters struct {
					Type       string
					Properties map[string]any
				}
			}
		}
		if err := json.Unmarshal(set.Schemas()[0], &shown); err != nil {
			t.Fatalf("%s: %v", set.Schemas()[0], err)
		}
		if p := shown.Function.Parameters; p.Type != "object" || p.Properties == nil {
			t.Errorf("%s is shown as %s", schema, set.Schemas()[0])
		}
		if _, err := registry.DefineSchema(registry.Definition{Name: "x", Toolset: "x"}, parametersOf(t, set.Schemas()[0]), nil); err != nil {
			t.Errorf("%s is shown as %s: %v", schema, set.Schemas()[0], err)
		}
	})
}
