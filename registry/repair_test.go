package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// everything takes what comes, so that what a text was read as is seen.
func everything(t *testing.T, parameters string) *registry.Session {
	t.Helper()
	tool, err := registry.DefineSchema(registry.Definition{Name: "echo", Toolset: "test"}, json.RawMessage(parameters),
		func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
			return arguments, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return session(t, registry.SessionConfig{}, tool)
}

func TestRepair(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"a backslash that escapes nothing", `{"re":"\d+\.\w"}`, `{"re":"\\d+\\.\\w"}`},
		{"a backslash before a line's end", "{\"c\":\"a \\\nb\"}", `{"c":"a \\\nb"}`},
		{"names without quotes", `{s: "a", n: 2, t-x: 'b'}`, `{"s":"a","n":2,"t-x":"b"}`},
		{"two kinds of quotes", `{"s":"a",'n':2,"t":"it's"}`, `{"s":"a","n":2,"t":"it's"}`},
		{"an apostrophe in single quotes", `{'s':'x','t':'it\'s "it"'}`, `{"s":"x","t":"it's \"it\""}`},
		{"curly quotes", `{“s”:“a”, ‘t’:‘b’}`, `{"s":"a","t":"b"}`},
		{"long quotes", `{"s":"""a "b" c"""}`, `{"s":"a \"b\" c"}`},
		{"an empty string", `{"s":"","t":'',}`, `{"s":"","t":""}`},
		{"raw control characters", "{\"s\":\"a\nb\tc\x01\"}", `{"s":"a\nb\tc\u0001"}`},
		{"literals of Python", `{"a":True,"b":False,"c":None}`, `{"a":true,"b":false,"c":null}`},
		{"numbers", `{"a":+2,"c":.5,"d":9007199254740993,}`, `{"a":2,"c":0.5,"d":9007199254740993}`},
		{"an end within a text whose quotes are not escaped", `{"c": "wanted=" `, ""},
		{"a number that may be octal", `{"a":0644}`, ""},
		{"missing commas", `{"a":1 "b":"x" "m":[{"k":1}{"k":2}]}`, `{"a":1,"b":"x","m":[{"k":1},{"k":2}]}`},
		{"a missing comma, or a text of two parts", `{"l":["y" "z"]}`, ""},
		{"trailing commas", `{"l":[1,2,],"m":{"k":1,},}`, `{"l":[1,2],"m":{"k":1}}`},
		{"comments", "{\"a\":1, // one\n/* two */\"b\":\"http://x\"}", `{"a":1,"b":"http://x"}`},
		{"comments that may hide something", "{\"a\":1, // \"b\":2,\n\"c\":3}", ""},
		{"missing brackets", `{"l":[{"k":["1","2"`, `{"l":[{"k":["1","2"]}]}`},
		{"missing brackets behind half a number", `{"l":[{"k":[1,2`, ""},
		{"crossed brackets", `{"l":["a","b"}`, `{"l":["a","b"]}`},
		{"further brackets", `{"a":"b"}]}`, `{"a":"b"}`},
		{"a further quote", `{"a":"b"}"`, ""},
		{"words around it", "Here: <call>{\"a\":\"b\"}</call> I hope it's right", `{"a":"b"}`},
		{"escaped once more", `{\n \"a\": \"x\\ny\"\n}`, `{"a":"x\ny"}`},
		{"a word", "{\"a\":b.txt // c\n}", `{"a":"b.txt"}`},
		{"two words", `{"a":b c}`, ""},
		{"a name twice", `{"a":1,"a":2,}`, ""},
		{"a name twice within", `{"o":{"a":1,"a":2},}`, ""},
		{"order", `{"z":1,"a":2,}`, `{"z":1,"a":2}`},

		{"a \\d beside a \\n", `{"re":"\d\n"}`, ""},
		{"a \\n beside a line's end", "{\"c\":\"printf 'a\\n'\nls\"}", ""},
		{"a \\x, which Python knows", `{'re':'\x1b'}`, ""},
		{"an apostrophe of a shell", `{"c":"echo it\'s"}`, ""},
		{"escaped apostrophes", `{"c":"echo \'it is\'"}`, `{"c":"echo 'it is'"}`},
		{"one apostrophe that is escaped", `{"c":"'it'\''s'"}`, `{"c":"'it'\\''s'"}`},
		{"quotes without names to go by", `{"s":"say "hi"","t":"x"}`, ""},

		{"ends in a string", `{"a":"b","c":"half`, ""},
		{"ends in a word", `{"a":hal`, ""},
		{"ends in a number", `{"a":12.`, ""},
		{"ends behind a name", `{"a":1,"b"`, ""},
		{"ends behind a colon", `{"a":1,"b":`, ""},
		{"ends behind a comma", `{"a":"b",`, ""},
		{"ends at once", `{`, ""},
		{"no value", `{"a":,"b":1}`, ""},
		{"no colon", `{"a" "b"}`, ""},
		{"two objects", `{"a":"b"}{"a":"c"}`, ""},
		{"more behind the end", `{"a":"b"}, "c":"d"}`, ""},
		{"a list", `[{"a":"b"},]`, ""},
		{"nested without end", strings.Repeat(`{"a":`, 1000) + "1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, everything(t, `{"type":"object"}`), "echo", tt.give)
			if tt.want == "" {
				if got.Status != episode.CallInvalidArguments || got.Arguments != nil {
					t.Errorf("%s became %s: %s", tt.give, got.Arguments, got.Status)
				}
				return
			}
			if string(got.Arguments) != tt.want || !got.Repaired || got.RawArguments != tt.give {
				t.Errorf("arguments = %s, want %s (repaired: %v): %s", got.Arguments, tt.want, got.Repaired, got.Result)
			}
		})
	}
}

// TestRepairOfQuotes is about quotes inside of texts that are not escaped: the names that the schema knows tell where a
// text ends. What may be read in two ways is refused, in words that say what to write.
func TestRepairOfQuotes(t *testing.T) {
	schema := `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"dir":{"type":"string"},
		"n":{"type":"integer"}},"required":["path"]}`
	const escape, whole, alone = "write a quote as", "is whole", "a call of its own"
	tests := []struct{ name, give, want, says string }{
		{"quotes", `{"path":"a","content":"say "hi""}`, `{"path":"a","content":"say \"hi\""}`, ""},
		{"quotes, and another argument", `{"path":"say "hi"","n":2,"dir":"<a b="c">"}`, `{"path":"say \"hi\"","n":2,"dir":"<a b=\"c\">"}`, ""},
		{"quotes and commas", `{"path":"printf("%s", "x");"}`, `{"path":"printf(\"%s\", \"x\");"}`, ""},
		{"an object", `{"path":"a","content":"{"name": "x", "v": ["y", "z"]}"}`, `{"path":"a","content":"{\"name\": \"x\", \"v\": [\"y\", \"z\"]}"}`, ""},
		{"lines", `{"path":"a","content":"if "x":\n  f("\\n")\n"}`, `{"path":"a","content":"if \"x\":\n  f(\"\\n\")\n"}`, ""},
		{"single quotes", `{'path':'it's 'x'','dir':'b'}`, `{"path":"it's 'x'","dir":"b"}`, ""},
		{"a fence", "```json\n{\"path\":\"a \"b\"\"}\n```", `{"path":"a \"b\""}`, ""},

		{"an object with a name of the tool's", `{"path":"p.json","content":"{"name": "x", "path": "other.json"}"}`, "", escape},
		{"and one that was not given", `{"path":"curl -d '{"a": "b", "dir": "c"}'"}`, "", escape},
		{"no closing quote", `{"path":"a,"dir":"b"}`, "", escape},
		{"no closing quote, the last", `{"path":"a","content":"say "hi}`, "", escape},
		{"no closing bracket", `{"path":"a","content":"say "hi" to`, "", escape},
		{"two calls", `{"path":"a"},{"path":"b"}`, "", alone},
		{"two calls with quotes", `{"path":"a "x""},{"path":"b"}`, "", escape},
		{"begun twice", `{"path":{"path":"a"}`, "", ""},
		{"a line's end or a backslash", `{"path":"printf "a\n""}`, "", escape},
		{"a shell's quote that ends within a text", `{"path":"curl -d '{"a": "#!/bin/bash\n\nhdr='\n// x\n\n'\n\nconvert() {\n\t(echo \"$hdr\") | gofmt\n}\nconvert a >b\n\n"}' b"}`, "", escape},
		{"some escaped", `{"path":"echo "a \"b\" c""}`, "", escape},
		{"a name that the tool does not have", `{"path":"a","mode":"x",}`, "", `without \"mode\"`},
		{"and quotes", `{"path":"a","mode":"x "y" z"}`, "", escape},
		{"a name twice", `{"path":"a","path":"b",}`, "", `with \"path\" once`},
		{"ends", `{"path":"a","content":"b`, "", whole},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, everything(t, schema), "echo", tt.give)
			if tt.want != "" && (got.Status != episode.CallOK || string(got.Arguments) != tt.want || !got.Repaired) {
				t.Errorf("%s became %s, want %s: %s", tt.give, got.Arguments, tt.want, got.Result)
			}
			said := strings.ReplaceAll(got.Result, `\\\"`, `\"`)
			if tt.want == "" && (got.Status != episode.CallInvalidArguments || got.Arguments != nil || !strings.Contains(said, tt.says)) {
				t.Errorf("%s became %s (%s), want %q in: %s", tt.give, got.Arguments, got.Status, tt.says, got.Result)
			}
		})
	}
}

// The time that repair takes grows with the text and not with its square.
func TestRepairOfHostileText(t *testing.T) {
	const n = 60_000
	for _, text := range []string{
		strings.Repeat("{", n), `{"s":` + strings.Repeat("[", n), `{"s":"` + strings.Repeat(`a" `, n) + `"}`,
		`{"s":"` + strings.Repeat(`","`, n) + `",}`, `{"s":"x" ` + strings.Repeat("}", n) + `"`, `{` + strings.Repeat(`"k":1,`, n) + `}`,
		`{"s":"` + strings.Repeat(`\x`, n) + `"}`, `{"s":"a" ` + strings.Repeat(`"`, n), `{"s":"a"` + strings.Repeat("/*", n),
		`{"s":"` + strings.Repeat(`"`+strings.Repeat(" ", 100)+"}", n/50), `{` + strings.Repeat(`\"`, n),
		`{"s":'` + strings.Repeat(`'}x`, 4*n), `{"s":"` + strings.Repeat(`"}x`, 4*n) + strings.Repeat("}", 4*n),
		`{"s":"x` + strings.Repeat(`"s" : `, n), `{"s":"` + strings.Repeat(`" , "k":`, n) + `"}`, `{` + distinct(n) + `}`,
		`{"s":['a'` + strings.Repeat(`]}'a'`, 4*n), `{"s":"` + strings.Repeat(`"]}`, 4*n) + strings.Repeat("` ", 4*n),
	} {
		for _, schema := range []string{`{"type":"object"}`, `{"type":"object","properties":{"s":{}}}`} {
			got := call(t, everything(t, schema), "echo", text)
			if got.Status == episode.CallOK != got.Repaired {
				t.Errorf("%.40s: %s, repaired %v", text, got.Status, got.Repaired)
			}
		}
	}
}

// distinct are so many members, with a comma too many.
func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return b.String()
}

// TestNestedText is about lists and objects that come as text.
func TestNestedText(t *testing.T) {
	schema := `{"type":"object","properties":{"o":{"type":"object"},"ids":{"type":"array","items":{"type":"integer"}},
		"words":{"type":"array","items":{"type":"string"}},"any":{"type":"array"},
		"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id"]}}}}`
	tests := []struct{ name, give, want string }{
		{"object in Python", `{"o":"{'k': None}"}`, `{"o":{"k":null}}`},
		{"rows in Python", `{"rows":"[{'id': 1, 'n': '2'}]"}`, `{"rows":[{"id":"1","n":2}]}`},
		{"trailing comma", `{"ids":"[1,2,]"}`, `{"ids":[1,2]}`},
		{"a list of text stays text", `{"words":"[a, b]"}`, `{"words":["[a, b]"]}`},
		{"a list of anything stays text", `{"any":"[broken"}`, `{"any":["[broken"]}`},
		{"an id that was counted", `{"rows":[{"id":9007199254740993}]}`, `{"rows":[{"id":"9007199254740993"}]}`},
		{"no id", `{"words":[1]}`, ""},
		{"what does not fit", `{"rows":"[{'n': 1}]"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, everything(t, schema), "echo", tt.give)
			if (got.Status == episode.CallOK) != (tt.want != "") || tt.want != "" && (string(got.Arguments) != tt.want || len(got.Coerced) == 0) {
				t.Errorf("arguments = %s, want %s; coerced %q: %s", got.Arguments, tt.want, got.Coerced, got.Result)
			}
		})
	}
}

// TestProblemsAreWhereTheyAre is about the messages for what other schemas say.
func TestProblemsAreWhereTheyAre(t *testing.T) {
	s := everything(t, `{"type":"object","properties":{"p":{"type":"string","pattern":"^a+$"},"c":{"const":5},"r":{"$ref":"#/$defs/R"},
		"u":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}},"additionalProperties":false,
		"$defs":{"R":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/R"}},"required":["v"]}}}`)
	tests := []struct{ give, want string }{
		{`{"p":"b"}`, `p: expected string that matches ^a+$, got string "b"`},
		{`{"c":6}`, `c: expected the value 5, got number 6`},
		{`{"r":{"v":"x"}}`, `r.v: expected integer, got string "x"`},
		{`{"r":{"v":1,"next":{}}}`, `r.next.v: expected integer, got nothing`},
		{`{"u":[1,"x"]}`, `u[1]: expected integer, got string "x"`},
		{`{"zz":1}`, `zz: expected one of c, p, r, u, got an argument that the tool does not have`},
		{strings.Repeat(`{"zz":`, 600) + "1" + strings.Repeat("}", 600), `at most 500 levels`},
	}
	for _, tt := range tests {
		var result struct {
			Error   string          `json:"error"`
			Example json.RawMessage `json:"example"`
		}
		got := call(t, s, "echo", tt.give)
		if err := json.Unmarshal([]byte(got.Result), &result); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(result.Error, tt.want) || !strings.HasPrefix(string(result.Example), "{") {
			t.Errorf("%.40s: %s, want %s; example %s", tt.give, result.Error, tt.want, result.Example)
		}
	}
}
