package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/tools/skills"
)

// Offer is a skill that a place has.
type Offer struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Trust       string `json:"trust"`
	Source      string `json:"source"` // what Install takes; a bundled skill needs no installation
}

// Bounds of what is asked for.
const (
	offersTime = 30 * time.Second
	maxOffers  = 1000 // of one place
	maxListed  = 100  // folders of a repository, for each of which a request is made
	atOnce     = 8
)

// offers lists the skills of places, by name and then by trust, each source once. What those places offer that cannot be asked
// is missing; the error names them.
func (s Sources) offers(ctx context.Context, places []string) ([]Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, offersTime)
	defer cancel()
	found, errs := make([][]Offer, len(places)), make([]error, len(places))
	var asked errgroup.Group
	asked.SetLimit(atOnce)
	for i, place := range places {
		asked.Go(func() error {
			if found[i], errs[i] = s.offersOf(ctx, place); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", place, errs[i])
			}
			return nil
		})
	}
	_ = asked.Wait()
	all := slices.Concat(found...)
	order := []string{skills.Builtin, skills.Trusted, skills.Community}
	slices.SortFunc(all, func(a, b Offer) int {
		trust := cmp.Compare(slices.Index(order, a.Trust), slices.Index(order, b.Trust))
		return cmp.Or(cmp.Compare(a.Name, b.Name), trust, cmp.Compare(a.Source, b.Source))
	})
	return slices.CompactFunc(all, func(a, b Offer) bool { return a.Name == b.Name && a.Source == b.Source }), errors.Join(errs...)
}

// PlacesHelp says which places have skills.
const PlacesHelp = `  bundled                          those that come along (default, with the hub)
  ./folder                         folders with skills
  https://example.org/index.json   {"skills": [{"name": ..., "description": ..., "source": ...}]}
  well-known:https://example.org   what a site offers below /.well-known/skills
  github:owner/repo/folder@tag     the folders in one on GitHub`

// Offers lists the skills of places that have all words of a query in their name or description. Without places they are those
// that come along and the installed ones.
func (h *Hub) Offers(ctx context.Context, places []string, query string) ([]Offer, error) {
	if len(places) == 0 {
		places = []string{skills.BundledDir}
		if _, err := os.Stat(h.Dir); err == nil {
			places = append(places, h.Dir)
		}
	}
	offers, err := h.Sources.offers(ctx, places)
	words := strings.Fields(strings.ToLower(query))
	return slices.DeleteFunc(offers, func(o Offer) bool {
		text := strings.ToLower(o.Name + " " + o.Description)
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	}), err
}

func (s Sources) offersOf(ctx context.Context, place string) ([]Offer, error) {
	scheme, rest, _ := strings.Cut(place, ":")
	switch {
	case place == skills.BundledDir:
		return in(skills.Bundled(), func(string) string { return place }, skills.Builtin)
	case scheme == "github":
		return s.repositoryOffers(ctx, rest)
	case scheme == "well-known":
		offers, err := s.index(ctx, wellKnownIndex(rest))
		return offers.offers(func(name string) string { return place + "#" + name }), err
	case scheme == "http" || scheme == "https":
		offers, err := s.index(ctx, place)
		return offers.offers(nil), err
	}
	root, err := os.OpenRoot(place)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return in(root.FS(), func(folder string) string { return filepath.Join(place, folder) }, skills.Community)
}

// offers are those of an index. source gives the source of a skill that names none.
func (i index) offers(source func(name string) string) (all []Offer) {
	for _, each := range i.Skills[:min(len(i.Skills), maxOffers)] {
		if source != nil {
			each.Source = source(each.Name)
		}
		if skills.CheckName(each.Name) == nil && each.Source != "" {
			all = append(all, Offer{each.Name, line(each.Description), trustIn(each.Source), each.Source})
		}
	}
	return all
}

// in lists the skills of a folder. One that cannot be read is not offered.
func in(files fs.FS, source func(folder string) string, trust string) (all []Offer, err error) {
	folders, err := skills.Find(files)
	for _, folder := range folders[:min(len(folders), maxOffers)] {
		if s, err := skills.ReadFolder(files, folder, false); err == nil {
			all = append(all, Offer{s.Name, line(s.Description), trust, source(folder)})
		}
	}
	return all, err
}

// repositoryOffers lists the folders of one in a repository that have a SKILL.md.
func (s Sources) repositoryOffers(ctx context.Context, at string) ([]Offer, error) {
	p, err := parsePlace(at)
	if err != nil {
		return nil, err
	}
	var entries []content
	if err := s.contents(ctx, p, p.folder, &entries); err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(c content) bool {
		return c.Type != "dir" || c.Path != path.Join(p.folder, path.Base(c.Path))
	})
	offers := make([]Offer, min(len(entries), maxListed))
	var asked errgroup.Group
	asked.SetLimit(atOnce)
	for i := range offers {
		asked.Go(func() error {
			var manual struct{ Content []byte } // in base64, as JSON has bytes, but for ends of lines
			if s.contents(ctx, p, entries[i].Path+"/"+skills.Manual, &manual) != nil {
				return nil // a folder without a skill
			}
			source := "github:" + p.owner + "/" + p.repo + "/" + entries[i].Path
			if p.ref != "" {
				source += "@" + p.ref
			}
			if skill, err := skills.Parse(manual.Content, "", false); err == nil {
				offers[i] = Offer{skill.Name, line(skill.Description), trustIn(source), source}
			}
			return nil
		})
	}
	_ = asked.Wait()
	return slices.DeleteFunc(offers, func(o Offer) bool { return o.Name == "" }), nil
}

// line makes one line of a description that a stranger wrote.
func line(text string) string {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
	return strings.Join(words, " ")
}
