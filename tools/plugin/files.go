package plugin

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/sandbox"
)

// Bounds of a plugin's files: they are held in memory and written at every start.
const (
	maxFiles = 2000
	maxBytes = 64 << 20
)

// readFiles reads files and folders, sorted by destination. It does not follow links inside a folder, which could lead out of
// it.
func readFiles(paths []string) ([]sandbox.FileWrite, error) {
	var files []sandbox.FileWrite
	total := int64(0)
	add := func(name, target string, info fs.FileInfo) error {
		if total += info.Size(); total > maxBytes || len(files) >= maxFiles {
			return fmt.Errorf("its files are more than %d, or over %d MiB", maxFiles, maxBytes>>20)
		}
		data, err := os.ReadFile(name)
		files = append(files, sandbox.FileWrite{Path: target, Data: data, Mode: info.Mode().Perm(), Replace: true})
		return err
	}
	for _, root := range paths {
		absolute, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(root) // a path in the configuration may be a link
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		base := filepath.Base(absolute)
		switch {
		case info.Mode().IsRegular():
			err = add(root, base, info)
		case info.IsDir():
			err = readFolder(root, base, add)
		default:
			err = fmt.Errorf("%s is neither a file nor a folder", root)
		}
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
	}
	slices.SortFunc(files, func(a, b sandbox.FileWrite) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(files); i++ {
		if files[i].Path == files[i-1].Path {
			return nil, fmt.Errorf("files: two of them are called %s", files[i].Path)
		}
	}
	return files, nil
}

func readFolder(root, base string, add func(name, target string, info fs.FileInfo) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "__pycache__" || entry.Name() == ".git") {
			return fs.SkipDir // made by running the plugin, and not a part of it
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return add(filepath.Join(root, filepath.FromSlash(name)), path.Join(base, name), info)
	})
}
