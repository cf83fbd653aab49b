package datasets

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
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
		Files   dataFiles `yaml:"data_files"`
		Dir     string    `yaml:"data_dir"`
		Default bool      `yaml:"default"`
	} `yaml:"configs"`
}

// texts is one text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]string)(t))
	}
	if *t = nil; node.Value != "" {
		*t = texts{node.Value}
	}
	return nil
}

// dataFiles are the paths of each split of a config. They are written as a mapping of split to path, a list of {split, path}, or a
// path or a list of paths, which are the split train.
type dataFiles map[string]texts

func (d *dataFiles) UnmarshalYAML(node *yaml.Node) error {
	var list []struct {
		Split string
		Path  texts
	}
	if node.Kind == yaml.MappingNode {
		return node.Decode((*map[string]texts)(d))
	}
	*d = dataFiles{}
	if node.Decode(&list) == nil {
		for _, part := range list {
			(*d)[part.Split] = append((*d)[part.Split], part.Path...)
		}
		return nil
	}
	var paths texts
	err := node.Decode(&paths)
	(*d)["train"] = paths
	return err
}

// readCard reads the README.md of a directory: its card, and the files that its configs name. Either may be missing.
func readCard(dir string) (Card, []dataFile, error) {
	head, err := readFrontMatter(filepath.Join(dir, "README.md"))
	if err != nil || head == nil {
		return Card{}, nil, err
	}
	var matter frontMatter
	if err := yaml.Unmarshal(head, &matter); err != nil {
		return Card{}, nil, fmt.Errorf("what stands between its lines --- is not as expected: %w", err)
	}
	var all []dataFile
	for _, config := range matter.Configs {
		name := cmp.Or(config.Name, "default")
		var files []dataFile
		if len(config.Files) == 0 && config.Dir != "" { // without either, a config may set other things
			if files, err = filesBelow(dir, config.Dir); err != nil {
				return Card{}, nil, fmt.Errorf("config %s: %w", name, err)
			}
		}
		for _, split := range slices.Sorted(maps.Keys(config.Files)) {
			paths, err := config.Files[split].find(dir, config.Dir)
			if err != nil {
				return Card{}, nil, fmt.Errorf("config %s, split %s: %w", name, split, err)
			}
			for _, path := range paths {
				files = append(files, dataFile{path: path, split: split})
			}
		}
		for _, file := range files {
			file.subset, file.preferred = name, config.Default
			all = append(all, file)
		}
	}
	return Card{Name: matter.PrettyName, License: matter.License, Language: matter.Language, Tags: matter.Tags}, all, nil
}

// find lists what the patterns of a split match, those of each pattern sorted.
func (t texts) find(dir, below string) ([]string, error) {
	var files []string
	for _, pattern := range t {
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
		files = append(files, slices.DeleteFunc(found, func(file string) bool { return slices.Contains(files, file) })...)
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

// filesBelow sorts the files of one directory of a dataset by their names.
func filesBelow(dir, below string) ([]dataFile, error) {
	if err := inside(below); err != nil {
		return nil, err
	}
	files, err := filesByName(filepath.Join(dir, filepath.FromSlash(below)))
	for i := range files {
		files[i].path = path.Join(below, files[i].path)
		files[i].split = cmp.Or(files[i].split, "train")
	}
	return files, err
}

// readFrontMatter returns the YAML above a README's text, nil when there is none.
func readFrontMatter(name string) ([]byte, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, bareCause(err)
	}
	defer file.Close()
	const most = 4 << 20 // those that describe thousands of columns are large
	lines := bufio.NewScanner(io.LimitReader(file, most))
	lines.Buffer(nil, most)
	if !lines.Scan() || strings.TrimPrefix(lines.Text(), byteOrder) != "---" {
		return nil, lines.Err()
	}
	head := []byte{}
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "---") {
			return head, nil
		}
		head = append(append(head, lines.Bytes()...), '\n')
	}
	return nil, cmp.Or(lines.Err(), errors.New("the lines --- that begin and end its settings are not both there"))
}
