package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"trajgen/tools/skills"
)

const maxIndex = 1 << 20

// index is what a site offers: at /.well-known/skills/index.json with the files of each skill, which lie beside it, or anywhere
// with the source of each.
type index struct {
	Skills []listed `json:"skills"`
}

type listed struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Source      string   `json:"source,omitempty"`
	Files       []string `json:"files,omitempty"`
}

// wellKnownIndex is where a site says what it offers.
func wellKnownIndex(site string) string {
	return strings.TrimSuffix(site, "/") + "/.well-known/skills/index.json"
}

func (s Sources) index(ctx context.Context, address string) (found index, err error) {
	data, err := s.get(ctx, address, maxIndex)
	if err != nil {
		return found, err
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return found, fmt.Errorf("read the index: %w", err)
	}
	return found, nil
}

// wellKnown reads a skill that a site offers.
func (s Sources) wellKnown(ctx context.Context, site, name string) (*skills.Skill, error) {
	address := wellKnownIndex(site)
	offers, err := s.index(ctx, address)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, each := range offers.Skills {
		names = append(names, each.Name)
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	at := slices.Index(names, name)
	if at < 0 || skills.CheckName(name) != nil {
		return nil, fmt.Errorf("say which skill with #name: the site has %.20q", names)
	}
	files := offers.Skills[at].Files
	if len(files) == 0 {
		files = []string{skills.Manual}
	}
	var c skills.Collector
	for _, file := range files {
		address := strings.TrimSuffix(address, "index.json") + name + "/" + (&url.URL{Path: file}).EscapedPath()
		if err := s.getFile(ctx, &c, file, address, 0); err != nil {
			return nil, err
		}
	}
	return c.Skill("", false)
}

// content is an entry of GitHub's contents API.
type content struct {
	Path        string `json:"path"`
	Type        string `json:"type"` // file, dir, symlink, submodule
	Size        int64  `json:"size"`
	DownloadURL string `json:"download_url"`
}

const maxFolders = 20

// place is OWNER/REPO/FOLDER@REF, a folder of a repository.
type place struct{ owner, repo, folder, ref string }

func parsePlace(text string) (p place, err error) {
	text, p.ref, _ = strings.Cut(text, "@")
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 2 || slices.Contains(parts, "") {
		return p, fmt.Errorf("want github:OWNER/REPO/FOLDER")
	}
	p.owner, p.repo = parts[0], parts[1]
	if len(parts) == 3 {
		p.folder = path.Clean(parts[2])
	}
	return p, nil
}

// repository is the address of the repository in GitHub's API.
func (s Sources) repository(p place) string {
	return fmt.Sprintf("%s/repos/%s/%s", s.api(), url.PathEscape(p.owner), url.PathEscape(p.repo))
}

// contents asks for a folder or a file of a repository.
func (s Sources) contents(ctx context.Context, p place, name string, into any) error {
	address := s.repository(p) + "/contents/" + (&url.URL{Path: name}).EscapedPath()
	if p.ref != "" {
		address += "?ref=" + url.QueryEscape(p.ref)
	}
	data, err := s.get(ctx, address, maxIndex)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is not what it should be: %w", name, err)
	}
	return nil
}

// github reads a folder of a repository.
func (s Sources) github(ctx context.Context, at string) (*skills.Skill, error) {
	p, err := parsePlace(at)
	if err != nil {
		return nil, err
	}
	var c skills.Collector
	folders := []string{p.folder}
	for i := 0; i < len(folders); i++ {
		if i == maxFolders {
			return nil, fmt.Errorf("there are more than %d folders", maxFolders)
		}
		var contents []content
		if err := s.contents(ctx, p, folders[i], &contents); err != nil {
			return nil, err
		}
		for _, each := range contents {
			name := within(each.Path, p.folder)
			switch {
			case skills.Ignored(path.Base(name)):
			case each.Type == "dir" && strings.HasPrefix(each.Path, folders[i]):
				folders = append(folders, each.Path)
			case each.Type == "file":
				if err := s.getFile(ctx, &c, name, each.DownloadURL, each.Size); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("%.200q is a %s; skills have files", each.Path, each.Type)
			}
		}
	}
	return c.Skill("", false)
}
