package skills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/skills"
)

func manual(lines ...string) string { return "---\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n" }

const named = "name: pdf\ndescription: Reads PDF files."

func TestParse(t *testing.T) {
	const ok = ""
	tests := []struct {
		name, give      string
		strict, lenient string // a part of the error
	}{
		{"least", manual(named), ok, ok},
		{"no front matter", "# PDF\n", "no front matter", "no front matter"},
		{"empty", "", "no front matter", "no front matter"},
		{"never closed", "---\n" + named + "\n", "never closed", "never closed"},
		{"nothing in it", "---\n\n---\n", "empty", "empty"},
		{"a list", manual("- name: pdf"), "not a mapping", "not a mapping"},
		{"byte order mark", "\uFEFF" + manual(named), "byte order mark", ok},
		{"Windows lines", strings.ReplaceAll(manual(named), "\n", "\r\n"), ok, ok},
		{"duplicate keys", manual(named, "name: pdf"), "twice", "twice"},
		{"capitals", manual("name: PDF-Processing", "description: x"), "a-z", "a-z"},
		{"hyphen first", manual("name: -pdf", "description: x"), "a-z", "a-z"},
		{"hyphen last", manual("name: pdf-", "description: x"), "at its end", ok},
		{"hyphens", manual("name: pdf--x", "description: x"), "two in a row", ok},
		{"name of 64", manual("name: "+strings.Repeat("a", 64), "description: x"), "not that of its folder", ok},
		{"name of 65", manual("name: "+strings.Repeat("a", 65), "description: x"), "1 to 64", "1 to 64"},
		{"no name", manual("description: x"), "name is missing", "name is missing"},
		{"no description", manual("name: pdf"), "description is missing", "description is missing"},
		{"description of 1024", manual("name: pdf", "description: "+strings.Repeat("ü", 1024)), ok, ok},
		{"description of 1025", manual("name: pdf", "description: "+strings.Repeat("ü", 1025)), "1025 characters", "1025 characters"},
		{"not that of the folder", manual("name: other", "description: x"), "folder", ok},
		{"allowed tools as a text", manual(named, "allowed-tools: terminal read_file"), ok, ok},
		{"allowed tools as a list", manual(named, "allowed-tools: [terminal, read_file]"), ok, ok},
		{"alias", manual(named, "metadata: {a: &a [x, x], b: *a}"), "anchor", "anchor"},
		{"billion laughs", manual(named, "a: &a [x]", "b: &b [*a, *a]", "c: [*b, *b]"), "anchor", "anchor"},
		{"tab", manual(named, "metadata:\n\ttags: x"), "cannot start", "cannot start"},
		{"metadata is a number", manual(named, "metadata: {version: 1.0}"), ok, ok},
		{"not UTF-8", "---\nname: pdf\ndescription: \xff\n---\n", "UTF-8", "UTF-8"},
		{"unknown key", manual(named, "colour: red"), `"colour" is unknown`, ok},
		{"block scalar", manual("name: pdf", "description: |\n  Reads: PDF\n  files."), ok, ok},
		{"quoted colon", manual("name: pdf", `description: "Reads: PDF"`), ok, ok},
		{"colon without quotes", manual("name: pdf", "description: Use when: a PDF is there"), "mapping values", ok},
		{"compatibility", manual(named, "compatibility: "+strings.Repeat("x", 501)), "501", ok},
		{"platform", manual(named, "platforms: [amiga]"), "amiga", ok},
		{"name is a list", manual("name: [pdf]", "description: x"), "not a text", "not a text"},
		{"too long", manual(named) + strings.Repeat("x", 100_000), "100000", "100000"},
	}
	for _, tt := range tests {
		for mode, want := range map[bool]string{true: tt.strict, false: tt.lenient} {
			_, err := skills.Parse([]byte(tt.give), "pdf", mode)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, strict %v: %v, want %q", tt.name, mode, err, want)
			}
		}
	}
}

func TestParseReads(t *testing.T) {
	s, err := skills.Parse([]byte(manual("name: x", "description: Use when: it rains", "colour: red", "allowed-tools: a b", "platforms: [linux, macos]",
		"metadata:", "  version: 1.0", "  hermes: {tags: [rain, sun], related_skills: wind}", "requires_toolsets: [terminal]",
		"required_environment_variables:", "- name: RAIN_KEY", "  prompt: key", "prerequisites: {env_vars: [SUN_KEY]}")), "pdf", false)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Description, s.AllowedTools, s.Tags, s.Related, s.Requires, s.Variables, s.Body, s.Supported())
	want := "Use when: it rains[a b] [rain sun] [wind] [terminal] [RAIN_KEY SUN_KEY]Do it.true"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"a value with a colon in it is not quoted", `the field "colour" is unknown`, `name "x" is not that of its folder, "pdf"`}, s.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(manual(named, "metadata: {a: b}"))
	f.Add("---\na: &a [*a]\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, strict := range []bool{true, false} {
			if s, err := skills.Parse([]byte(text), "", strict); err == nil && (skills.CheckName(s.Name) != nil || s.Description == "") {
				t.Errorf("Parse(%q) = %+v", text, s)
			}
		}
	})
}
