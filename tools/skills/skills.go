// Package skills has folders of instructions for agents: it reads and judges them, and gives them to episodes.
package skills

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"trajgen/pipeline/episode"
)

// Manual is the file that every skill has.
const Manual = "SKILL.md"

// Skill is a folder with a SKILL.md. It is not changed after it was read.
type Skill struct {
	Name, Description string
	Category          string // of a run's skill: the folder around its own; "" without one
	Tags, Related     []string
	AllowedTools      []string // shown; they grant nothing
	Platforms         []string
	Variables         []string // of the environment, that it requires
	Requires          []string // toolsets without which it is not offered
	FallbackFor       []string // toolsets with which it is not offered

	Body     string // of SKILL.md, below the front matter
	Warnings []string
	Files    episode.Files // by path in the folder, SKILL.md among them

	digest string
}

// Digest identifies the files.
func (s *Skill) Digest() string { return s.digest }

// FileDigest identifies one file.
func (s *Skill) FileDigest(path string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(s.Files[path]))
}

// Paths lists the files, sorted.
func (s *Skill) Paths() []string { return slices.Sorted(maps.Keys(s.Files)) }

// Size is that of all files, in bytes.
func (s *Skill) Size() (n int) {
	for _, data := range s.Files {
		n += len(data)
	}
	return n
}

// Supported says whether the skill is for the sandboxes' system.
func (s *Skill) Supported() bool {
	return len(s.Platforms) == 0 || slices.Contains(s.Platforms, "linux")
}

// With returns a copy that has other data in a file, or lacks it if data is nil. Its front matter is read again, strictly.
func (s *Skill) With(path string, data []byte) (*Skill, error) {
	files := maps.Clone(s.Files)
	if files[path] = data; data == nil {
		delete(files, path)
	}
	made, err := New(s.Name, files, path == Manual)
	if err != nil {
		return nil, err
	}
	made.Category = s.Category
	return made, nil
}

// New makes a skill of files; see Parse for folder and strict.
func New(folder string, files episode.Files, strict bool) (*Skill, error) {
	manual, ok := files[Manual]
	if !ok {
		return nil, fmt.Errorf("there is no %s", Manual)
	}
	s, err := Parse(manual, folder, strict)
	if err != nil {
		return nil, err
	}
	s.Files = files
	sum := sha256.New() // once: each episode has the digest in its events
	for _, path := range s.Paths() {
		fmt.Fprintf(sum, "%d %s %d\n", len(path), path, len(s.Files[path]))
		sum.Write(s.Files[path])
	}
	s.digest = fmt.Sprintf("sha256:%x", sum.Sum(nil))
	return s, nil
}
