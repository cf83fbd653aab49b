package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"
)

// Card is the metadata in the README.md of a dataset folder.
type Card struct {
	Name     string   `json:"name,omitempty"`
	License  []string `json:"license,omitempty"`
	Language []string `json:"language,omitempty"`
	Tags     []string `json:"tags,omitempty"`
}

// and joins the cards of two datasets.
func (c Card) and(other Card) Card {
	union := func(a, b []string) []string {
		for _, item := range b {
			if !slices.Contains(a, item) {
				a = append(a, item)
			}
		}
		return a
	}
	if c.Name != "" && other.Name != "" && c.Name != other.Name {
		c.Name += ", " + other.Name
	} else {
		c.Name += other.Name
	}
	return Card{Name: c.Name, License: union(c.License, other.License), Language: union(c.Language, other.Language), Tags: union(c.Tags, other.Tags)}
}

// frontMatter is the part of a README.md's front matter that is used here.
type frontMatter struct {
	PrettyName string `yaml:"pretty_name"`
	License    texts  `yaml:"license"`
	Language   texts  `yaml:"language"`
	Tags       texts  `yaml:"tags"`
	Configs    []struct {
		Name    string    `yaml:"config_name"`
		Files   dataParts `yaml:"data_files"`
		Dir     string    `yaml:"data_dir"`
		Default bool      `yaml:"default"`
	} `yaml:"configs"`
}

// texts is one text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Value != "" && node.ShortTag() != "!!null" {
			*t = texts{node.Value}
		}
		return nil
	}
	return node.Decode((*[]string)(t))
}

// dataParts are the splits of a config: a path, a list of paths (both the split train), a list of {split, path}, or a
// mapping of split to path.
type dataParts []dataPart

type dataPart struct {
	Split string `yaml:"split"`
	Paths texts  `yaml:"path"`
}

func (d *dataParts) UnmarshalYAML(node *yaml.Node) error {
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			part := dataPart{Split: node.Content[i].Value}
			if err := node.Content[i+1].Decode(&part.Paths); err != nil {
				return err
			}
			*d = append(*d, part)
		}
		return nil
	case node.Kind == yaml.SequenceNode && len(node.Content) > 0 && node.Content[0].Kind == yaml.MappingNode:
		return node.Decode((*[]dataPart)(d))
	}
	var paths texts
	if err := node.Decode(&paths); err != nil {
		return err
	}
	*d = dataParts{{Split: "train", Paths: paths}}
	return nil
}

// readCard reads the README.md of a directory: its card, and the shares that its configs name. Either may be missing.
func readCard(dir string) (Card, []share, error) {
	head, err := readFrontMatter(filepath.Join(dir, "README.md"))
	if err != nil || head == nil {
		return Card{}, nil, err
	}
	var matter frontMatter
	if err := yaml.Unmarshal(head, &matter); err != nil {
		return Card{}, nil, fmt.Errorf("README.md: what stands between its lines --- is not as expected: %w", err)
	}
	card := Card{Name: matter.PrettyName, License: matter.License, Language: matter.Language, Tags: matter.Tags}
	var shares []share
	for _, config := range matter.Configs {
		parts := config.Files
		if len(parts) == 0 && config.Dir == "" {
			continue // a config may set other things alone
		}
		name := config.Name
		if name == "" {
			name = "default"
		}
		if len(parts) == 0 {
			below, err := sharesBelow(dir, config.Dir)
			if err != nil {
				return Card{}, nil, fmt.Errorf("README.md: config %s: %w", name, err)
			}
			for _, s := range below {
				shares = append(shares, share{subset: name, split: s.split, preferred: config.Default, files: s.files})
			}
			continue
		}
		for _, part := range parts {
			files, err := part.files(dir, config.Dir)
			if err != nil {
				return Card{}, nil, fmt.Errorf("README.md: config %s, split %s: %w", name, part.Split, err)
			}
			shares = append(shares, share{subset: name, split: part.Split, preferred: config.Default, files: files})
		}
	}
	return card, shares, nil
}

// files lists what the patterns of a split match, those of each pattern sorted.
func (p dataPart) files(dir, below string) ([]string, error) {
	var files []string
	listed := map[string]bool{}
	for _, pattern := range p.Paths {
		pattern = path.Join(below, pattern)
		if err := inside(pattern); err != nil {
			return nil, err
		}
		found, err := doublestar.Glob(os.DirFS(dir), pattern, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no file matches %s; was all of the dataset downloaded?", pattern)
		}
		slices.Sort(found)
		for _, file := range found {
			if !listed[file] {
				files = append(files, file)
			}
			listed[file] = true
		}
		if len(files) > maxFiles {
			return nil, fmt.Errorf("more than %d data files", maxFiles)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("it names no file")
	}
	return files, nil
}

// inside refuses paths outside the directory, as the README comes from the dataset's author.
func inside(pattern string) error {
	if strings.Contains(pattern, "://") || strings.Contains(pattern, ":/") {
		return fmt.Errorf("%s is not in the directory; download it, and give its path", pattern)
	}
	if path.IsAbs(pattern) || slices.Contains(strings.Split(pattern, "/"), "..") {
		return fmt.Errorf("%s leads out of the directory", pattern)
	}
	return nil
}

// sharesBelow sorts the files of one directory of a dataset by their names.
func sharesBelow(dir, below string) ([]share, error) {
	if err := inside(below); err != nil {
		return nil, err
	}
	shares, err := sharesByName(filepath.Join(dir, filepath.FromSlash(below)))
	for i, s := range shares {
		for j, file := range s.files {
			shares[i].files[j] = path.Join(below, file)
		}
		if s.split == "" {
			shares[i].split = "train"
		}
	}
	return shares, err
}

// readFrontMatter returns the YAML above a README's text, nil when there is none.
func readFrontMatter(name string) ([]byte, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("README.md: %w", bareCause(err))
	}
	defer file.Close()
	const most = 4 << 20 // those that describe thousands of columns are large
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, fmt.Errorf("README.md: %w", bareCause(err))
	}
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte(byteOrder)), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		return nil, nil
	}
	head, _, ok := bytes.Cut(append([]byte("\n"), rest...), []byte("\n---"))
	if !ok {
		return nil, errors.New("README.md: the lines --- that begin and end its settings are not both there")
	}
	return head, nil
}
