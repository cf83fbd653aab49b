package tools_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools"
)

// TestBrokenCalls writes calls of real tools about real files as JSON, breaks the text in the ways in which models do,
// and reads it again: what comes out is what went in, or the call is refused.
func TestBrokenCalls(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"file", "terminal", "code_execution"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := registry.Hook{Name: "stop", Before: func(context.Context, *registry.Env, *registry.Pending) error {
		return registry.Failf("stopped", "only the arguments are looked at")
	}}
	calls := realCalls(t)
	n := 0
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ncalls\texact\trefused\twrong\tfloor\t  damage\n")
	for k, kind := range damages {
		var exact, refused, wrong int
		s := set.Session(registry.SessionConfig{Hooks: []registry.Hook{stop}})
		for i, c := range calls {
			if (i+k)%4 != 0 {
				continue // a quarter of the calls has as much to say of a damage, and the next damages have the others
			}
			text := kind.damage(c, rand.New(rand.NewPCG(hashOf(c.json()), 15)))
			want := map[string]any{}
			if err := json.Unmarshal([]byte(c.json()), &want); err != nil {
				t.Fatal(err)
			}
			if text == "" || json.Valid([]byte(text)) && !kind.valid {
				continue // the call has nothing of what is damaged
			}
			got := s.Call(t.Context(), registry.Request{ID: fmt.Sprint(i), Name: c.tool, Arguments: text, Cut: kind.cut})
			var read map[string]any
			switch {
			case got.Status == episode.CallInvalidArguments:
				refused++
			case json.Unmarshal(got.Arguments, &read) == nil && reflect.DeepEqual(read, want):
				exact++
			default:
				if wrong++; wrong <= 3 {
					t.Errorf("%s: %s was read as %s, want %s", kind.name, text, got.Arguments, c.json())
				}
			}
		}
		s.Close()
		all := exact + refused + wrong
		n += all
		share := 100 * exact / max(all, 1)
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d %%\t  %s\n", all, exact, refused, wrong, kind.floor, kind.name)
		if share < kind.floor || all < 20 {
			t.Errorf("%s: %d of %d calls are read exactly, want %d %%", kind.name, exact, all, kind.floor)
		}
	}
	w.Flush()
	t.Log(table.String())
	if n < 1000 {
		t.Errorf("%d broken calls, want 1,000", n)
	}
}

// brokenCall is a call before it is broken.
type brokenCall struct {
	tool    string
	members []argument
}

type argument struct {
	key   string
	value any // string, bool, int, []string or nil
}

// style is how a model writes an object down.
type style struct {
	key, text        func(string) string
	yes, no, nothing string
	colon, comma     string
	open, close      string
}

func plain() style {
	return style{key: jsonText, text: jsonText, yes: "true", no: "false", nothing: "null", colon: ": ", comma: ", ", open: "{", close: "}"}
}

func (c brokenCall) json() string { return c.write(plain()) }

func (c brokenCall) write(s style) string {
	var parts []string
	for _, each := range c.members {
		parts = append(parts, s.key(each.key)+s.colon+s.value(each.value))
	}
	return s.open + strings.Join(parts, s.comma) + s.close
}

func (s style) value(v any) string {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case bool:
		if v {
			return s.yes
		}
		return s.no
	case []string:
		var items []string
		for _, each := range v {
			items = append(items, s.text(each))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case nil:
		return s.nothing
	}
	return fmt.Sprint(v)
}

func jsonText(text string) string { return `"` + jsonInside(text) + `"` }

// jsonInside is a JSON string without its quotes.
func jsonInside(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	encoded := strings.TrimSuffix(b.String(), "\n")
	return encoded[1 : len(encoded)-1]
}

// realCalls makes calls of the tools from the files of this repository and of Go itself.
func realCalls(t *testing.T) []brokenCall {
	files, commands := realFiles(t), realCommands(t)
	rng := rand.New(rand.NewPCG(15, 2))
	var calls []brokenCall
	for _, f := range files {
		lines := strings.SplitAfter(f.text, "\n")
		piece := func(most int) string {
			at := rng.IntN(len(lines))
			return strings.Join(lines[at:min(len(lines), at+1+rng.IntN(most))], "")
		}
		whole := f.text
		if len(whole) > 8000 {
			whole = piece(60)
		}
		calls = append(calls, brokenCall{"write_file", []argument{{"path", f.name}, {"content", whole}}})
		old := piece(12)
		edit := brokenCall{"patch", []argument{{"path", f.name}, {"old_string", old}, {"new_string", edited(old, piece(3), rng)}}}
		switch rng.IntN(4) {
		case 0:
			edit.members = append(edit.members, argument{"replace_all", true})
		case 1:
			edit.members = slices.Insert(edit.members, 0, argument{"mode", "replace"})
		}
		calls = append(calls, edit)
		if strings.HasSuffix(f.name, ".py") {
			calls = append(calls, brokenCall{"execute_code", []argument{{"code", whole}}}, brokenCall{"execute_code", []argument{{"code", piece(15)}}})
		}
		if pattern := patternOf(piece(1), rng); pattern != "" {
			search := brokenCall{"search_files", []argument{{"pattern", pattern}, {"path", "src"}}}
			if rng.IntN(2) == 0 {
				search.members = append(search.members, argument{"file_glob", "*.{go,py}"}, argument{"limit", 20})
			}
			calls = append(calls, search)
		}
	}
	for _, command := range commands {
		c := brokenCall{"terminal", []argument{{"command", command}}}
		switch rng.IntN(5) {
		case 0:
			c.members = append(c.members, argument{"workdir", "/srv/app"})
		case 1:
			c.members = append(c.members, argument{"timeout", 60})
		case 2:
			c.members = append(c.members, argument{"background", true}, argument{"watch_patterns", []string{"listening on", "ready, \"ok\""}})
		case 3:
			c.members = slices.Insert(c.members, 0, argument{"workdir", nil}, argument{"pty", false})
		}
		calls = append(calls, c)
	}
	for i := range 50 { // what models write about their own tools
		inner := calls[i*len(calls)/50]
		content := inner.json()
		members := strings.TrimSuffix(strings.TrimPrefix(content, "{"), "}")
		calls = append(calls,
			brokenCall{"write_file", []argument{{"path", "call.json"}, {"content", content}}},
			brokenCall{"patch", []argument{{"path", "calls.py"}, {"old_string", members}, {"new_string", "**{" + members + "}"}}},
			brokenCall{"terminal", []argument{{"command", "curl -d '" + content + "' localhost/call"}}})
	}
	return slices.DeleteFunc(calls, func(c brokenCall) bool {
		return slices.ContainsFunc(c.members, func(a argument) bool { return a.value == "" })
	})
}

// edited is a text as a patch would change it.
func edited(text, more string, rng *rand.Rand) string {
	words := strings.SplitAfter(text, " ")
	words[rng.IntN(len(words))] = more
	return cmp.Or(strings.Join(words, ""), "x")
}
