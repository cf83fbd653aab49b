package hub

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"trajgen/tools/skills"
)

// PublishHelp says where skills are published.
const PublishHelp = `  skill.zip                      an archive
  ./folder                       a folder of skills, with an index.json: as a site has it below /.well-known/skills
  github:owner/repo/folder@main  a pull request, with the token of GITHUB_TOKEN, which may write to the repository`

// Publish judges the skill in a folder, as strictly as the standard is written, and gives it to others. It returns where that is.
func (s Sources) Publish(ctx context.Context, dir, to string, force bool) (at string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	skill, err := skills.ReadFolder(root.FS(), ".", false)
	if err == nil {
		skill, err = skills.New(filepath.Base(absolute), skill.Files, true)
	}
	if err != nil {
		return "", fmt.Errorf("publish %s: %w", dir, err)
	}
	report := skills.Scan(skill)
	if skills.Decide(skills.Community, report.Verdict, force) != skills.Allow {
		return "", &Refusal{Name: skill.Name, Trust: skills.Community, Report: report}
	}
	rest, github := strings.CutPrefix(to, "github:")
	switch {
	case github:
		at, err = s.propose(ctx, skill, rest)
	case strings.HasSuffix(strings.ToLower(to), ".zip"):
		at, err = to, pack(skill, to)
	default:
		at, err = filepath.Join(to, skill.Name), offer(skill, to)
	}
	if err != nil {
		return "", fmt.Errorf("publish %s: %w", skill.Name, err)
	}
	return at, nil
}

// pack writes an archive: the same bytes for the same skill.
func pack(skill *skills.Skill, to string) error {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range skill.Paths() {
		header := &zip.FileHeader{Name: path.Join(skill.Name, name), Method: zip.Deflate}
		header.SetMode(modeOf(skill, name))
		out, err := w.CreateHeader(header)
		if err == nil {
			_, err = out.Write(skill.Files[name])
		}
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}

func modeOf(skill *skills.Skill, name string) fs.FileMode {
	return skills.Write(name, skill.Files[name]).Perm()
}

// offer puts the skill into a folder of others, in the place of one of its name, and says in index.json what is there.
func offer(skill *skills.Skill, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(root.RemoveAll(skill.Name), lay(root, skill.Name, skill)); err != nil {
		return err
	}
	folders, err := skills.Find(root.FS())
	if err != nil {
		return err
	}
	there := index{Skills: []listed{}}
	for _, folder := range folders {
		each, err := skills.ReadFolder(root.FS(), folder, false)
		if err != nil {
			return fmt.Errorf("skill %s: %w", folder, err)
		}
		if folder == each.Name { // a site has its skills in folders of their names
			there.Skills = append(there.Skills, listed{Name: each.Name, Description: each.Description, Files: each.Paths()})
		}
	}
	data, err := json.MarshalIndent(there, "", "  ")
	if err != nil {
		return err
	}
	return root.WriteFile("index.json", append(data, '\n'), 0o644)
}

// lay writes the files of a skill below a folder.
func lay(root *os.Root, dir string, skill *skills.Skill) error {
	for _, name := range skill.Paths() {
		at := path.Join(dir, name)
		err := root.MkdirAll(path.Dir(at), 0o755)
		if err = errors.Join(err, root.WriteFile(at, skill.Files[name], modeOf(skill, name))); err != nil {
			return err
		}
	}
	return nil
}

// object is what GitHub's API answers, of which each answer has a part.
type object struct {
	SHA           string  `json:"sha"`
	DefaultBranch string  `json:"default_branch"`
	URL           string  `json:"html_url"`
	Object        *object `json:"object"`
	Tree          *object `json:"tree"`
}

// propose makes a branch with the skill, as one commit, and a pull request of it.
func (s Sources) propose(ctx context.Context, skill *skills.Skill, to string) (string, error) {
	p, err := parsePlace(to)
	if err != nil {
		return "", err
	}
	if s.Token == "" {
		return "", errors.New("a pull request needs a token that may write to the repository")
	}
	// After a failure the rest does nothing.
	call := func(method, what string, send map[string]any) (o object) {
		var body, answer []byte
		if err == nil && send != nil {
			body, err = json.Marshal(send)
		}
		if err == nil {
			answer, err = s.send(ctx, method, s.repository(p)+what, body, maxIndex)
		}
		if err == nil {
			err = json.Unmarshal(answer, &o)
		}
		if o.Object == nil {
			o.Object = &object{}
		}
		if o.Tree == nil {
			o.Tree = &object{}
		}
		return o
	}
	base := p.ref
	if base == "" {
		base = call(http.MethodGet, "", nil).DefaultBranch
	}
	last := call(http.MethodGet, "/git/ref/heads/"+base, nil).Object.SHA
	tree := call(http.MethodGet, "/git/commits/"+last, nil).Tree.SHA
	var entries []map[string]any
	for _, name := range skill.Paths() {
		blob := call(http.MethodPost, "/git/blobs", map[string]any{"content": []byte(skill.Files[name]), "encoding": "base64"})
		entries = append(entries, map[string]any{
			"path": path.Join(p.folder, skill.Name, name), "sha": blob.SHA,
			"type": "blob", "mode": fmt.Sprintf("100%o", modeOf(skill, name)),
		})
	}
	title := "Add the skill " + skill.Name
	made := call(http.MethodPost, "/git/trees", map[string]any{"base_tree": tree, "tree": entries})
	commit := call(http.MethodPost, "/git/commits", map[string]any{"message": title, "tree": made.SHA, "parents": []string{last}})
	branch := "skill-" + skill.Name + "-" + strings.TrimPrefix(skill.Digest(), "sha256:")[:12]
	call(http.MethodPost, "/git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": commit.SHA})
	pull := call(http.MethodPost, "/pulls", map[string]any{"title": title, "head": branch, "base": base, "body": skill.Description})
	return pull.URL, err
}
