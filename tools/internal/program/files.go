package program

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/sandbox"
)

// Bounds of a program's files: they are held in memory and written at every start.
const (
	maxFiles = 2000
	maxBytes = 64 << 20
)

// ReadFiles reads files and folders of the runner, sorted by destination. It does not follow links inside a folder, which could
// lead out of it.
func ReadFiles(paths []string) ([]sandbox.FileWrite, error) {
	var files []sandbox.FileWrite
	total := int64(0)
	for _, given := range paths {
		given, err := filepath.Abs(given)
		if err != nil {
			return nil, err
		}
		root, err := filepath.EvalSymlinks(given) // a path in the configuration may be a link
		if err != nil {
			return nil, fmt.Errorf("files: %s: %w", given, err)
		}
		err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				if name != root && (entry.Name() == "__pycache__" || entry.Name() == ".git") {
					return fs.SkipDir // made by running the program, and not a part of it
				}
				return nil
			case !entry.Type().IsRegular():
				if name == root {
					return fmt.Errorf("%s is neither a file nor a folder", given)
				}
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if total += info.Size(); total > maxBytes || len(files) >= maxFiles {
				return fmt.Errorf("its files are more than %d, or over %d MiB", maxFiles, maxBytes>>20)
			}
			data, err := os.ReadFile(name)
			target := path.Join(filepath.Base(given), filepath.ToSlash(strings.TrimPrefix(name, root)))
			files = append(files, sandbox.FileWrite{Path: target, Data: data, Mode: info.Mode().Perm(), Replace: true})
			return err
		})
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

// Put writes a program's files below a directory of the sandbox, whatever lay there before. The directory exists afterwards.
func Put(ctx context.Context, box sandbox.Sandbox, dir string, files []sandbox.FileWrite) error {
	writes := make([]sandbox.FileWrite, len(files), len(files)+1)
	for i, file := range files {
		writes[i] = file
		writes[i].Path = path.Join(dir, file.Path)
	}
	if len(writes) == 0 {
		writes = append(writes, sandbox.FileWrite{Path: path.Join(dir, ".program"), Replace: true})
	}
	if err := box.Files().Write(ctx, writes...); err != nil {
		return fmt.Errorf("put its files in place: %w", err)
	}
	return nil
}
