package harbor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

const (
	mostBytes = 48 << 20 // of all files of a task that are used
	mostTests = 32 << 20 // of those that its tests are: a sandbox has a place of its own for them
	mostText  = 1 << 20  // of a file that is read here
)

// task is a directory that is read, with what is wrong with it so far.
type task struct {
	at    string // its directory on this machine
	files fs.FS  // of the directory, which nothing leads out of
	left  int    // of mostBytes
	wrong []string
}

func (t *task) wrongf(format string, arguments ...any) {
	t.wrong = append(t.wrong, fmt.Sprintf(format, arguments...))
}

// file is one that goes to a sandbox.
type file struct {
	data       []byte
	executable bool
}

// openRegular opens a file, or one that a link within the task leads to.
func openRegular(files fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(files, name) // opening a pipe would wait for its other end
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return files.Open(name)
}

// text reads a file of text; it is "" where there is none.
func (t *task) text(name string) string {
	read, err := t.read(name, mostText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		t.wrongf("read %s: %v", name, err)
	case len(read.data) > mostText:
		t.wrongf("%s has more than the %d bytes that it may", name, mostText)
	case !utf8.Valid(read.data) || slices.Contains(read.data, 0):
		t.wrongf("%s is not text in UTF-8", name)
	default:
		return string(bytes.TrimPrefix(read.data, []byte("\xef\xbb\xbf")))
	}
	return ""
}

// read reads a file; one with more bytes than that is cut one byte behind them.
func (t *task) read(name string, most int) (file, error) {
	opened, err := openRegular(t.files, name)
	if err != nil {
		return file{}, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return file{}, err
	}
	data, err := io.ReadAll(io.LimitReader(opened, int64(most)+1))
	return file{data: data, executable: info.Mode()&0o111 != 0}, err
}

func (t *task) has(name string) bool {
	_, err := fs.Stat(t.files, name)
	return err == nil
}

// tree reads all files below a directory, by their path in it. Links to directories are not followed.
func (t *task) tree(dir string) map[string]file {
	tree := map[string]file{}
	err := fs.WalkDir(t.files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		read, err := t.one(name)
		if err == nil {
			tree[strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")] = read
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.wrongf("read %s: %v", dir, err)
	}
	return tree
}

// one reads a file that goes to a sandbox.
func (t *task) one(name string) (file, error) {
	read, err := t.read(name, t.left)
	if err != nil {
		return file{}, err
	}
	if len(read.data) > t.left {
		return file{}, fmt.Errorf("the task's files have more than %d MiB; put what is large into its image", mostBytes>>20)
	}
	t.left -= len(read.data)
	return read, nil
}

// contents are files as a row has them.
func contents(files map[string]file, below string) episode.Files {
	all := make(episode.Files, len(files))
	for name, f := range files {
		all[below+name] = f.data
	}
	return all
}

func size(files map[string]file) (total int) {
	for _, f := range files {
		total += len(f.data)
	}
	return total
}

func sortedNames[V any](files map[string]V) []string { return slices.Sorted(maps.Keys(files)) }

// quote makes a text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
