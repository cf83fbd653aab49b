package distributions_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/distributions"
)

// TestReference compares the embedded data with the table of the specification.
func TestReference(t *testing.T) {
	columns := []string{"web", "vision", "image_gen", "terminal", "file", "moa", "browser"}
	table := []struct {
		name string
		row  [7]float64 // 0: not in the distribution
	}{
		{"default", [7]float64{100, 100, 100, 100, 100, 100, 100}},
		{"image_gen", [7]float64{55, 90, 90, 45, 0, 10, 0}},
		{"research", [7]float64{90, 50, 0, 10, 0, 40, 70}},
		{"science", [7]float64{94, 65, 15, 94, 94, 10, 50}},
		{"development", [7]float64{30, 10, 0, 80, 80, 60, 0}},
		{"safe", [7]float64{80, 60, 60, 0, 0, 50, 70}},
		{"balanced", [7]float64{50, 50, 50, 50, 50, 50, 50}},
		{"minimal", [7]float64{100, 0, 0, 0, 0, 0, 0}},
		{"terminal_only", [7]float64{0, 0, 0, 100, 100, 0, 0}},
		{"terminal_web", [7]float64{100, 0, 0, 100, 100, 0, 0}},
		{"creative", [7]float64{30, 90, 90, 0, 0, 0, 0}},
		{"reasoning", [7]float64{30, 0, 0, 20, 0, 90, 0}},
		{"browser_use", [7]float64{80, 70, 0, 0, 0, 0, 100}},
		{"browser_only", [7]float64{0, 0, 0, 0, 0, 0, 100}},
		{"browser_tasks", [7]float64{0, 12, 0, 15, 0, 0, 97}},
		{"terminal_tasks", [7]float64{97, 50, 10, 97, 97, 0, 75}},
		{"mixed_tasks", [7]float64{35, 15, 15, 92, 92, 0, 92}},
	}
	var names []string
	for _, tt := range table {
		names = append(names, tt.name)
		d := get(t, tt.name)
		var want []distributions.Share
		for i, percent := range tt.row {
			if percent > 0 {
				want = append(want, distributions.Share{Toolset: columns[i], Percent: percent})
			}
		}
		if diff := cmp.Diff(want, d.Toolsets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if err := d.Validate(nil); err != nil || d.Description == "" {
			t.Errorf("%s: Validate = %v, description %q", tt.name, err, d.Description)
		}
	}
	if diff := cmp.Diff(names, distributions.Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	got, err := distributions.Parse([]byte("name: mine\ndescription: Mostly a shell.\ntoolsets: {terminal: 90, file: 60.5, code: 100}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := distributions.Distribution{Name: "mine", Description: "Mostly a shell.", Toolsets: []distributions.Share{
		{Toolset: "terminal", Percent: 90}, {Toolset: "file", Percent: 60.5}, {Toolset: "code", Percent: 100},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		give string
		want []string // all of them in the error
	}{
		{"empty", "", []string{"empty"}},
		{"a list", "[]", []string{"mapping with the keys name"}},
		{"unknown key", "name: d\ntoolset: {a: 1}\ntoolsets: {a: 1}", []string{`unknown key "toolset"`, "line 2", "name, description, toolsets"}},
		{"key twice", "name: d\nname: e\ntoolsets: {a: 1}", []string{"name is given twice"}},
		{"nothing in it", "description: x", []string{"no name", "no toolsets"}},
		{"percentages", "name: d\ntoolsets: {a: 0, b: 100.5, c: -1, d: .nan, e: ~}", []string{`"a" has 0 %`, `"b" has 100.5 %`, `"c" has -1 %`, `"d" has NaN %`, `"e" has 0 %`}},
		{"not a number", "name: d\ntoolsets: {a: often, b: [1]}", []string{`toolset a: "often"`, "toolset b"}},
		{"toolset twice", "name: d\ntoolsets: {a: 1, a: 2}", []string{`"a" is given twice`}},
		{"list of toolsets", "name: d\ntoolsets: [a]", []string{"mapping from toolset to percentage"}},
		{"two documents", "name: d\ntoolsets: {a: 1}\n---\nname: e", []string{"second document"}},
		{"not YAML", "name: [", []string{"decode YAML"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := distributions.Parse([]byte(tt.give))
			wantError(t, err, tt.want...)
		})
	}
}

func TestValidateNamesEveryUnknownToolset(t *testing.T) {
	d := distributions.Distribution{Name: "d", Toolsets: []distributions.Share{
		{Toolset: "terminl", Percent: 50}, {Toolset: "file", Percent: 101}, {Toolset: "holodeck", Percent: 5},
	}}
	err := d.Validate(func(toolset string) error {
		if toolset == "file" {
			return nil
		}
		return errors.New("no " + toolset)
	})
	wantError(t, err, `distribution "d": no terminl`, `"file" has 101 %`, `distribution "d": no holodeck`)
}

func TestGetAndResolve(t *testing.T) {
	_, err := distributions.Get("defalut")
	wantError(t, err, `unknown distribution "defalut" (have default, image_gen, research`)

	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("name: mine\ntoolsets: {terminal: 90}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for nameOrPath, want := range map[string]string{"safe": "safe", path: "mine"} {
		if d, err := distributions.Resolve(nameOrPath); err != nil || d.Name != want {
			t.Errorf("Resolve(%q) = %q, %v, want %q", nameOrPath, d.Name, err, want)
		}
	}
	_, err = distributions.Resolve("missing.yaml")
	wantError(t, err, "read distribution", "missing.yaml")

	// What a caller does to its distribution stays there.
	d := get(t, "safe")
	d.Toolsets[0].Percent = 1
	if got := get(t, "safe").Toolsets[0].Percent; got != 80 {
		t.Errorf("Get(safe) after a change by another caller has web %v, want 80", got)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("name: mine\ntoolsets: {terminal: 90, file: 60.5}\n")
	f.Add("name: &a x\ntoolsets: {*a : 1, <<: {b: 2}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := distributions.Parse([]byte(text))
		if err == nil && d.Validate(nil) != nil {
			t.Errorf("Parse took what Validate refuses: %v", d.Validate(nil))
		}
	})
}
