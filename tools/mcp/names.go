package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
)

const (
	maxName    = 64 // of a function, with the servers of models
	keptOfName = 55 // of a longer one, before its hash
)

var notOfName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// Toolset is the toolset of a server's tools.
func Toolset(server string) string { return "mcp-" + server }

// prefix is what the names of a server's tools begin with.
func prefix(server string) string { return "mcp_" + notOfName.ReplaceAllString(server, "_") + "_" }

// Shown is the name under which a model is shown a tool, unless the server has others whose names look the same.
func Shown(server, tool string) string { return shownNames(server, []string{tool})[tool] }

// shownNames are the names under which a model is shown a server's tools, by their own. Of two that meet, the later in the order of
// their own names has a hash; an empty name has none.
func shownNames(server string, names []string) map[string]string {
	shown, taken := map[string]string{}, map[string]bool{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if name == "" {
			continue
		}
		whole := prefix(server) + notOfName.ReplaceAllString(name, "_")
		if len(whole) > maxName || taken[whole] {
			sum := sha256.Sum256([]byte(server + "\x00" + name))
			whole = whole[:min(len(whole), keptOfName)] + "_" + hex.EncodeToString(sum[:4])
		}
		taken[whole] = true
		shown[name] = whole
	}
	return shown
}
