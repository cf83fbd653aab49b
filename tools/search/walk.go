package search

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file to search: its real path, its path below the searched directory and the path to show.
type entry struct{ name, inner, shown string }

// walker visits the regular files below a directory in the order of their names, component by component, without hidden and
// ignored ones. It follows a link that is the searched directory, and no others.
type walker struct {
	root, shown string
	globs       []override
	skipped     int // directories that could not be read
	visit       func(entry)

	places []string // directories whose files are not visited, like files made for secrets
	all    bool     // visit them all the same: only names are wanted
	secret func(name string) bool
	kept   int // how many were not visited
}

// walk visits the files of a directory, or a file.
func (w *walker) walk(path string) error {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	w.root, w.shown, w.secret = root, path, withheld(root, w.places)
	w.globs = slices.DeleteFunc(w.globs, func(g override) bool { return g.any })
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "search", Path: path, Err: errNotRegular}
		}
		if !w.all && w.secret(root) {
			return errWithheld
		}
		if e := (entry{root, filepath.Base(root), path}); w.asked(e.inner, e.shown, false) != ignored {
			w.visit(e)
		}
		return nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	w.directory("", entries, above(root))
	return nil
}

// directory visits the entries of a directory, whose path below the root is inner.
func (w *walker) directory(inner string, entries []fs.DirEntry, parent *level) {
	l := parent.below(filepath.Join(w.root, inner), func(name string) bool { return holds(entries, name) })
	for _, each := range entries {
		dir := each.IsDir()
		if !dir && !each.Type().IsRegular() {
			continue
		}
		e := w.entry(inner, each.Name())
		if w.leftOut(e, each.Name(), dir, l) {
			continue
		}
		if !dir {
			if !w.all && w.secret(e.name) {
				w.kept++
			} else {
				w.visit(e)
			}
			continue
		}
		below, err := os.ReadDir(e.name)
		if err != nil {
			w.skipped++
		}
		w.directory(e.inner, below, l)
	}
}

func (w *walker) entry(inner, name string) entry {
	if inner != "" {
		name = inner + "/" + name
	}
	e := entry{inner: name, name: strings.TrimSuffix(w.root, "/") + "/" + name, shown: name}
	if w.shown != "." {
		e.shown = filepath.Join(w.shown, name)
	}
	return e
}

// holds looks up a name in a directory's entries, which are sorted.
func holds(entries []fs.DirEntry, name string) bool {
	_, found := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return found
}

// leftOut decides by the requested globs first, then by the ignore files, then by the dot of hidden names.
func (w *walker) leftOut(e entry, base string, dir bool, l *level) bool {
	switch w.asked(e.inner, e.shown, dir) {
	case ignored:
		return true
	case wanted:
		return false
	}
	switch l.decide(e.name, dir) {
	case ignored:
		return true
	case wanted:
		return false
	}
	return base[0] == '.'
}

// override is a requested glob.
type override struct {
	glob
	negate bool
	part   bool // matches a part of the name
	fold   bool // lower case, as are the names to match
	any    bool // matches everything
}

// everything are the globs that match all names. They do not match hidden files, although they would literally: * is not meant
// to find the objects of a repository.
var everything = []string{"", "*", "**", "**/*", "./**", "./*"}

func newOverride(text string) override {
	rest, negate := strings.CutPrefix(text, "!")
	rest = strings.TrimPrefix(rest, "./")
	if negate {
		rest = strings.TrimSuffix(rest, "/")
	}
	return override{glob: newGlob(rest), negate: negate, any: slices.Contains(everything, text)}
}

// newNamePart returns an override for a text, which is a glob only if it looks like one.
func newNamePart(text string, fold bool) override {
	if fold {
		text = strings.ToLower(text)
	}
	o := override{glob: glob{text: text}, part: true}
	if strings.ContainsAny(text, "*?[{/") {
		o = newOverride(text)
	}
	o.fold = fold
	return o
}

// asked returns the globs' verdict on a path; a file must match all of them. A glob with a name in it also finds hidden and
// ignored files; one that excludes a directory excludes its entries.
func (w *walker) asked(inner, shown string, dir bool) verdict {
	all := undecided
	for i := range w.globs {
		g := &w.globs[i]
		inner, shown := inner, shown
		if g.fold {
			inner, shown = strings.ToLower(inner), strings.ToLower(shown)
		}
		base := inner[strings.LastIndexByte(inner, '/')+1:]
		matched := false
		if g.part {
			matched = strings.Contains(base, g.text)
		} else {
			matched = g.matches(base, inner) || g.byPath && g.matches(base, filepath.Clean(shown))
		}
		switch {
		case g.negate && matched:
			return ignored
		case g.negate:
		case matched:
			all = wanted
		case !dir:
			return ignored
		}
	}
	return all
}
