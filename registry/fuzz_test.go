package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/registry"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

type fuzzArgs struct {
	Path  string         `json:"path" minlen:"1"`
	Limit int            `json:"limit,omitempty" default:"5" min:"1" max:"2000"`
	Ratio *float64       `json:"ratio,omitempty"`
	On    bool           `json:"on,omitempty"`
	Mode  string         `json:"mode,omitempty" enum:"a,b"`
	IDs   []int          `json:"ids,omitempty" maxitems:"3"`
	Env   map[string]int `json:"env,omitempty"`
	Any   any            `json:"any,omitempty"`
	Edits []struct {
		Old string `json:"old"`
		N   int    `json:"n,omitempty" default:"7"`
	} `json:"edits,omitempty"`
}

// FuzzArguments feeds what a model might write to a tool of ours and to one with a schema of unions.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"", "null", `{}`, `{"path":"a"}`, `{"path":"a","limit":"5","ids":"[\"1\"]","edits":{"old":"x","n":"2"}}`,
		`{"path":"a",}`, `{'path': 'a'}`, `{"path":"a`, `"{\"path\":\"a\"}"`, `{"path":"\ud800"}`, "{\"path\":\"\xff\"}",
		`{"path":"a","limit":1e999999999}`, `{"path":"a","ratio":"1e-5000"}`, `{"path":"a","path":"b"}`,
		`{"path":"a","any":[[[[{"x":"1"}]]]]}`, `{"path":"a","env":{"K":"1"},"on":"TRUE"}`, `{"x":"[1,[2]]","path":"p"}`,
	} {
		f.Add(seed)
	}
	ours := registry.Define(registry.Definition{Name: "ours", Toolset: "test"},
		func(_ context.Context, _ *registry.Env, args fuzzArgs) (any, error) {
			if args.Path == "" || args.Limit < 1 || args.Limit > 2000 || len(args.IDs) > 3 {
				f.Errorf("the tool got %+v", args)
			}
			return args, nil
		})
	theirs, err := registry.DefineSchema(registry.Definition{Name: "theirs", Toolset: "test"}, json.RawMessage(`{
		"type":"object","properties":{
			"x":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/properties/x"}},{"type":"null"}]},
			"path":{"type":["integer","string"],"pattern":"^[a-z]*$"},
			"limit":{"type":"number","nullable":true,"multipleOf":0.5}}}`),
		func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
			return arguments, nil
		})
	if err != nil {
		f.Fatal(err)
	}
	r, err := registry.New(ours, theirs)
	if err != nil {
		f.Fatal(err)
	}
	set, err := r.Select(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		s := set.Session(registry.SessionConfig{})
		defer s.Close()
		for _, name := range []string{"ours", "theirs"} {
			got := s.Call(t.Context(), registry.Request{ID: name, Name: name, Arguments: raw})
			if !json.Valid([]byte(got.Result)) || !utf8.ValidString(got.Result) {
				t.Errorf("result is not JSON: %q", got.Result)
			}
			if got.Status != episode.CallOK && got.Status != episode.CallInvalidArguments {
				t.Errorf("status = %s: %s", got.Status, got.Result)
			}
			if got.Arguments != nil && (!json.Valid(got.Arguments) || got.Arguments[0] != '{') {
				t.Errorf("arguments are not an object: %s", got.Arguments)
			}
			if got.RawArguments != raw || s.Fault() != nil {
				t.Errorf("raw = %q, fault = %v", got.RawArguments, s.Fault())
			}
			if got.Status == episode.CallOK && !got.Repaired && len(got.Coerced) == 0 && utf8.ValidString(raw) &&
				!sameJSON(raw, string(got.Arguments)) {
				t.Errorf("arguments changed without a word: %s became %s", raw, got.Arguments)
			}
		}
	})
}

// sameJSON compares as decoders see it; "" is {}.
func sameJSON(a, b string) bool {
	if strings.TrimSpace(a) == "" {
		a = "{}"
	}
	var texts [2]string
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var doc any
		if err := d.Decode(&doc); err != nil {
			return false
		}
		out, _ := json.Marshal(doc)
		texts[i] = string(out)
	}
	return texts[0] == texts[1]
}

// Our walk along the schema and the library judge alike.
func TestValidationAgreesWithTheLibrary(t *testing.T) {
	tool := registry.Define(registry.Definition{Name: "x", Toolset: "test"},
		func(context.Context, *registry.Env, fuzzArgs) (any, error) { return none{}, nil })
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Parameters))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///x.json", doc); err != nil {
		t.Fatal(err)
	}
	schema := c.MustCompile("mem:///x.json")
	s := session(t, registry.SessionConfig{}, tool)
	rapid.Check(t, func(rt *rapid.T) {
		args := map[string]any{}
		for _, name := range []string{"path", "limit", "ratio", "on", "mode", "ids", "env", "any", "edits"} {
			if rapid.IntRange(0, 3).Draw(rt, "with") > 0 {
				args[name] = draw(rt, 2)
			}
		}
		raw, err := json.Marshal(args)
		if err != nil {
			rt.Fatal(err)
		}
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: "x", Arguments: string(raw)})
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.Arguments))
		if err != nil {
			rt.Fatal(err)
		}
		want := schema.Validate(dropNulls(instance, "")) == nil
		if (got.Status == episode.CallOK) != want {
			rt.Fatalf("%s: status %s, library says %v: %s", raw, got.Status, want, got.Result)
		}
	})
}

// dropNulls leaves out the null of an optional argument, as the dispatch does.
func dropNulls(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		if key == "env" || key == "any" {
			return v
		}
		out := map[string]any{}
		for name, each := range v {
			if each != nil || name == "path" || name == "old" || name == "any" {
				out[name] = dropNulls(each, name)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = dropNulls(v[i], key)
		}
		return out
	}
	return v
}

func draw(t *rapid.T, depth int) any {
	switch n := rapid.IntRange(0, 5+2*min(depth, 1)).Draw(t, "kind"); n {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.IntRange(-3, 3000).Draw(t, "int")
	case 3:
		return rapid.Float64Range(-2, 2).Draw(t, "float")
	case 4, 5:
		return rapid.SampledFrom([]string{"", "a", "b", "7", "null", "true", "1.5", "[1]", `{"old":"x"}`}).Draw(t, "text")
	case 6:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			list = append(list, draw(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for _, name := range []string{"old", "n", "k"} {
		if rapid.Bool().Draw(t, "has") {
			object[name] = draw(t, depth-1)
		}
	}
	return object
}
