// Package osv finds advisories about packages, in lists of the OSV format (https://ossf.github.io/osv-schema).
package osv

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// The ecosystems, as OSV names them.
const (
	NPM  = "npm"
	PyPI = "PyPI"
)

// Package is a version of a package.
type Package struct{ Ecosystem, Name, Version string }

// Parse reads npm:NAME@VERSION or pypi:NAME@VERSION.
func Parse(text string) (Package, error) {
	kind, rest, _ := strings.Cut(text, ":")
	at := strings.LastIndex(rest, "@")
	ecosystem := map[string]string{"npm": NPM, "pypi": PyPI}[kind]
	if ecosystem == "" || at < 1 || !versionPattern.MatchString(rest[at+1:]) {
		return Package{}, fmt.Errorf("%q is not a package with its version, such as npm:@scope/name@1.2.3 or pypi:name@1.2.3", text)
	}
	return Package{ecosystem, Name(ecosystem, rest[:at]), rest[at+1:]}, nil
}

var versionPattern = regexp.MustCompile(`^[0-9][0-9A-Za-z.+!_-]{0,99}$`)

func (p Package) String() string {
	return strings.ToLower(p.Ecosystem) + ":" + p.Name + "@" + p.Version
}

// Compare orders packages.
func Compare(a, b Package) int { return strings.Compare(a.String(), b.String()) }

var separators = regexp.MustCompile(`[-_.]+`)

// Name is a package's name as its index compares it: that of Python takes case and separators for the same.
func Name(ecosystem, name string) string {
	if ecosystem == PyPI {
		return separators.ReplaceAllString(strings.ToLower(name), "-")
	}
	return name
}

// Finding is an advisory about a package.
type Finding struct {
	Package Package
	ID      string
	Summary string
	Malware bool // it is about malicious code, and not about a fault
}

func (f Finding) String() string {
	return fmt.Sprintf("package %s is in the advisory %s: %s", f.Package, f.ID, cmp.Or(f.Summary, "it has no summary"))
}

// record is an advisory.
type record struct {
	ID        string     `json:"id"`
	Aliases   []string   `json:"aliases"`
	Withdrawn *time.Time `json:"withdrawn"`
	Summary   string     `json:"summary"`
	Details   string     `json:"details"`
	Affected  []affected `json:"affected"`
}

type affected struct {
	Package struct {
		Ecosystem string `json:"ecosystem"`
		Name      string `json:"name"`
	} `json:"package"`
	Versions []string `json:"versions"`
	Ranges   []struct {
		Type   string              `json:"type"`
		Events []map[string]string `json:"events"`
	} `json:"ranges"`
}

// maxSummary bounds what is told of an advisory, in characters.
const maxSummary = 200

// about are the findings of an advisory about some packages.
func (r *record) about(packages []Package) (all []Finding) {
	if r.Withdrawn != nil {
		return nil
	}
	malware := slices.ContainsFunc(append(r.Aliases, r.ID), func(id string) bool { return strings.HasPrefix(id, "MAL-") })
	summary, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(r.Summary, r.Details)), "\n")
	if runes := []rune(summary); len(runes) > maxSummary {
		summary = string(runes[:maxSummary]) + "…"
	}
	for _, p := range packages {
		if slices.ContainsFunc(r.Affected, func(a affected) bool { return a.has(p) }) {
			all = append(all, Finding{p, r.ID, summary, malware})
		}
	}
	return all
}

// has reports whether a package is affected. Where the versions are listed, only they are; otherwise the ranges say which.
func (a *affected) has(p Package) bool {
	ecosystem, _, _ := strings.Cut(a.Package.Ecosystem, ":")
	if ecosystem != p.Ecosystem || Name(ecosystem, a.Package.Name) != p.Name {
		return false
	}
	if slices.Contains(a.Versions, p.Version) {
		return true
	}
	ranged := false
	for _, r := range a.Ranges {
		if r.Type != "SEMVER" && r.Type != "ECOSYSTEM" {
			continue // commits of a repository
		}
		if ranged = true; (len(a.Versions) == 0 || p.Ecosystem == NPM) && within(p, r.Events) {
			return true
		}
	}
	return !ranged && len(a.Versions) == 0 // all of them
}

// within reports whether a version is in a range. A version that cannot be compared is taken to be in it: OSV lists the versions
// of ecosystems whose order it does not define, and what comes without a list is refused sooner than run.
func within(p Package, events []map[string]string) bool {
	in := false
	order := func(to string) (int, bool) {
		if p.Ecosystem != NPM || !semver.IsValid("v"+p.Version) || !semver.IsValid("v"+to) {
			return 0, false
		}
		return semver.Compare("v"+p.Version, "v"+to), true
	}
	type bound struct {
		kind, version string
	}
	var bounds []bound
	for _, event := range events {
		for _, kind := range []string{"introduced", "fixed", "last_affected", "limit"} {
			if version, ok := event[kind]; ok {
				bounds = append(bounds, bound{kind, version})
			}
		}
	}
	slices.SortStableFunc(bounds, func(a, b bound) int {
		switch {
		case a.version == b.version:
			return 0
		case a.version == "0":
			return -1
		case b.version == "0":
			return 1
		case p.Ecosystem == NPM:
			return semver.Compare("v"+a.version, "v"+b.version)
		}
		return 0 // as the list has them
	})
	for _, b := range bounds {
		if b.kind == "introduced" && b.version == "0" {
			in = true
			continue
		}
		n, known := order(b.version)
		switch {
		case !known:
			in = in || b.kind == "introduced"
		case b.kind == "introduced" && n >= 0:
			in = true
		case (b.kind == "fixed" || b.kind == "limit") && n >= 0, b.kind == "last_affected" && n > 0:
			in = false
		}
	}
	return in
}
