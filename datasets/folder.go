package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"trajgen/datasets/internal/harbor"
)

// maxFiles bounds what one directory may bring.
const maxFiles = 100_000

// findFolder lists the files of a directory that are to be read.
func findFolder(dir string, options Options) ([]piece, Card, error) {
	harbor, is, err := harborPiece(dir)
	switch {
	case err != nil:
		return nil, Card{}, err
	case is && (options.Split != "" || options.Subset != ""):
		return nil, Card{}, errors.New("split and subset choose among data files, and this is a directory of kind harbor")
	case is:
		return []piece{harbor}, Card{}, nil
	}
	card, files, err := readCard(dir)
	if err != nil {
		return nil, Card{}, fmt.Errorf("README.md: %w", err)
	}
	if len(files) == 0 {
		if files, err = filesByName(dir); err != nil {
			return nil, Card{}, err
		}
	}
	if files, err = chosen(files, "subset", options.Subset, func(f dataFile) string { return f.subset }); err != nil {
		return nil, Card{}, err
	}
	if files, err = chosen(files, "split", options.Split, func(f dataFile) string { return f.split }); err != nil {
		return nil, Card{}, err
	}
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = filepath.Join(dir, filepath.FromSlash(file.path))
	}
	pieces, err := filePieces(paths, dir)
	return pieces, card, err
}

// dataFile is a file below the directory, with the subset and the split that it belongs to, if the directory has any.
type dataFile struct {
	path          string
	subset, split string
	preferred     bool // its subset, when none is asked for
}

// chosen leaves the files of the subset, or of the split, that is asked for. It refuses an ambiguous choice.
func chosen(files []dataFile, what, asked string, name func(dataFile) string) ([]dataFile, error) {
	var have []string
	preferred := ""
	for _, f := range files {
		have = append(have, name(f))
		if what == "subset" && (f.preferred || f.subset == "default" && preferred == "") {
			preferred = f.subset
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	choice := asked
	switch {
	case asked != "" && len(have) == 1 && have[0] == "":
		return nil, fmt.Errorf("it has no %ss; leave --%s out", what, what)
	case asked != "" && !slices.Contains(have, asked):
		return nil, fmt.Errorf("it has no %s %q (have %s)", what, asked, strings.Join(have, ", "))
	case asked == "" && len(have) == 1:
		return files, nil
	case asked == "" && preferred == "":
		return nil, fmt.Errorf("it has several %ss: say --%s %s", what, what, strings.Join(have, " or "))
	case asked == "":
		choice = preferred
	}
	return slices.DeleteFunc(files, func(f dataFile) bool { return name(f) != choice }), nil
}

// filesByName sorts the data files below a directory into subsets and splits by how such files are usually called.
func filesByName(dir string) ([]dataFile, error) {
	paths, err := findData(dir)
	if err != nil {
		return nil, err
	}
	var with, without []dataFile
	for _, path := range paths {
		if subset, split := shareOf(path); split != "" {
			with = append(with, dataFile{path: path, subset: subset, split: split})
		} else {
			without = append(without, dataFile{path: path})
		}
	}
	if len(with) > 0 && len(without) > 0 {
		return nil, fmt.Errorf("%s is of the split %q by its name, and of %s no name says a split; choose files with a pattern, such as %s",
			with[0].path, with[0].split, without[0].path, filepath.Join(dir, "**", "*"+path.Ext(without[0].path)))
	}
	return append(with, without...), nil
}

// findData lists the files below a directory that hold rows, sorted. It leaves out names that begin with a dot or name no format.
// JSON and YAML files only count if there are no others: beside data they are settings.
func findData(dir string) ([]string, error) {
	const most = 20 // files without a telling name that are looked into
	byFormat := map[string][]string{}
	var unnamed []string
	count := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return bareCause(err)
		}
		name, format := entry.Name(), formatNamed(at)
		hidden := at != "." && strings.HasPrefix(name, ".")
		switch {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || slices.Contains(describing, name):
			return nil
		case format == "" && len(unnamed) < most:
			unnamed = append(unnamed, at)
			return nil
		case format == "":
			return nil
		case format == "yaml" || suffixOf(name) == ".json":
			format = settings
		}
		info, err := os.Stat(filepath.Join(dir, at)) // caches keep a dataset's files as links
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if count++; count > maxFiles {
			return fmt.Errorf("more than %d data files", maxFiles)
		}
		byFormat[format] = append(byFormat[format], at)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(byFormat) > 1 {
		delete(byFormat, settings)
	}
	names := slices.Sorted(maps.Keys(byFormat))
	if len(names) == 1 {
		return slices.Sorted(slices.Values(byFormat[names[0]])), nil
	}
	for _, at := range unnamed {
		if head, _, err := readHead(filepath.Join(dir, at)); len(names) == 0 && err == nil && looksLikeJSONL(head) {
			return nil, fmt.Errorf("no data file is below the directory by its name, but %s holds JSON Lines: "+
				"give that file, or name it .jsonl", at)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no data file is below the directory (they are named %s)", knownSuffixes())
	}
	for i, format := range names {
		names[i] = fmt.Sprintf("%d of %s such as %s", len(byFormat[format]), format, byFormat[format][0])
	}
	return nil, fmt.Errorf("the data files below it are of several formats: %s; choose with a pattern, such as %s",
		strings.Join(names, ", "), filepath.Join(dir, "**", "*.jsonl"))
}

const settings = "JSON and YAML"

// describing are the files that libraries put beside the data.
var describing = []string{"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}

// shard is how a split's files are numbered: train-00000-of-00002.parquet, with or without a hash at the end.
var shard = regexp.MustCompile(`^(.+)-\d{5}-of-\d{5}(-[0-9a-f]+)?\.`)

// splitWords are what splits are called, and the names that they go by.
var splitWords = map[string]string{
	"train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
	"test": "test", "testing": "test", "eval": "test", "evaluation": "test",
}

// shareOf tells the subset and the split of a file: <subset>/<split>-00000-of-00001.parquet, where the subset may be
// left out and a directory named data counts as none; or a word for a split in the file's name or as a directory.
func shareOf(file string) (subset, split string) {
	dirs := strings.Split(path.Dir(file), "/")
	if dirs[0] == "." {
		dirs = nil
	}
	base := path.Base(file)
	if match := shard.FindStringSubmatch(base); match != nil && match[1] != "data" {
		split = match[1]
	} else if match != nil && len(dirs) > 0 {
		// Datasets that a library saved: <split>/data-00000-of-00001.arrow.
		split, dirs = dirs[len(dirs)-1], dirs[:len(dirs)-1]
	} else {
		split = splitWord(strings.TrimSuffix(base, path.Ext(base)))
	}
	dirs = slices.DeleteFunc(dirs, func(name string) bool {
		if word := splitWords[strings.ToLower(name)]; split == "" && word != "" {
			split = word
			return true
		}
		return name == "data"
	})
	if subset = strings.Join(dirs, "/"); subset == "" {
		subset = "default"
	}
	return subset, split
}

var notLetters = regexp.MustCompile(`[^A-Za-z]+`)

func splitWord(name string) string {
	for _, word := range notLetters.Split(strings.ToLower(name), -1) {
		if split := splitWords[word]; split != "" {
			return split
		}
	}
	return ""
}

// harborPiece is a directory that is a task in Harbor's format, or has some below it; false for any other.
func harborPiece(dir string) (p piece, is bool, err error) {
	found, err := harbor.Open(dir)
	if err != nil || found == nil {
		return piece{}, false, err
	}
	p = piece{name: "harbor", path: dir, format: "harbor"}
	p.rows = func(yield func(row) bool) error { return harborRows(found, yield) }
	p.digest = func(ctx context.Context) (string, error) {
		sum, err := found.Digest(ctx)
		if err != nil {
			return "", fmt.Errorf("digest dataset %s: %w", dir, err)
		}
		return "sha256:" + sum, nil
	}
	return p, true, nil
}

// harborRows reads the tasks of a directory in the order of their paths.
func harborRows(found *harbor.Dir, yield func(row) bool) error {
	for task, err := range found.Rows() {
		if err != nil {
			return err
		}
		r := row{file: task.File, line: 1, text: task.Object}
		if len(task.Wrong) > 0 {
			r.text, r.broken = nil, strings.Join(task.Wrong, "; ")
		}
		if !yield(r) {
			return nil
		}
	}
	return nil
}
