package hub

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trajgen/tools/skills"
	"trajgen/tools/web/guard"
)

// SourcesHelp says where skills come from.
const SourcesHelp = `  ./folder, ./skill.zip, ./skill.tar.gz         on this machine
  https://example.org/skill.zip, .../SKILL.md   an archive, or a skill that is one file
  git+https://example.org/repo.git@tag          a repository
  github:owner/repo/folder@tag                  a folder of one on GitHub
  well-known:https://example.org                what a site offers below /.well-known/skills

Where there is more than one skill, #path or #name behind it says which.`

// Sources are where skills come from, and where they are published.
type Sources struct {
	Guard  *guard.Guard
	GitHub string // the API; "" is GitHub's own
	Token  string // for it; "" is none
}

// trustedOwners are the owners of repositories whose skills are trusted.
var trustedOwners = []string{"openai", "anthropics", "huggingface", "nvidia"}

// Fetch fetches a skill of a source, see SourcesHelp, and says how far its source is trusted.
func (s Sources) Fetch(ctx context.Context, source string) (skill *skills.Skill, trust string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	place, which, _ := strings.Cut(source, "#")
	scheme, rest, _ := strings.Cut(place, ":")
	switch {
	case strings.HasPrefix(place, "git+"):
		skill, err = s.git(ctx, strings.TrimPrefix(place, "git+"), which)
	case scheme == "github":
		skill, err = s.github(ctx, rest)
	case scheme == "well-known":
		skill, err = s.wellKnown(ctx, rest, which)
	case scheme == "http" || scheme == "https":
		skill, err = s.direct(ctx, place, which)
	default:
		skill, err = local(place, which)
	}
	return skill, trustIn(source), err
}

// trustIn is how far a source is trusted.
func trustIn(source string) string {
	if rest, ok := strings.CutPrefix(source, "github:"); ok {
		owner, _, _ := strings.Cut(rest, "/")
		if slices.Contains(trustedOwners, strings.ToLower(owner)) {
			return skills.Trusted
		}
	}
	return skills.Community
}

// local reads a folder or an archive of this machine.
func local(name, which string) (*skills.Skill, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return folder(filepath.Join(name, filepath.FromSlash(which)))
	}
	if info.Size() > maxArchive {
		return nil, fmt.Errorf("it has more than %d MB", maxArchive>>20)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return unpack(name, data, which)
}

// folder reads the skill in a folder.
func folder(dir string) (*skills.Skill, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Stat(skills.Manual); err != nil {
		return nil, fmt.Errorf("there is no %s in it (%w); #path says where the skill lies", skills.Manual, err)
	}
	return skills.ReadFolder(root.FS(), ".", false)
}

func opened(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

// direct reads an archive, or a skill that is one file, from a URL.
func (s Sources) direct(ctx context.Context, address, which string) (*skills.Skill, error) {
	data, err := s.get(ctx, address, maxArchive)
	if err != nil {
		return nil, err
	}
	if archived(address) {
		return unpack(address, data, which)
	}
	var c skills.Collector
	if err := c.Add(skills.Manual, 0o644, int64(len(data)), opened(data)); err != nil {
		return nil, err
	}
	return c.Skill("", false)
}

// get fetches what a URL leads to.
func (s Sources) get(ctx context.Context, address string, most int64) ([]byte, error) {
	return s.send(ctx, http.MethodGet, address, nil, most)
}

// send sends a request past the guard, which judges redirects, too. GitHub's API gets the token.
func (s Sources) send(ctx context.Context, method, address string, body []byte, most int64) ([]byte, error) {
	u, err := s.Guard.Check(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "trajgen-skills")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.Token != "" && strings.HasPrefix(address, s.api()+"/") {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	transport := s.Guard.Transport()
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		last := via[len(via)-1].URL
		if len(via) > 5 || last.Scheme == "https" && req.URL.Scheme != "https" {
			return fmt.Errorf("it is redirected too often, or from https to %s", req.URL.Scheme)
		}
		_, err := s.Guard.Follow(last, req.URL.String())
		return err
	}}
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated:
		return nil, fmt.Errorf("%s: the server says %s", u.Redacted(), answer.Status)
	case err == nil && int64(len(data)) > most:
		return nil, fmt.Errorf("%s has more than %d kB", u.Redacted(), most>>10)
	}
	return data, err
}

// api is the address of GitHub's API.
func (s Sources) api() string { return cmp.Or(s.GitHub, "https://api.github.com") }

// getFile fetches a file of a skill.
func (s Sources) getFile(ctx context.Context, c *skills.Collector, name, address string, size int64) error {
	return c.Add(name, 0o644, size, func() (io.ReadCloser, error) {
		data, err := s.get(ctx, address, skills.MaxFile)
		if err != nil {
			return nil, err
		}
		return opened(data)()
	})
}

// within is the part of a path below a folder.
func within(name, dir string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path.Clean(name), dir), "/")
}
