package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/tools/mcp"
)

// TestAdvisories holds that a server with known malware is never started, that other advisories are told, and that a list which
// cannot be read is an error.
func TestAdvisories(t *testing.T) {
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
	advisory := func(id, name, version string) string {
		return `{"id": "` + id + `", "summary": "What is wrong", "affected": [{"package": {"ecosystem": "npm", "name": "` + name + `"}, "versions": ["` + version + `"]}]}`
	}
	malware, other := put("MAL-1.json", advisory("MAL-1", "left", "1.0.0")), put("GHSA-1.json", advisory("GHSA-1", "left", "1.0.0"))
	files := filepath.Dir(put("srv/package-lock.json", `{"packages": {"node_modules/left": {"version": "1.0.0"}}}`))
	broken := filepath.Dir(put("broken/package-lock.json", `{"packages": `))
	tests := []struct {
		name     string
		mode     string // of the server, which ends at once with another error
		give     mcp.Server
		lists    []string
		want     string // in the error; "" for none
		warnings string
	}{
		{"declared", "exits", mcp.Server{Packages: []string{"npm:left@1.0.0"}}, []string{other, malware},
			"mcp server fake is refused: package npm:left@1.0.0 is in the advisory MAL-1: What is wrong: it is known malware", ""},
		{"in its files", "exits", mcp.Server{Files: []string{files}}, []string{malware}, "npm:left@1.0.0 is in the advisory MAL-1", ""},
		{"another version", "plain", mcp.Server{Packages: []string{"npm:left@1.0.1"}}, []string{malware}, "", ""},
		{"no malware", "plain", mcp.Server{Files: []string{files}}, []string{other, other}, "", "mcp server fake: package npm:left@1.0.0 is in the advisory GHSA-1: What is wrong"},
		{"no list", "exits", mcp.Server{Files: []string{files}}, []string{filepath.Join(dir, "gone")}, "mcp: advisories: " + dir + "/gone: ", ""},
		{"a lock file that cannot be read", "exits", mcp.Server{Files: []string{broken}}, nil, "mcp server fake: files: broken/package-lock.json: ", ""},
		{"no version", "exits", mcp.Server{Packages: []string{"npm:left"}}, nil, `packages: "npm:left" is not a package with its version`, ""},
	}
	b := backend(t, "local")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := faulty(tt.mode)
			server.Files, server.Packages = tt.give.Files, tt.give.Packages
			settings := one(server)
			settings.Advisories = tt.lists
			set, err := mcp.Open(t.Context(), settings, options(b))
			if err == nil {
				defer set.Close()
			}
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "licence")):
				t.Errorf("%v, want %s", err, tt.want)
			case tt.want == "" && (err != nil || strings.Join(set.Warnings(), "\n") != tt.warnings):
				t.Errorf("%v, warnings %q, want %q", err, set.Warnings(), tt.warnings)
			}
		})
	}
}
