// Package harbor reads task directories in Harbor's format, in which Terminal-Bench comes, as rows of a dataset.
//
// It reads Terminal-Bench's first format, too. A task that cannot be played as specified becomes a row with the reasons, such as
// devices. No part of a task is left out silently.
package harbor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

const (
	configName  = "task.toml"
	mostEntries = 1 << 20 // of a directory that is searched for tasks
)

// Dir is a directory that is a task or holds tasks below it.
type Dir struct {
	path  string
	tasks []string // where they lie, sorted; "." is the directory itself
}

// Row is a task as a row of a dataset, or the reasons why it cannot be one.
type Row struct {
	File   string // its task.toml
	Object json.RawMessage
	Wrong  []string
}

// Open finds the tasks in a directory: the directory itself, or any below it that has a task.toml, or a task.yaml of
// Terminal-Bench. It returns nil when
// there is none. Directories whose name begins with a dot are passed over.
func Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	found, entries := &Dir{path: dir}, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if entries++; entries > mostEntries {
			return fmt.Errorf("more than %d files and directories, which are too many to look through", mostEntries)
		}
		switch {
		case err != nil || !entry.IsDir():
			return err
		case name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		}
		if _, err := root.Lstat(path.Join(name, configName)); err != nil && !isFirst(root.FS(), name) {
			return nil
		}
		found.tasks = append(found.tasks, name)
		return fs.SkipDir
	})
	if err != nil || len(found.tasks) == 0 {
		return nil, err
	}
	slices.Sort(found.tasks)
	return found, nil
}

// Rows reads the tasks in the order of their paths.
func (d *Dir) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		root, err := os.OpenRoot(d.path)
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer root.Close()
		for _, name := range d.tasks {
			if !yield(d.row(root, name)) {
				return
			}
		}
	}
}

// row reads one task. Only a directory that is not there any more is an error.
func (d *Dir) row(root *os.Root, name string) (Row, error) {
	row := Row{File: filepath.Join(d.path, filepath.FromSlash(name), configName)}
	at, err := filepath.Abs(filepath.Dir(row.File))
	if err != nil {
		return row, err
	}
	own, err := root.OpenRoot(filepath.FromSlash(name))
	if err != nil {
		return row, err
	}
	defer own.Close()
	id := name
	if name == "." {
		id = filepath.Base(at)
	}
	t := &task{at: at, files: own.FS(), left: mostBytes}
	read := t.fields
	if !t.has(configName) {
		row.File, read = filepath.Join(filepath.Dir(row.File), firstName), t.first
	}
	fields := read(id)
	if len(t.wrong) == 0 {
		if row.Object, err = episode.JSON(fields); err != nil {
			t.wrongf("%v", err)
		}
	}
	row.Wrong = t.wrong
	return row, nil
}

// Digest is the hexadecimal SHA-256 of all tasks, their paths and their digests.
func (d *Dir) Digest(ctx context.Context) (string, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	for _, name := range d.tasks {
		own, err := root.OpenRoot(filepath.FromSlash(name))
		if err != nil {
			return "", err
		}
		digest, err := checksum(ctx, own.FS(), parts(own.FS())...)
		if err = errors.Join(err, own.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(sum, "%s\x00%s\n", name, digest)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checksum is a task's digest as Harbor's users know it: SHA-256 over a record for each file that makes the task, sorted
// by path.
func checksum(ctx context.Context, files fs.FS, parts ...string) (string, error) {
	var names []string
	for _, name := range parts {
		err := fs.WalkDir(files, name, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, name)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		digest, err := fileChecksum(files, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s\x00%s\n", name, digest)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func fileChecksum(files fs.FS, name string) (string, error) {
	file, err := openRegular(files, name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
