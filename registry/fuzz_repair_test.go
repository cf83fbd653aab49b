package registry_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// FuzzRepair feeds text that is not JSON: what comes out of repair fits the schema, is recorded as repaired, and no text
// is ever replaced by {}.
func FuzzRepair(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a",}`, `{"path":"a"`, `{'path':'a'}`, "{\"path\":\"a\nb\"}", `{"path":"a"}}`, "```json\n{\"path\":\"a\"}\n```",
		`{path: "a", limit: 5}`, `{"path":"a`, `{"path":`, `{"path":"a" "limit":5}`, `please`, `{{{{`, `}`, `[`, `{"path":None}`, `{"a":1}{"b":2}`,
		"{\"path\":\"\x00\"}", `{"path":"a"//b`, `{"path":"\`, "\f{}", strings.Repeat(`{"path":`, 50),
		`{"path":"say "a"","mode":"b"}`, `{"path":"{"mode": "x", "path": "y"}"}`, `{'path':'it's'}`, `{"path":"a\d\n"}`, `{"path":"a","x":1,}`,
	} {
		f.Add(seed)
	}
	echo := registry.Define(registry.Definition{Name: "echo", Toolset: "test"},
		func(_ context.Context, _ *registry.Env, args fuzzArgs) (any, error) { return args, nil })
	r, err := registry.New(echo)
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
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: "echo", Arguments: raw})
		text := strings.TrimSpace(raw) // of more white space than JSON has
		valid := json.Valid([]byte(strings.ToValidUTF8(text, "\uFFFD"))) || text == ""
		if got.Repaired == valid && (got.Status == episode.CallOK || valid) {
			t.Errorf("repaired = %v of %q: %s", got.Repaired, raw, got.Status)
		}
		if got.Repaired && (got.Status == episode.CallOK) != (got.Arguments != nil) {
			t.Errorf("status = %s, arguments = %s of %q", got.Status, got.Arguments, raw)
		}
		if !valid && string(got.Arguments) == "{}" {
			t.Errorf("%q became {}", raw)
		}
		if got.Status != episode.CallOK {
			return
		}
		var named map[string]json.RawMessage
		if err := json.Unmarshal(got.Arguments, &named); err != nil {
			t.Fatal(err)
		}
		for name := range named {
			if got.Repaired && !slices.Contains([]string{"path", "limit", "ratio", "on", "mode", "ids", "env", "any"}, name) {
				t.Errorf("%q got the name %q", raw, name)
			}
		}
		// What was understood is understood again, as it stands.
		again := s.Call(t.Context(), registry.Request{ID: "2", Name: "echo", Arguments: string(got.Arguments)})
		if again.Status != episode.CallOK || again.Result != got.Result || len(again.Coerced) > 0 || again.Repaired {
			t.Errorf("%s: %s, coerced %q: %s, first %s", got.Arguments, again.Status, again.Coerced, again.Result, got.Result)
		}
	})
}

// FuzzRepairKeeps breaks what is around the arguments: what stands in them is read as it was written, whatever it is.
func FuzzRepairKeeps(f *testing.F) {
	f.Add("a.txt", "b")
	f.Add(`{"name": "x", "path": "y"}`, "'`\\n\\d\n\t\\\\")
	f.Add("// \"", `"}, {"path": "`)
	breaks := []func(path, content string) string{
		func(path, content string) string { return `{"path":` + path + `,"content":` + content + `,}` },
		func(path, content string) string { return `{"path":` + path + `,"content":` + content },
		func(path, content string) string { return `{"path":` + path + `  "content":` + content + `}}` },
		func(path, content string) string { return `{path: ` + path + `, 'content': ` + content + `}` },
		func(path, content string) string {
			return "```json\n{\"path\":" + path + ",\"content\":" + content + "}\n```\nDone."
		},
		func(path, content string) string {
			return "{ // the path\n\"path\":" + path + ", /* and */\"content\":" + content + "\n# end\n}"
		},
	}
	f.Fuzz(func(t *testing.T, path, content string) {
		if !utf8.ValidString(path) || !utf8.ValidString(content) {
			return
		}
		s := everything(t, `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`)
		var texts [2]string
		for i, each := range []string{path, content} {
			text, err := json.Marshal(each)
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = string(text)
		}
		for _, damage := range breaks {
			raw := damage(texts[0], texts[1])
			got := s.Call(t.Context(), registry.Request{ID: "1", Name: "echo", Arguments: raw})
			var read struct{ Path, Content string }
			if err := json.Unmarshal(got.Arguments, &read); err != nil || read.Path != path || read.Content != content || !got.Repaired {
				t.Errorf("%s became %s: %s", raw, got.Arguments, got.Result)
			}
		}
	})
}

// FuzzCoerce feeds one value to many types. Coercion is done once: its outcome is left alone. It changes nothing that it
// does not record, and invents no digit.
func FuzzCoerce(f *testing.F) {
	for _, seed := range []string{
		`"42"`, `" 1e3 "`, `"1_000"`, `"9007199254740993"`, `"-0"`, `"1e400"`, `"nan"`, `"TRUE"`, `"null"`, `"[1,\"2\"]"`, `"{\"n\":\"1\"}"`, `[["1"]]`,
		`{"n":"1","on":"false"}`, `3.0`, `null`, `"0x10"`, `""`, `1e999999`, `"\u0031"`, `{"n":["1"]}`, `"\udddc3cc$c"`, `{"\ud800":"\udddc"}`,
	} {
		f.Add(seed)
	}
	schemas := []string{
		`{"type":"integer"}`, `{"type":"number"}`, `{"type":"boolean"}`, `{"type":"array","items":{"type":"integer"}}`,
		`{"type":"object","properties":{"n":{"type":"integer"},"on":{"type":"boolean"}}}`, `{"type":["integer","string"]}`,
		`{"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"null"}]}`, `{"type":"string"}`, `{}`,
		`{"type":"object","additionalProperties":{"type":["integer","null"]}}`,
	}
	var sets []*registry.Toolset
	for _, schema := range schemas {
		tool, err := registry.DefineSchema(registry.Definition{Name: "echo", Toolset: "test"},
			json.RawMessage(`{"type":"object","properties":{"x":`+schema+`}}`),
			func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
				return arguments, nil
			})
		if err != nil {
			f.Fatal(err)
		}
		r, err := registry.New(tool)
		if err != nil {
			f.Fatal(err)
		}
		set, err := r.Select(nil, nil)
		if err != nil {
			f.Fatal(err)
		}
		sets = append(sets, set)
	}
	f.Fuzz(func(t *testing.T, x string) {
		if !json.Valid([]byte(x)) || !utf8.ValidString(x) {
			return
		}
		raw := `{"x":` + x + `}`
		for i, set := range sets {
			s := set.Session(registry.SessionConfig{})
			got := s.Call(t.Context(), registry.Request{ID: "1", Name: "echo", Arguments: raw})
			if len(got.Coerced) == 0 && !sameValue(raw, string(got.Arguments)) {
				t.Errorf("%s: %s became %s without a word", schemas[i], raw, got.Arguments)
			}
			halved := func(path string) bool { return strings.HasPrefix(path, "surrogate:x") } // flagged each time, and left
			got.Coerced = slices.DeleteFunc(got.Coerced, halved)
			if slices.ContainsFunc(got.Coerced, func(path string) bool { return !strings.HasPrefix(path, "x") }) {
				t.Errorf("%s of %s: coerced %q", schemas[i], raw, got.Coerced)
			}
			if got.Status == episode.CallOK {
				again := s.Call(t.Context(), registry.Request{ID: "2", Name: "echo", Arguments: string(got.Arguments)})
				if len(slices.DeleteFunc(again.Coerced, halved)) > 0 || string(again.Arguments) != string(got.Arguments) {
					t.Errorf("%s: %s became %s, and then %s", schemas[i], raw, got.Arguments, again.Arguments)
				}
			}
			if i < 2 && got.Status == episode.CallOK && digits(string(got.Arguments)) != "" && !strings.ContainsAny(x, `eE\`) &&
				!strings.HasPrefix(digits(x), digits(string(got.Arguments))) {
				t.Errorf("%s: %s became %s", schemas[i], raw, got.Arguments)
			}
			s.Close()
		}
	})
}

// sameValue compares as decoders see it.
func sameValue(a, b string) bool {
	var texts [2]string
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var doc any
		if err := d.Decode(&doc); err != nil {
			return false
		}
		out, err := json.Marshal(doc)
		if err != nil {
			return false
		}
		texts[i] = string(out)
	}
	return texts[0] == texts[1]
}

// digits are those of a number without leading zeros.
func digits(text string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text), "0")
}
