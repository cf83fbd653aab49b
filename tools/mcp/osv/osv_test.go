package osv_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/tools/mcp/osv"
)

// TestParse holds how packages are written.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"npm:@scope/name@1.2.3-rc.1+b": "npm:@scope/name@1.2.3-rc.1+b", "pypi:My_Server.x@1!2.0": "pypi:my-server-x@1!2.0",
		"npm:name": "not a package", "npm:@scope/name": "not a package", "npm:name@latest": "not a package", "npm:name@^1.2": "not a package",
		"gem:name@1": "not a package", "name@1.2.3": "not a package", "npm:@1.2.3": "not a package",
	} {
		p, err := osv.Parse(text)
		if got := p.String() + fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("Parse(%q) = %s, %v; want %s", text, p, err, want)
		}
	}
}

// TestAffected holds which versions an advisory is about.
func TestAffected(t *testing.T) {
	npm := func(affected string) string {
		return `{"id": "MAL-1", "affected": [{"package": {"ecosystem": "npm", "name": "a"}, ` + affected + `}]}`
	}
	python := func(affected string) string {
		return `{"id": "MAL-1", "affected": [{"package": {"ecosystem": "PyPI", "name": "My.Server"}, ` + affected + `}]}`
	}
	span := func(kind, events string) string {
		return `"ranges": [{"type": "` + kind + `", "events": [` + events + `]}]`
	}
	tests := []struct {
		name, advisory, in, out string // versions that it is about, and others
	}{
		{"listed", npm(`"versions": ["1.2.0", "1.3.0"]`), "1.2.0 1.3.0", "1.2.1 1.2"},
		{"all", npm(span("SEMVER", `{"introduced": "0"}`)), "0.0.1 1.0.0-rc.1 9", ""},
		{"no word of versions", npm(`"database_specific": {}`), "1.0.0", ""},
		{"fixed", npm(span("SEMVER", `{"introduced": "1.0.0"}, {"fixed": "1.2.0"}`)), "1.0.0 1.1.9 1.2.0-rc.1 1.10.0-x", "0.9.9 1.2.0 1.10.0 1.0.0-rc.1"},
		{"last", npm(span("SEMVER", `{"introduced": "0"}, {"last_affected": "1.2.0"}`)), "0.0.1 1.2.0", "1.2.1 1.2.1-rc.1"},
		{"two spans, in any order", npm(span("SEMVER", `{"fixed": "2.1.0"}, {"introduced": "2.0.0"}, {"fixed": "1.1.0"}, {"introduced": "0"}`)), "1.0.0 2.0.5", "1.5.0 2.1.0"},
		{"listed and a span", npm(`"versions": ["3.0.0"], ` + span("SEMVER", `{"introduced": "1.0.0"}, {"fixed": "1.2.0"}`)), "3.0.0 1.1.0", "2.0.0"},
		{"commits alone", npm(`"versions": ["1.0.0"], ` + span("GIT", `{"introduced": "0"}`)), "1.0.0", "1.0.1"},
		{"python, listed", python(`"versions": ["1.0"], ` + span("ECOSYSTEM", `{"introduced": "0"}, {"fixed": "2.0"}`)), "1.0", "1.1 2.0"},
		{"python, all", python(span("ECOSYSTEM", `{"introduced": "0"}`)), "1.0 2020.1.post1", ""},
		{"python, a span that cannot be compared", python(span("ECOSYSTEM", `{"introduced": "1.0"}, {"fixed": "2.0"}`)), "0.1 1.5 3", ""},
		{"withdrawn", strings.Replace(npm(`"versions": ["1.0.0"]`), `"id"`, `"withdrawn": "2026-01-01T00:00:00Z", "id"`, 1), "", "1.0.0"},
		{"another ecosystem", strings.Replace(npm(`"versions": ["1.0.0"]`), `"npm"`, `"RubyGems"`, 1), "", "1.0.0"},
	}
	for _, tt := range tests {
		list := filepath.Join(t.TempDir(), "one.json")
		if err := os.WriteFile(list, []byte(tt.advisory), 0o644); err != nil {
			t.Fatal(err)
		}
		kind := "npm:a@"
		if strings.Contains(tt.advisory, "PyPI") {
			kind = "pypi:my_server@"
		}
		for _, version := range strings.Fields(tt.in + " " + tt.out) {
			p, err := osv.Parse(kind + version)
			if err != nil {
				t.Fatal(err)
			}
			found, err := osv.Look(t.Context(), list, []osv.Package{p})
			want := slices.Contains(strings.Fields(tt.in), version)
			if tt.name == "fixed" && version == "1.10.0-x" { // after 1.2.0
				want = false
			}
			if err != nil || len(found) != map[bool]int{true: 1}[want] {
				t.Errorf("%s: %s: %v, %v, want it affected: %v", tt.name, version, found, err, want)
			}
		}
	}
}

const (
	bad   = `{"id": "MAL-2026-7", "summary": "Malicious code in bad (npm)\nmore", "affected": [{"package": {"ecosystem": "npm", "name": "bad"}, "versions": ["1.0.0"]}]}`
	fault = `{"id": "GHSA-x", "details": "It crashes.\n\nAt times.", "affected": [{"package": {"ecosystem": "npm", "name": "bad"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}]}]}`
	named = `{"id": "GHSA-y", "aliases": ["MAL-2026-8"], "affected": [{"package": {"ecosystem": "PyPI", "name": "evil"}, "versions": ["2"]}]}`
	want  = "[package npm:bad@1.0.0 is in the advisory GHSA-x: It crashes. package npm:bad@1.0.0 is in the advisory MAL-2026-7: " +
		"Malicious code in bad (npm) package pypi:evil@2 is in the advisory GHSA-y: it has no summary] [false true true]"
)

// TestLook reads the same list in every form.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	all := "[" + bad + "," + fault + "," + named + "," + bad + "]"
	put("folder/npm/MAL-2026-7.json", bad)
	put("folder/npm/GHSA-x.json", fault)
	put("folder/PyPI/GHSA-y.json", named)
	put("folder/README.md", "not an advisory")
	archive := filepath.Join(dir, "all.zip")
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	for name, text := range map[string]string{"MAL-2026-7.json": bad, "sub/rest.json": "[" + fault + "," + named + "]"} {
		entry, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(entry, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/all.zip":
			http.ServeFile(w, r, archive)
		case "/all.json":
			io.WriteString(w, all)
		case "/api/v1/query":
			answer(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	packages := []osv.Package{{osv.NPM, "bad", "1.0.0"}, {osv.NPM, "good", "1.0.0"}, {osv.PyPI, "evil", "2"}}
	for _, list := range []string{put("all.json", all), filepath.Join(dir, "folder"), archive, server.URL + "/all.zip", server.URL + "/all.json", server.URL + "/api/"} {
		found, err := osv.Look(t.Context(), list, packages)
		var malware []bool
		for _, f := range found {
			malware = append(malware, f.Malware)
		}
		if got := fmt.Sprint(found, " ", malware); err != nil || got != want {
			t.Errorf("%s: %s, %v\nwant %s", list, got, err, want)
		}
	}
	for list, want := range map[string]string{
		put("text.json", "hello"): "invalid character", put("none.json", "{}"): "it has no id", put("broken.zip", "PK"): "zip", filepath.Join(dir, "gone"): "no such file",
		t.TempDir(): "no JSON files", server.URL: "status 404", server.URL + "/other.json": "status 404", "http://127.0.0.1:1/": "refused",
		filepath.Dir(put("wrong/a.json", "[1]")): "a.json: json",
	} {
		if found, err := osv.Look(t.Context(), list, packages); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), list) {
			t.Errorf("%s: %v, %v, want %s", list, found, err, want)
		}
	}
}

// answer is OSV's API, with one advisory on a page.
func answer(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Version string
		Package struct{ Name, Ecosystem string }
		Page    string `json:"page_token"`
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch q.Package.Ecosystem + " " + q.Package.Name + " " + q.Version + " " + q.Page {
	case "npm bad 1.0.0 ":
		io.WriteString(w, `{"vulns": [`+bad+`], "next_page_token": "two"}`)
	case "npm bad 1.0.0 two":
		io.WriteString(w, `{"vulns": [`+fault+`]}`)
	case "PyPI evil 2 ":
		io.WriteString(w, `{"vulns": [`+named+`]}`)
	default:
		io.WriteString(w, `{}`)
	}
}

// TestInstalled holds what files say of the packages in them.
func TestInstalled(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"srv/package-lock.json": {`{"lockfileVersion": 3, "packages": {"": {"name": "srv", "version": "1.0.0"}, "node_modules/a": {"version": "1.0.0"},
			"node_modules/a/node_modules/@s/b": {"version": "2.0.0"}, "node_modules/alias": {"name": "real", "version": "3.0.0"}, "node_modules/here": {"link": true, "version": "1.0.0"}}}`,
			"[npm:@s/b@2.0.0 npm:a@1.0.0 npm:real@3.0.0]"},
		"srv/node_modules/.package-lock.json":        {`{"packages": {"node_modules/a": {"version": "1.0.0"}}}`, "[npm:a@1.0.0]"},
		"old/package-lock.json":                      {`{"dependencies": {"a": {"version": "1.0.0", "dependencies": {"b": {"version": "2.0.0"}}}, "c": {"version": "file:../c"}}}`, "[npm:a@1.0.0 npm:b@2.0.0]"},
		"srv/node_modules/@s/b/package.json":         {`{"name": "@s/b", "version": "2.0.0"}`, "[npm:@s/b@2.0.0]"},
		"srv/package.json":                           {`{"name": "srv", "version": "2.0.0"}`, "[]"},
		"lib/My_Server-1.2.dist-info/METADATA":       {"Metadata-Version: 2.1\nName: My_Server\nVersion: 1.2\n\nA server: good.\n", "[pypi:my-server@1.2]"},
		"srv/requirements.txt":                       {"# pinned\nMy.Server[cli]==1.2 ; python_version > '3' \\\n    --hash=sha256:00\nloose>=1\n  other === 2.0\n", "[pypi:my-server@1.2 pypi:other@2.0]"},
		"srv/main.py":                                {"a==1", "[]"},
		"srv/node_modules/a/test/x/package.json":     {"not JSON", "[]"},
		"srv/node_modules/broken/package-lock.json":  {"not JSON", "srv/node_modules/broken/package-lock.json: invalid"},
		"srv/node_modules/wrong/npm-shrinkwrap.json": {`{"dependencies": {"a": 5}}`, "cannot unmarshal"},
	} {
		got, err := osv.Installed(name, []byte(tt.text))
		if text := fmt.Sprint(got); err == nil && text != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v, want %s", name, text, err, tt.want)
		}
	}
}
