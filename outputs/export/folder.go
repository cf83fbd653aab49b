package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// folderMark lies in each folder that an export wrote: one without it holds something else and is not replaced.
const folderMark = ".trajgen-export"

// folder is a directory of files that has its name only when it is whole.
type folder struct {
	path, temporary, old string // where an earlier export is while it makes way
	lock                 *os.File
	open                 map[*file]bool // those that are being written
	files                []FileInfo
	committed            bool
}

// openFolder begins a folder. One that is there must be empty or an earlier export.
func openFolder(path string) (*folder, error) {
	path = filepath.Clean(path)
	dir, name := filepath.Split(path)
	if dir = filepath.Clean(dir); name == "." || name == ".." || name == "" {
		return nil, fmt.Errorf("export to %s: want the name of a new directory", path)
	}
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make directory for export: %w", disk.Explain(dir, err))
	}
	lock, err := openTemporary(filepath.Join(dir, "."+name+".lock"))
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, temporary: filepath.Join(dir, "."+name+".tmp"), old: filepath.Join(dir, "."+name+".old"), lock: lock, open: map[*file]bool{}}
	if err := f.replaceable(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	err = os.RemoveAll(f.temporary)
	if err == nil {
		err = os.Mkdir(f.temporary, 0o777)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(f.temporary, folderMark), nil, 0o666)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin export: %w", disk.Explain(path, err)), f.close())
	}
	return f, nil
}

// replaceable refuses what is there unless it is empty or an earlier export. One that had made way for an export which a
// crash ended gets its name back.
func (f *folder) replaceable() error {
	entries, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) && marked(f.old) {
		if err = os.Rename(f.old, f.path); err == nil {
			entries, err = os.ReadDir(f.path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("export to %s: %w", f.path, disk.Explain(f.path, err))
	case len(entries) > 0 && !marked(f.path):
		return fmt.Errorf("%s holds something that no export wrote (want a new directory, or an earlier export)", f.path)
	}
	return nil
}

// marked says whether an export wrote a directory.
func marked(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, folderMark))
	return err == nil
}

// begin opens a file of the folder, whose name may have directories in it. It refuses a name that leads out of it.
func (f *folder) begin(name string) (*file, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("export to %s: %q is not a name of a file in it", f.path, name)
	}
	path := filepath.Join(f.temporary, name)
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	var out *os.File
	if err == nil {
		out, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", f.path, disk.Explain(f.path, err))
	}
	begun := newFile(out, filepath.Join(f.path, name))
	f.open[begun] = true
	return begun, nil
}

// done completes a file that was begun.
func (f *folder) done(begun *file, rows int64) error {
	delete(f.open, begun)
	err := begun.complete(rows)
	if err := errors.Join(err, begun.disk.Close()); err != nil {
		return err
	}
	f.files = append(f.files, begun.whole)
	return nil
}

// create writes one file of the folder.
func (f *folder) create(name string, rows int64, content []byte) error {
	out, err := f.begin(name)
	if err != nil {
		return err
	}
	if _, err := out.Write(content); err != nil {
		return err
	}
	return f.done(out, rows)
}

// createJSON writes a file with one value.
func (f *folder) createJSON(name string, rows int64, value any) error {
	line, err := encodeLine(value)
	if err != nil {
		return err
	}
	return f.create(name, rows, line)
}

// commit makes the folder durable and gives it its name; an earlier export makes way.
func (f *folder) commit() ([]FileInfo, error) {
	err := filepath.WalkDir(f.temporary, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = disk.Sync(path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("commit export: %w", err)
	}
	if err := f.takeName(); err != nil {
		return nil, fmt.Errorf("commit export: %w", disk.Explain(f.path, err))
	}
	f.committed = true
	if err := disk.Sync(filepath.Dir(f.path)); err != nil {
		return f.files, fmt.Errorf("commit export: %w", err)
	}
	if err := errors.Join(os.RemoveAll(f.temporary), f.removeOld()); err != nil {
		return f.files, fmt.Errorf("remove an earlier export: %w", err)
	}
	return f.files, nil
}

// takeName gives the folder its name. An earlier export has it until then: the two change names at once, or, on a file
// system that cannot do that, one after the other.
func (f *folder) takeName() error {
	err := disk.Exchange(f.temporary, f.path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist): // there is no earlier one
		return os.Rename(f.temporary, f.path)
	case !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	if err := f.removeOld(); err != nil {
		return err
	}
	if err := os.Rename(f.path, f.old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(f.temporary, f.path); err != nil {
		return errors.Join(err, os.Rename(f.old, f.path))
	}
	return nil
}

// removeOld removes what made way: an earlier export, or an empty directory.
func (f *folder) removeOld() error {
	if marked(f.old) {
		return os.RemoveAll(f.old)
	}
	_ = os.Remove(f.old) // not when other files are in it
	return nil
}

// close removes what was not committed.
func (f *folder) close() error {
	var errs []error
	for begun := range f.open {
		errs = append(errs, begun.disk.Close())
	}
	if !f.committed {
		errs = append(errs, os.RemoveAll(f.temporary))
	}
	return errors.Join(append(errs, os.Remove(f.lock.Name()), f.lock.Close())...)
}
