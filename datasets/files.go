package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// testsPrefix begins the paths of a verifier's files that go to its private directory.
const testsPrefix = "/tests/"

func readFiles(p *problems, t *episode.Task, at string, value json.RawMessage) {
	t.Files = fileMap(p, at, value, cleanPath)
}

// fileMap takes a map of path to content. Paths are cleaned, and two that name one place are refused.
func fileMap(p *problems, at string, value json.RawMessage, clean func(string) (string, error)) episode.Files {
	entries, err := members(structured(value))
	if err != nil {
		p.addf("%s: %v of paths and contents", at, err)
		return nil
	}
	files := make(episode.Files, len(entries))
	for _, entry := range entries {
		name, err := clean(entry.Name)
		if err != nil {
			p.addf("%s: path %q %v", at, entry.Name, err)
			continue
		}
		if _, taken := files[name]; taken {
			p.addf("%s: %q is there twice", at, name)
		}
		var file episode.File
		if text, ok := asString(entry.Value); ok {
			file = episode.File(text)
		} else if err := file.UnmarshalJSON(entry.Value); err != nil {
			p.addf("%s: %q: %v", at, entry.Name, err)
		}
		files[name] = file
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for folder := path.Dir(name); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if _, taken := files[folder]; taken {
				p.addf("%s: %q is a file and a directory", at, folder)
			}
		}
	}
	return files
}

// cleanPath allows what stays below the working directory.
func cleanPath(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("is empty")
	case strings.ContainsRune(name, 0):
		return "", errors.New("holds a NUL character")
	case strings.HasPrefix(name, "/"):
		return "", errors.New("is absolute; want one relative to the working directory")
	case strings.HasSuffix(name, "/"):
		return "", errors.New("names a directory; directories are made for the files in them")
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", errors.New(`holds ".."; want one below the working directory`)
		}
		if len(part) > 255 {
			return "", errors.New("has a part of more than 255 bytes")
		}
	}
	if name = path.Clean(name); name == "." {
		return "", errors.New("names the working directory itself")
	}
	return name, nil
}

// cleanRootPath is for files anywhere in a container.
func cleanRootPath(name string) (string, error) {
	below, ok := strings.CutPrefix(name, "/")
	if !ok {
		return "", errors.New("is not absolute")
	}
	cleaned, err := cleanPath(below)
	return "/" + cleaned, err
}

// cleanTestPath also allows the verifier's private directory.
func cleanTestPath(name string) (string, error) {
	private, ok := strings.CutPrefix(name, testsPrefix)
	if !ok {
		cleaned, err := cleanPath(name)
		if err != nil && strings.HasPrefix(name, "/") {
			return "", fmt.Errorf("is absolute; want one below %s or relative to the working directory", testsPrefix)
		}
		return cleaned, err
	}
	cleaned, err := cleanPath(private)
	return testsPrefix + cleaned, err
}
