package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// Folder is a folder of files that commands may read and run, and not change. It is made once and not changed: a backend that
// mounts it makes one copy of it, which all sandboxes share, and keeps that until the backend is closed.
type Folder struct {
	// Name is that of the folder, at the top of a sandbox's files: at the top, no command can put another folder in its place. A
	// backend that cannot mount it writes it into the home directory.
	Name string
	// Files are what is in it, by paths below it. Without any, the folder lies in the machine already.
	Files []FileWrite
	// Digest tells folders apart.
	Digest string
}

// NewFolder makes a folder, whose files lose the permission to be written.
func NewFolder(name string, files ...FileWrite) *Folder {
	f := &Folder{Name: name, Files: slices.Clone(files)}
	slices.SortFunc(f.Files, func(a, b FileWrite) int { return cmp.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for i := range f.Files {
		file := &f.Files[i]
		file.Mode = file.Perm() &^ 0o222
		fmt.Fprintf(sum, "%q %o %d\n", file.Path, file.Mode, len(file.Data))
		sum.Write(file.Data)
	}
	f.Digest = fmt.Sprintf("%x", sum.Sum(nil))
	return f
}

var (
	folderName   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	folderDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check says why a folder cannot be in a sandbox.
func (f *Folder) Check() error {
	if f == nil {
		return nil
	}
	if !folderName.MatchString(f.Name) || len(f.Files) > 0 && !folderDigest.MatchString(f.Digest) {
		return fmt.Errorf("read-only folder %.100q: want a name of a-z, 0-9 and '-', and a digest", f.Name)
	}
	for _, file := range f.Files {
		if !fs.ValidPath(file.Path) || file.Path == "." {
			return fmt.Errorf("read-only folder %s: %.200q is not a path within it", f.Name, file.Path)
		}
	}
	return nil
}

// Mounted is what the agent of a backend is told that has mounted the folder itself.
func (f *Folder) Mounted() *Folder {
	if f == nil {
		return nil
	}
	return &Folder{Name: f.Name}
}

// Put writes the files below a directory of a sandbox. It is for backends that cannot mount them: commands may change them.
func (f *Folder) Put(ctx context.Context, files Files, at string) error {
	writes := slices.Clone(f.Files)
	for i := range writes {
		writes[i].Path = path.Join(at, writes[i].Path)
	}
	if err := files.Write(ctx, writes...); err != nil {
		return fmt.Errorf("put the folder %s into the sandbox: %w", f.Name, err)
	}
	return nil
}

// Keep writes the folder below a directory of this machine, unless it lies there already, and returns its path; "" for nil.
func (f *Folder) Keep(dir string) (string, error) {
	if f == nil {
		return "", nil
	}
	above := filepath.Join(dir, "folder-"+f.Digest)
	at := filepath.Join(above, f.Name)
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	err := os.MkdirAll(above, 0o755)
	if err != nil {
		return "", err
	}
	making, err := os.MkdirTemp(above, ".making")
	if err != nil {
		return "", err
	}
	errs := []error{os.Chmod(making, 0o755)}
	for _, file := range f.Files {
		name := filepath.Join(making, file.Path)
		errs = append(errs, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, file.Data, file.Mode))
	}
	err = errors.Join(errs...)
	if err == nil {
		err = os.Rename(making, at)
	}
	if err != nil {
		_ = os.RemoveAll(making)
	}
	if _, missing := os.Stat(at); missing != nil { // else another call was faster
		return "", fmt.Errorf("keep the folder %s: %w", f.Name, err)
	}
	return at, nil
}

// Changed finds the files that differ from those in a sandbox, sorted, for backends whose folders are not fixed.
func (f *Folder) Changed(ctx context.Context, sb Sandbox) (paths []string, err error) {
	for _, file := range f.Files {
		data, _, err := sb.Files().Read(ctx, path.Join(sb.Layout().ReadOnly, file.Path), 0, int64(len(file.Data))+1)
		if errors.Is(err, ErrGone) || ctx.Err() != nil {
			return nil, fmt.Errorf("look at the folder %s: %w", f.Name, err)
		}
		if err != nil || !bytes.Equal(data, file.Data) {
			paths = append(paths, file.Path)
		}
	}
	return paths, nil
}
