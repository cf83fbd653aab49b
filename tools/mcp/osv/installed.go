package osv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/textproto"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Installed are the packages that a file says are installed or pinned: a lock file of npm, the package.json of a package in
// node_modules, the METADATA of a Python distribution, or lines NAME==VERSION of requirements. Other files say nothing.
func Installed(name string, data []byte) (all []Package, err error) {
	add := func(ecosystem, name, version string) {
		if p := (Package{ecosystem, Name(ecosystem, name), version}); name != "" && versionPattern.MatchString(version) {
			all = append(all, p)
		}
	}
	base, dir := path.Base(name), path.Base(path.Dir(name))
	switch {
	case base == "package-lock.json" || base == ".package-lock.json" || base == "npm-shrinkwrap.json":
		err = locked(data, add)
	case base == "package.json" && slices.Contains(strings.Split(path.Dir(name), "/"), "node_modules"):
		var one struct{ Name, Version string }
		if json.Unmarshal(data, &one) == nil { // packages have others below them, which are made for tests or are not packages
			add(NPM, one.Name, one.Version)
		}
	case base == "METADATA" && strings.HasSuffix(dir, ".dist-info"):
		head, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(data))).ReadMIMEHeader() // what follows is text
		add(PyPI, head.Get("Name"), head.Get("Version"))
	case strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt"):
		for _, match := range pinned.FindAllSubmatch(data, -1) {
			add(PyPI, string(match[1]), string(match[2]))
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	slices.SortFunc(all, Compare)
	return slices.Compact(all), err
}

var pinned = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]\n]*\])?[ \t]*===?[ \t]*([0-9][0-9A-Za-z.+!_-]*)`)

// locked reads a lock file of npm: packages by where they are installed, or, in the first version, dependencies within dependencies.
func locked(data []byte, add func(ecosystem, name, version string)) error {
	type dependency struct {
		Version      string
		Dependencies map[string]json.RawMessage
	}
	var lock struct {
		Packages map[string]struct {
			Name, Version string
			Link          bool
		}
		dependency
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return err
	}
	const folder = "node_modules/"
	for place, p := range lock.Packages {
		if p.Name == "" && strings.Contains(place, folder) {
			p.Name = place[strings.LastIndex(place, folder)+len(folder):]
		}
		if !p.Link && place != "" {
			add(NPM, p.Name, p.Version)
		}
	}
	var walk func(dependency) error
	walk = func(d dependency) error {
		for name, raw := range d.Dependencies {
			var below dependency
			if err := json.Unmarshal(raw, &below); err != nil {
				return err
			}
			add(NPM, name, below.Version)
			if err := walk(below); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(lock.dependency)
}
