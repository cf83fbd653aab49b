package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"trajgen/sandbox"
)

// files are the files below a sandbox's directory. Everything goes through an os.Root, which no link leads out of.
type files struct{ box *box }

// resolve turns a path into one below the sandbox's directory, with links followed as far as the path exists. It refuses paths
// outside.
func (f files) resolve(op, name string) (string, error) {
	if err := f.box.check(); err != nil {
		return "", err
	}
	full := name
	if !filepath.IsAbs(name) {
		full = f.box.Layout().Workdir + "/" + name
	}
	resolved, err := evalExisting(full)
	if err != nil {
		return "", &fs.PathError{Op: op, Path: name, Err: cause(err)}
	}
	rel, err := filepath.Rel(f.box.dir, resolved)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return rel, nil
}

// evalExisting resolves links in the part of a path that exists and keeps the rest as it is.
func evalExisting(full string) (string, error) {
	for range 40 {
		resolved, err := filepath.EvalSymlinks(full)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return resolved, err
		}
		dir, base := filepath.Split(filepath.Clean(full))
		above, err := evalExisting(filepath.Clean(dir))
		if err != nil {
			return "", err
		}
		target, err := os.Readlink(filepath.Join(above, base))
		if err != nil {
			return filepath.Join(above, base), nil
		}
		if full = target; !filepath.IsAbs(target) {
			full = above + "/" + target
		}
	}
	return "", syscall.ELOOP
}

// cause unwraps errors that name host paths.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

func (f files) Stat(ctx context.Context, name string) (sandbox.Info, error) {
	rel, err := f.begin(ctx, "stat", name)
	if err != nil {
		return sandbox.Info{}, err
	}
	info, err := f.box.root.Lstat(rel)
	if err != nil {
		return sandbox.Info{}, &fs.PathError{Op: "stat", Path: name, Err: cause(err)}
	}
	return f.info(rel, info), nil
}

func (f files) begin(ctx context.Context, op, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	return f.resolve(op, name)
}

func (f files) info(rel string, info fs.FileInfo) sandbox.Info {
	full := filepath.Join(f.box.dir, rel)
	return sandbox.Info{Name: path.Base(full), Path: full, Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}
}

func (f files) Read(ctx context.Context, name string, offset, limit int64) ([]byte, sandbox.Info, error) {
	rel, err := f.begin(ctx, "read", name)
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	fail := func(err error) ([]byte, sandbox.Info, error) {
		return nil, sandbox.Info{}, &fs.PathError{Op: "read", Path: name, Err: cause(err)}
	}
	if offset < 0 || limit < 0 {
		return fail(fs.ErrInvalid)
	}
	file, err := f.box.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return fail(sandbox.ErrNotRegular)
	}
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return fail(err)
	case info.IsDir():
		return fail(syscall.EISDIR)
	case !info.Mode().IsRegular():
		return fail(sandbox.ErrNotRegular)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, offset, limit))
	if err != nil {
		return fail(err)
	}
	return data, f.info(rel, info), nil
}

func (f files) List(ctx context.Context, name string) ([]sandbox.Info, error) {
	rel, err := f.begin(ctx, "list", name)
	if err != nil {
		return nil, err
	}
	dir, err := f.box.root.Open(rel)
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: cause(err)}
	}
	defer dir.Close()
	found, err := dir.ReadDir(-1)
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: cause(err)}
	}
	entries := make([]sandbox.Info, 0, len(found))
	for _, entry := range found {
		if info, err := entry.Info(); err == nil {
			entries = append(entries, f.info(filepath.Join(rel, entry.Name()), info))
		}
	}
	slices.SortFunc(entries, func(a, b sandbox.Info) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func (f files) Write(ctx context.Context, files ...sandbox.FileWrite) error {
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := f.box.check(); err != nil {
			return err
		}
		if err := f.write(file); err != nil {
			if errors.Is(err, sandbox.ErrGone) {
				return err
			}
			return &fs.PathError{Op: "write", Path: file.Path, Err: cause(err)}
		}
	}
	return nil
}

func (f files) write(file sandbox.FileWrite) error {
	mode := file.Perm()
	rel, err := f.destination(file)
	if err != nil {
		return err
	}
	root := f.box.root
	if !file.Replace {
		switch info, err := root.Lstat(rel); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			return syscall.EISDIR
		case !info.Mode().IsRegular():
			return sandbox.ErrNotRegular
		default:
			mode = info.Mode().Perm()
		}
		if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		temporary := filepath.Join(filepath.Dir(rel), ".new-"+strconv.Itoa(n)+"~")
		out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return err
		}
		_, err = out.Write(file.Data)
		err = errors.Join(err, out.Chmod(mode), out.Close())
		if err == nil {
			err = root.Rename(temporary, rel)
		}
		if err != nil {
			_ = root.Remove(temporary)
		}
		return err
	}
}

// destination returns where a file goes, below the sandbox's directory. With Replace, it follows no link and removes whatever
// is in the way.
func (f files) destination(file sandbox.FileWrite) (string, error) {
	if !file.Replace {
		return f.resolve("write", file.Path)
	}
	full := file.Path
	if !filepath.IsAbs(full) {
		full = filepath.Join(f.box.Layout().Workdir, full)
	}
	rel, err := filepath.Rel(f.box.dir, filepath.Clean(full))
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fs.ErrPermission
	}
	root := f.box.root
	for i, c := range rel {
		if c != '/' {
			continue
		}
		parent := rel[:i]
		info, err := root.Lstat(parent)
		if err == nil && !info.IsDir() {
			err = root.Remove(parent)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := root.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return rel, root.RemoveAll(rel)
}

func (f files) Remove(ctx context.Context, paths ...string) error {
	for _, name := range paths {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := f.box.check(); err != nil {
			return err
		}
		if err := f.remove(name); err != nil {
			return &fs.PathError{Op: "remove", Path: name, Err: cause(err)}
		}
	}
	return nil
}

func (f files) remove(name string) error {
	if name == "" {
		return fs.ErrInvalid
	}
	full := name
	if !filepath.IsAbs(full) {
		full = f.box.Layout().Workdir + "/" + full
	}
	// The last element is not followed, unless it is "." or "..".
	dir, base := filepath.Split(strings.TrimRight(full, "/"))
	if base == "." || base == ".." {
		dir, base = full, ""
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	resolved = filepath.Join(resolved, base)
	rel, err := filepath.Rel(f.box.dir, resolved)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return fs.ErrPermission
	}
	if _, err := f.box.root.Lstat(rel); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	err = f.box.root.RemoveAll(rel)
	if errors.Is(err, fs.ErrPermission) {
		f.openUp(rel)
		err = f.box.root.RemoveAll(rel)
	}
	return err
}

// openUp gives this user the permissions to empty a directory and all below it.
func (f files) openUp(rel string) {
	info, err := f.box.root.Lstat(rel)
	if err != nil || !info.IsDir() {
		return
	}
	_ = f.box.root.Chmod(rel, 0o700)
	dir, err := f.box.root.Open(rel)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		f.openUp(filepath.Join(rel, name))
	}
}
