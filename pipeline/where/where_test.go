package where_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/where"
)

var names = map[string]any{"difficulty": "", "turns": 0, "reward": nil, "tags": []string{}, "meta": map[string]any{}, "rewards": map[string]any{}, "sampling": map[string]any{"top_p": nil, "seed": 0}}

func Example() {
	hard, err := where.Parse(`difficulty == "hard" and turns < 10`, map[string]any{"difficulty": "", "turns": 0}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hard.Match(map[string]any{"difficulty": "hard", "turns": 3}))
	fmt.Println(hard.Match(map[string]any{"difficulty": "easy", "turns": 3}))
	// Output:
	// true <nil>
	// false <nil>
}

func TestMatch(t *testing.T) {
	row := map[string]any{
		"difficulty": "hard", "turns": 3, "reward": 0.5, "tags": []string{"math", "long"}, "meta": map[string]any{"lang": "go", "n": 7.0},
		"sampling": map[string]any{"top_p": nil, "seed": 3},
	}
	tests := []struct {
		give string
		open bool
		want bool
	}{
		{`difficulty == "hard"`, false, true},
		{`difficulty in ["easy", "hard"] && turns > 2`, false, true},
		{`"math" in tags and not ("short" in tags)`, false, true},
		{`reward >= 0.5`, false, true},
		{`reward != nil and reward > 0.5`, false, false},
		{`meta.lang == "go" and meta.n > 5`, false, true},
		{`meta.absent == nil`, false, true},
		{`any(tags, # startsWith "lo")`, false, true},
		{`let n = turns * 2; n == 6`, false, true},
		{`difficulty matches "^h.*d$"`, false, true},
		{`absent == nil`, true, true},
		{`absent == "x"`, true, false},
		{`meta.absent > 5`, false, false},
		{`sampling.top_p == nil and sampling.seed == 3`, false, true},
		{`5 <= meta.absent`, false, false},
		{`not (absent > 5)`, true, true},
		{`any([nil, 7], # > 5)`, false, true},
		{`len(tags) == 2 ? turns == 3 : false`, false, true},
	}
	for _, tt := range tests {
		condition, err := where.Parse(tt.give, names, tt.open)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.give, err)
			continue
		}
		got, err := condition.Match(row)
		if err != nil || got != tt.want {
			t.Errorf("%q = %v, %v, want %v", tt.give, got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	tests := []struct{ give, want string }{
		{"", "is empty"},
		{"  ", `such as difficulty == "..."`},
		{"turn < 3", `unknown name turn (did you mean "turns"?) (have difficulty, meta, reward, rewards, sampling, tags, turns)`},
		{"sampling.topp == 1", `unknown name sampling.topp (did you mean "sampling.top_p"?) (have sampling.seed, sampling.top_p)`},
		{`sampling.seed == "x"`, "mismatched types"},
		{"turns <", "character"},
		{`turns == "three"`, "mismatched types"},
		{"turns", "expected bool"},
		{`difficulty + 1 == "x"`, "character"},
		{"os.Exit(1)", "unknown name os"},
	}
	for _, tt := range tests {
		_, err := where.Parse(tt.give, names, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q) = %v, want one line with %q", tt.give, err, tt.want)
		}
	}
	condition, err := where.Parse("reward > 0.5", names, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := condition.Match(map[string]any{"reward": "much"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a text compared with a number: %v, want an error on one line", err)
	}
}

func TestNames(t *testing.T) {
	rows := []map[string]any{{"turns": 3, "meta": map[string]any{}}, {"turns": 4, "meta": map[string]any{"lang": "go"}, "level": 2}}
	tests := []struct{ give, want string }{
		{`turns > 3`, ""},
		{`rewards.tests > 0`, ""}, // there are none
		{`level == 2 and meta.lang == "go"`, ""},
		{`meta["lang"] == "go"`, ""},
		{`let n = level; n == 2`, ""},
		{`meta?.lnag == "go" or get(meta, "lnag") == "go" or "lnag" in meta`, ""},
		{`levl == 2`, `no row has levl (did you mean "level"?) (have level, meta, meta.lang, turns)`},
		{`not (levl > 2 and meta["lnag"] == nil)`, `no row has levl (did you mean "level"?), meta.lnag (did you mean "meta.lang"?) (have`},
	}
	for _, tt := range tests {
		condition, err := where.Parse(tt.give, names, true)
		if err != nil {
			t.Fatal(err)
		}
		found := condition.Names()
		for _, row := range rows {
			found.Add(row)
		}
		if err := found.Err(); tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, where.ErrUnknown) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.give, err, tt.want)
		}
	}
}

// FuzzParse looks for a condition that brings the program down.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`difficulty == "hard"`, "1..100000000 == nil", "repeat(difficulty, 1000000000) == difficulty", "[1,2][5] == 3", "meta.a.b.c == 1"} {
		f.Add(seed)
	}
	row := map[string]any{"difficulty": "hard", "turns": 3, "reward": 0.5, "tags": []string{"a"}, "meta": map[string]any{}}
	f.Fuzz(func(t *testing.T, source string) {
		condition, err := where.Parse(source, names, true)
		if err == nil {
			_, _ = condition.Match(row)
			condition.Names().Add(row)
		}
	})
}
