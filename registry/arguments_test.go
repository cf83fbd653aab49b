package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

type pageArgs struct {
	Path   string   `json:"path" doc:"the file" example:"a.txt" minlen:"1"`
	Offset int      `json:"offset,omitempty" default:"1" min:"1"`
	Limit  int      `json:"limit,omitempty" default:"500" min:"1" max:"2000"`
	Mode   string   `json:"mode,omitempty" enum:"text,raw" default:"text"`
	Tags   []string `json:"tags,omitempty" maxitems:"2" default:"[\"a\"]"`
	Ratio  *float64 `json:"ratio" doc:"optional, as it is a pointer"`
}

func page() registry.Tool {
	return registry.Define(registry.Definition{Name: "read_file", Toolset: "file", Description: "Read a file."},
		func(_ context.Context, _ *registry.Env, args pageArgs) (any, error) { return args, nil })
}

func TestDefineSchema(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"the file","minLength":1,"examples":["a.txt"]},` +
		`"offset":{"type":"integer","minimum":1,"default":1},` +
		`"limit":{"type":"integer","minimum":1,"maximum":2000,"default":500},` +
		`"mode":{"type":"string","enum":["text","raw"],"default":"text"},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":2,"default":["a"]},` +
		`"ratio":{"type":"number","description":"optional, as it is a pointer"}},"required":["path"]}`
	if diff := cmp.Diff(want, string(page().Parameters)); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	tests := []struct {
		name, give      string
		status          episode.CallStatus
		shown, received string
		repaired        bool
	}{
		{name: "exact", give: `{"path":"a"}`, shown: `{"path":"a"}`,
			received: `{"path":"a","offset":1,"limit":500,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "order and spelling are kept", give: ` { "limit" : 7, "path":"\u0061" } `, shown: `{"limit":7,"path":"\u0061"}`,
			received: `{"path":"a","offset":1,"limit":7,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "integral float", give: `{"path":"a","limit":3.0,"offset":1e1}`, shown: `{"path":"a","limit":3.0,"offset":1e1}`,
			received: `{"path":"a","offset":10,"limit":3,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "null of an optional", give: `{"path":"a","limit":null,"tags":null,"ratio":null}`,
			shown:    `{"path":"a","limit":null,"tags":null,"ratio":null}`,
			received: `{"path":"a","offset":1,"limit":500,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "twice", give: `{"path":"a","limit":1,"path":"b"}`, shown: `{"path":"b","limit":1}`,
			received: `{"path":"b","offset":1,"limit":1,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "the decoder's folding of case is no way around", give: `{"path":"a","PATH":"b"}`,
			status: episode.CallInvalidArguments, shown: `{"path":"a","PATH":"b"}`},
		{name: "twice encoded", give: `"{\"path\":\"a\",\"limit\":\"5\"}"`, shown: `{"path":"a","limit":5}`,
			received: `{"path":"a","offset":1,"limit":5,"mode":"text","tags":["a"],"ratio":null}`},
		{name: "invalid UTF-8", give: "{\"path\":\"a\xff\"}", shown: `{"path":"a` + "\uFFFD" + `"}`,
			received: `{"path":"a` + "\uFFFD" + `","offset":1,"limit":500,"mode":"text","tags":["a"],"ratio":null}`},

		{name: "trailing comma", give: `{"path":"a",}`, shown: `{"path":"a"}`, repaired: true},
		{name: "missing brace", give: `{"path":"a"`, shown: `{"path":"a"}`, repaired: true},
		{name: "extra brace", give: `{"path":"a"}}`, shown: `{"path":"a"}`, repaired: true},
		{name: "raw newline", give: "{\"path\":\"a\nb\"}", shown: `{"path":"a\nb"}`, repaired: true},
		{name: "single quotes", give: `{'path': 'a'}`, shown: `{"path":"a"}`, repaired: true},
		{name: "fence", give: "```json\n{\"path\":\"a\"}\n```", shown: `{"path":"a"}`, repaired: true},
		{name: "python", give: `{"path":"a","ratio":None}`, shown: `{"path":"a","ratio":null}`, repaired: true},
		{name: "repair and coercion", give: `{"path":"a","limit":"5",}`, shown: `{"path":"a","limit":5}`, repaired: true},

		{name: "empty", give: "", status: episode.CallInvalidArguments, shown: `{}`},
		{name: "blank", give: " \n", status: episode.CallInvalidArguments, shown: `{}`},
		{name: "null", give: "null", status: episode.CallInvalidArguments, shown: `{}`},
		{name: "prose", give: "please read a.txt", status: episode.CallInvalidArguments},
		{name: "list", give: `[{"path":"a"}]`, status: episode.CallInvalidArguments},
		{name: "two objects", give: `{"path":"a"} {"path":"b"}`, status: episode.CallInvalidArguments},
		{name: "cut off", give: `{"path":"a.tx`, status: episode.CallInvalidArguments},
		{name: "cut off before a value", give: `{"path":`, status: episode.CallInvalidArguments},
		{name: "cut off behind a key", give: `{"path"`, status: episode.CallInvalidArguments},
		{name: "repaired but wrong", give: `{"limit":5,}`, status: episode.CallInvalidArguments},
		{name: "too big for the decoder", give: `{"path":"a","offset":99999999999999999999}`,
			status: episode.CallInvalidArguments, shown: `{"path":"a","offset":99999999999999999999}`},
		{name: "misspelt", give: `{"path":"a","ofset":5}`, status: episode.CallInvalidArguments, shown: `{"path":"a","ofset":5}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, session(t, registry.SessionConfig{}, page()), "read_file", tt.give)
			if tt.status == "" {
				tt.status = episode.CallOK
			}
			if got.Status != tt.status {
				t.Errorf("status = %s, want %s: %s", got.Status, tt.status, got.Result)
			}
			if string(got.Arguments) != tt.shown {
				t.Errorf("arguments = %s, want %s", got.Arguments, tt.shown)
			}
			if got.Repaired != tt.repaired || got.RawArguments != tt.give {
				t.Errorf("repaired = %v, raw = %q", got.Repaired, got.RawArguments)
			}
			if tt.received == "" {
				return
			}
			want := strings.ReplaceAll(tt.received, `,"ratio":null`, "")
			if got := strings.ReplaceAll(got.Result, `,"ratio":null`, ""); got != want {
				t.Errorf("the tool got %s, want %s", got, want)
			}
		})
	}
}

func TestInvalidArgumentsSaysEverything(t *testing.T) {
	got := call(t, session(t, registry.SessionConfig{}, page()), "read_file",
		`{"limit":"many","offset":0,"mode":"binary","tags":["a",2,"c"]}`)
	if got.Status != episode.CallInvalidArguments || got.ErrorClass != "invalid_arguments" {
		t.Errorf("status = %s, class = %s", got.Status, got.ErrorClass)
	}
	var result struct {
		Error    string
		Example  json.RawMessage
		Problems []struct{ Field, Expected, Got string }
	}
	if err := json.Unmarshal([]byte(got.Result), &result); err != nil {
		t.Fatal(err)
	}
	want := []struct{ Field, Expected, Got string }{
		{"limit", "integer from 1 to 2000", `string "many"`},
		{"offset", "integer of at least 1", "number 0"},
		{"mode", `one of "text", "raw"`, `string "binary"`},
		{"tags", "array of string of at most 2 items", "3 items"},
		{"tags[1]", "string", "number 2"},
		{"path", "string of at least 1 characters", "nothing"},
	}
	if diff := cmp.Diff(want, result.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, p := range want {
		if !strings.Contains(result.Error, p.Field+": expected "+p.Expected) {
			t.Errorf("error does not say what is wrong with %s: %s", p.Field, result.Error)
		}
	}
	if string(result.Example) != `{"limit":500,"mode":"text","offset":1,"path":"a.txt","tags":["a"]}` {
		t.Errorf("example = %s", result.Example)
	}
	again := call(t, session(t, registry.SessionConfig{}, page()), "read_file", string(result.Example))
	if again.Status != episode.CallOK {
		t.Errorf("the example is not valid: %s", again.Result)
	}
}

// Keywords that our own walk does not know are judged by the full validator.
func TestSchemaFromElsewhere(t *testing.T) {
	s := session(t, registry.SessionConfig{}, schemaTool(t, `{"type":"string","pattern":"^[a-z]+$"}`))
	if got := call(t, s, "echo", `{"x":"abc"}`); got.Status != episode.CallOK {
		t.Errorf("status = %s: %s", got.Status, got.Result)
	}
	got := call(t, s, "echo", `{"x":"A1"}`)
	if got.Status != episode.CallInvalidArguments || !strings.Contains(got.Result, `"field":"x"`) {
		t.Errorf("status = %s: %s", got.Status, got.Result)
	}
}

func TestSchemaIsRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"string"}`, `[]`, `{`, `{"type":"object","properties":{"x":{"type":"text"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"file:///etc/passwd"}}}`,
		`{"type":"object","properties":{"x":{"not":{"$ref":"file:///etc/passwd"}}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#/nowhere"}}}`,
	} {
		_, err := registry.DefineSchema(registry.Definition{Name: "x", Toolset: "x"}, json.RawMessage(schema),
			func(context.Context, *registry.Env, json.RawMessage) (any, error) { return nil, nil })
		if err == nil {
			t.Errorf("DefineSchema(%s) = nil, want an error", schema)
		} else if strings.Contains(err.Error(), "root:") {
			t.Errorf("DefineSchema(%s) read a file: %v", schema, err)
		}
	}
}

func TestDefinePanicsOnBugs(t *testing.T) {
	define := func(f func()) (message any) {
		defer func() { message = recover() }()
		f()
		return nil
	}
	d := registry.Definition{Name: "x", Toolset: "x"}
	tests := map[string]func(){
		"no json name": func() {
			registry.Define(d, func(context.Context, *registry.Env, struct{ A int }) (any, error) { return nil, nil })
		},
		"a channel": func() {
			registry.Define(d, func(context.Context, *registry.Env, struct {
				A chan int `json:"a"`
			}) (any, error) {
				return nil, nil
			})
		},
		"a default of another type": func() {
			registry.Define(d, func(context.Context, *registry.Env, struct {
				A int `json:"a,omitempty" default:"x"`
			}) (any, error) {
				return nil, nil
			})
		},
		"a required default": func() {
			registry.Define(d, func(context.Context, *registry.Env, struct {
				A int `json:"a" default:"1"`
			}) (any, error) {
				return nil, nil
			})
		},
		"a bound of a string": func() {
			registry.Define(d, func(context.Context, *registry.Env, struct {
				A string `json:"a" min:"1"`
			}) (any, error) {
				return nil, nil
			})
		},
		"a bad name": func() {
			registry.Define(registry.Definition{Name: "a b", Toolset: "x"},
				func(context.Context, *registry.Env, struct{}) (any, error) { return nil, nil })
		},
	}
	for name, f := range tests {
		if define(f) == nil {
			t.Errorf("%s: Define did not panic", name)
		}
	}
}
