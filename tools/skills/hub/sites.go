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

// wellKnown reads a skill that a site offers: below /.well-known/skills, index.json names the skills and the files of each.
func (s Sources) wellKnown(ctx context.Context, site, name string) (*skills.Collector, error) {
	base := strings.TrimSuffix(site, "/") + "/.well-known/skills/"
	data, err := s.get(ctx, base+"index.json", maxIndex)
	if err != nil {
		return nil, err
	}
	var index struct {
		Skills []struct {
			Name  string   `json:"name"`
			Files []string `json:"files"`
		} `json:"skills"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	var names []string
	for _, each := range index.Skills {
		names = append(names, each.Name)
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	at := slices.Index(names, name)
	if at < 0 || skills.CheckName(name) != nil {
		return nil, fmt.Errorf("say which skill with #name: the site has %.20q", names)
	}
	files := index.Skills[at].Files
	if len(files) == 0 {
		files = []string{skills.Manual}
	}
	c := &skills.Collector{}
	for _, file := range files {
		address := base + name + "/" + (&url.URL{Path: file}).EscapedPath()
		if err := s.getFile(ctx, c, file, address, 0); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// content is an entry of GitHub's contents API.
type content struct {
	Path        string `json:"path"`
	Type        string `json:"type"` // file, dir, symlink, submodule
	Size        int64  `json:"size"`
	DownloadURL string `json:"download_url"`
}

const maxFolders = 20

// github reads a folder of a repository, given as OWNER/REPO/PATH@REF.
func (s Sources) github(ctx context.Context, place string) (*skills.Collector, error) {
	place, ref, _ := strings.Cut(place, "@")
	parts := strings.SplitN(place, "/", 3)
	if len(parts) < 2 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("want github:OWNER/REPO/FOLDER")
	}
	top := ""
	if len(parts) == 3 {
		top = path.Clean(parts[2])
	}
	api := s.GitHub
	if api == "" {
		api = "https://api.github.com"
	}
	c := &skills.Collector{}
	folders := []string{top}
	for i := 0; i < len(folders); i++ {
		if i == maxFolders {
			return nil, fmt.Errorf("there are more than %d folders", maxFolders)
		}
		address := fmt.Sprintf("%s/repos/%s/%s/contents/%s", api, url.PathEscape(parts[0]), url.PathEscape(parts[1]),
			(&url.URL{Path: folders[i]}).EscapedPath())
		if ref != "" {
			address += "?ref=" + url.QueryEscape(ref)
		}
		data, err := s.get(ctx, address, maxIndex)
		if err != nil {
			return nil, err
		}
		var contents []content
		if err := json.Unmarshal(data, &contents); err != nil {
			return nil, fmt.Errorf("%s is not a folder: %w", place, err)
		}
		for _, each := range contents {
			name := within(each.Path, top)
			switch {
			case skills.Ignored(path.Base(name)):
			case each.Type == "dir" && strings.HasPrefix(each.Path, folders[i]):
				folders = append(folders, each.Path)
			case each.Type == "file":
				if err := s.getFile(ctx, c, name, each.DownloadURL, each.Size); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("%.200q is a %s; skills have files", each.Path, each.Type)
			}
		}
	}
	return c, nil
}
