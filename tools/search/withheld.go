package search

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/tools/page"
)

var errWithheld = errors.New("a file made for secrets")

// Question is the helper's input: the tool's arguments, and the directories whose files are withheld.
type Question struct {
	Args
	Withheld []string `json:"withheld,omitempty"`
}

// Secret reports whether files with this name are made for secrets.
func Secret(base string) bool {
	if base == ".env" || base == ".envrc" {
		return true
	}
	kind, ok := strings.CutPrefix(base, ".env.")
	return ok && !slices.Contains([]string{"example", "sample", "template", "dist", "defaults", "schema"}, path.Ext("." + kind)[1:])
}

// withheld returns which files below a root are not searched: search results end up in the same dataset as pages of files.
func withheld(root string, places []string) func(name string) bool {
	var near []string
	for _, place := range places {
		if real, err := filepath.EvalSymlinks(place); err == nil {
			place = real
		}
		if Within(place, root) || Within(root, place) {
			near = append(near, place)
		}
	}
	special := Within("/proc", root) || Within(root, "/proc")
	return func(name string) bool {
		return Secret(path.Base(name)) || special && page.Forbidden(name) ||
			slices.ContainsFunc(near, func(place string) bool { return Within(name, place) })
	}
}

// Within reports whether a path is a directory or is in it. Both are clean.
func Within(name, dir string) bool {
	return dir != "" && (name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/"))
}
