package registry_test

import (
	"context"
	"encoding/json"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

// schemaTool echoes its arguments; its argument x has the given schema.
func schemaTool(t *testing.T, schema string) registry.Tool {
	t.Helper()
	tool, err := registry.DefineSchema(registry.Definition{Name: "echo", Toolset: "test"},
		json.RawMessage(`{"type":"object","properties":{"x":`+schema+`}}`),
		func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
			return arguments, nil
		})
	if err != nil {
		t.Fatalf("DefineSchema(%s): %v", schema, err)
	}
	return tool
}

func session(t *testing.T, cfg registry.SessionConfig, tools ...registry.Tool) *registry.Session {
	t.Helper()
	r, err := registry.New(tools...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := r.Select(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := set.Session(cfg)
	t.Cleanup(s.Close)
	return s
}

func call(t *testing.T, s *registry.Session, name, arguments string) episode.ToolCall {
	t.Helper()
	got := s.Call(t.Context(), registry.Request{ID: "call_1", Name: name, Arguments: arguments})
	if !json.Valid([]byte(got.Result)) {
		t.Errorf("%s(%s): result is not JSON: %s", name, arguments, got.Result)
	}
	return got
}

func TestCoercion(t *testing.T) {
	const (
		integer    = `{"type":"integer"}`
		number     = `{"type":"number"}`
		boolean    = `{"type":"boolean"}`
		array      = `{"type":"array"}`
		ints       = `{"type":"array","items":{"type":"integer"}}`
		object     = `{"type":"object"}`
		either     = `{"type":["integer","string"]}`
		stringly   = `{"type":["string","integer"]}`
		maybe      = `{"type":["integer","null"]}`
		nullable   = `{"type":"integer","nullable":true}`
		text       = `{"type":"string"}`
		arrayNull  = `{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}`
		nested     = `{"type":"object","properties":{"n":{"type":"integer"},"on":{"type":"boolean"}}}`
		list       = `{"type":"array","items":` + nested + `}`
		recursive  = `{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/properties/x"}}]}`
		intOrList  = `{"oneOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}`
		textOrList = `{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"string"}]}`
	)
	type row struct{ schema, give, want string } // want "" is unchanged
	rows := []row{
		{integer, `"42"`, `42`},
		{integer, `" 42 "`, `42`},
		{integer, `"42.0"`, `42`},
		{integer, `"1e3"`, `1000`},
		{integer, `"1_000"`, `1000`},
		{integer, `"+7"`, `7`},
		{integer, `"-7"`, `-7`},
		{integer, `"-0"`, `0`},
		{integer, `"007"`, `7`},
		{integer, `"1.5e1"`, `15`},
		{integer, `"120e-1"`, `12`},
		{integer, `"3.5"`, ""},
		{integer, `"abc"`, ""},
		{integer, `""`, ""},
		{integer, `"inf"`, ""},
		{integer, `"0x10"`, ""},
		{integer, `"_1"`, ""},
		{integer, `"1__0"`, ""},
		{integer, `"."`, ""},
		{integer, `"1e999999999999"`, ""},
		{integer, `"1e400"`, ""},
		{integer, `true`, ""},
		{integer, `3.0`, ""},
		{integer, `"9007199254740993"`, `9007199254740993`},
		{integer, `"123456789012345678901234567890"`, `123456789012345678901234567890`},
		{number, `"3.5"`, `3.5`},
		{number, `"5"`, `5`},
		{number, `"5.0"`, `5`},
		{number, `".5"`, `0.5`},
		{number, `"-1.25e-3"`, `-1.25e-3`},
		{number, `"9007199254740993"`, `9007199254740993`},
		{number, `"nan"`, ""},
		{number, `"-inf"`, ""},
		{number, `"1e400"`, ""},
		{boolean, `"true"`, `true`},
		{boolean, `"False"`, `false`},
		{boolean, `" TRUE "`, `true`},
		{boolean, `"1"`, ""},
		{boolean, `"yes"`, ""},
		{boolean, `1`, ""},
		{array, `"[\"x\"]"`, `["x"]`},
		{array, `"foo"`, `["foo"]`},
		{array, `5`, `[5]`},
		{array, `{"k":1}`, `[{"k":1}]`},
		{array, `null`, ""},
		{array, `"null"`, `["null"]`},
		{array, `""`, `[""]`},
		{array, `"[broken"`, `["[broken"]`},
		{array, `"{\"k\":1}"`, `["{\"k\":1}"]`},
		{ints, `"[\"1\",\"2\"]"`, `[1,2]`},
		{ints, `["1",2,"x"]`, `[1,2,"x"]`},
		{ints, `"7"`, `[7]`},
		{object, `"{\"k\":1}"`, `{"k":1}`},
		{object, `"[1]"`, ""},
		{object, `"x"`, ""},
		{object, `""`, ""},
		{either, `"12"`, `12`},
		{either, `"abc"`, ""},
		{stringly, `"12"`, ""},
		{maybe, `"null"`, `null`},
		{maybe, `"NULL"`, `null`},
		{maybe, `"5"`, `5`},
		{nullable, `"Null"`, `null`},
		{nullable, `null`, ""},
		{arrayNull, `"null"`, `null`},
		{arrayNull, `"[1]"`, `[1]`},
		{arrayNull, `"7"`, `[7]`},
		{text, `"42"`, ""},
		{text, `12`, ""},
		{`{}`, `"42"`, ""},
		{nested, `{"n":"1","on":"true","else":"2"}`, `{"n":1,"on":true,"else":"2"}`},
		{nested, `"{\"n\":\"1\"}"`, `{"n":1}`},
		{list, `[{"n":"1"},"{\"on\":\"False\"}"]`, `[{"n":1},{"on":false}]`},
		{list, `{"n":"1"}`, `[{"n":1}]`},
		{recursive, `["1",["2",[3]]]`, `[1,[2,[3]]]`},
		{intOrList, `"3"`, `3`},
		{textOrList, `"a"`, ""},
		{textOrList, `"[\"a\"]"`, `["a"]`},
		{array, `true`, `[true]`},
		{ints, `"[\"9007199254740993\", 1e3]"`, `[9007199254740993,1e3]`},
		{ints, `["1.0","1.5"]`, `[1,"1.5"]`},
		{object, `"{broken"`, ""},
		{either, `"1.0"`, `1`},
		{either, `true`, ""},
		{nullable, `"nulls"`, ""},
		{boolean, `"null"`, ""},
		{number, `"1_000.5"`, `1000.5`},
		{number, `" +7 "`, `7`},
		{number, `"1e3"`, `1000`},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":"1","b":"x"}`, `{"a":1,"b":"x"}`},
		{`{"anyOf":[` + nested + `,{"type":"null"}]}`, `"{\"n\":\"9007199254740993\"}"`, `{"n":9007199254740993}`},
	}
	for _, tt := range rows {
		s := session(t, registry.SessionConfig{}, schemaTool(t, tt.schema))
		got := call(t, s, "echo", `{"x":`+tt.give+`}`)
		want := tt.want
		if want == "" {
			want = tt.give
		}
		if diff := cmp.Diff(`{"x":`+want+`}`, string(got.Arguments)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tt.give, tt.schema, diff)
		}
		if changed := tt.want != ""; changed != (len(got.Coerced) > 0) {
			t.Errorf("%s of %s: coerced = %q", tt.give, tt.schema, got.Coerced)
		}
	}
}

func TestCoercedPaths(t *testing.T) {
	s := session(t, registry.SessionConfig{},
		schemaTool(t, `{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}`))
	got := call(t, s, "echo", `{"x":[{"n":1},{"n":"2"}],"other":"3"}`)
	if diff := cmp.Diff([]string{"x[1].n"}, got.Coerced); diff != "" {
		t.Errorf("coerced (-want +got):\n%s", diff)
	}
	got = call(t, s, "echo", `"{\"x\":\"[]\"}"`)
	if diff := cmp.Diff([]string{"$", "x"}, got.Coerced); diff != "" {
		t.Errorf("coerced (-want +got):\n%s", diff)
	}
}

// A union in a union in a union is tried branch by branch; the walk must stay short whatever the arguments are.
func TestCoercionIsBounded(t *testing.T) {
	s := session(t, registry.SessionConfig{}, schemaTool(t, `{"anyOf":[
		{"type":"array","items":{"$ref":"#/properties/x"}},
		{"type":"array","items":{"anyOf":[{"$ref":"#/properties/x"},{"type":"integer"}]}}]}`))
	deep := ""
	for range 200 {
		deep += "["
	}
	deep += `"x"`
	for range 200 {
		deep += "]"
	}
	got := call(t, s, "echo", `{"x":`+deep+`}`)
	if got.Status != episode.CallInvalidArguments {
		t.Errorf("status = %s, want %s", got.Status, episode.CallInvalidArguments)
	}
	// A list of lists would take a single value to any depth.
	s = session(t, registry.SessionConfig{}, schemaTool(t, `{"type":"array","items":{"$ref":"#/properties/x"}}`))
	if got := call(t, s, "echo", `{"x":"a"}`); got.Status != episode.CallInvalidArguments || len(got.Coerced) != 1 {
		t.Errorf("status = %s, coerced = %q", got.Status, got.Coerced)
	}
}
