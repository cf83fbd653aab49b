// Package carry takes files from one state of a sandbox to another, around a snapshot that does not include them, and from one
// sandbox to another.
package carry

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// helper is its name as a sandbox helper.
const helper = "carry"

func init() { sandbox.RegisterHelper(helper, carry) }

// Pack puts the files of a directory into an archive; both are paths in the sandbox.
func Pack(ctx context.Context, sb sandbox.Sandbox, dir, archive string) error {
	return run(ctx, sb, "pack", dir, archive)
}

// Unpack restores the files, and removes the archive.
func Unpack(ctx context.Context, sb sandbox.Sandbox, dir, archive string) error {
	return run(ctx, sb, "unpack", dir, archive)
}

func run(ctx context.Context, sb sandbox.Sandbox, what, dir, archive string) error {
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Helper: helper, Args: []string{what, dir, archive}}, sandbox.RunOptions{})
	if err == nil && result.Exit.Code != 0 {
		err = fmt.Errorf("exit code %d, %q", result.Exit.Code, result.Stderr.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, dir, err)
	}
	return nil
}

func carry(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	do := map[string]func(dir, name string) error{
		"pack": pack, "unpack": unpack, "overwrite": overwrite,
		"send":    func(dir, name string) error { return write(stdout, dir, filepath.Join(dir, name)) },
		"receive": func(dir, name string) error { return receive(stdin, dir, name) },
	}
	if len(args) != 3 || do[args[0]] == nil {
		fmt.Fprintln(stderr, "want pack or unpack with a directory and an archive, send or receive with a directory and a name in it, or overwrite with a file and its content")
		return 2
	}
	err := do[args[0]](args[1], args[2])
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		fmt.Fprintln(stderr, err)
		return full
	}
	fmt.Fprintln(stderr, err)
	return 1
}

// full is the status of what found no room.
const full = 28

func pack(dir, archive string) (err error) {
	if err := os.RemoveAll(archive); err != nil {
		return err
	}
	file, err := os.OpenFile(archive, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file, dir, dir)
}

// write archives what lies at a path in a directory, and below. The directory itself has no entry.
func write(to io.Writer, dir, at string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		if path == at && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return add(w, dir, path, info)
	})
	return errors.Join(err, w.Close())
}

// add leaves out sockets and pipes, whose other ends are gone.
func add(w *tar.Writer, dir, path string, info fs.FileInfo) error {
	if info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe) != 0 {
		return nil
	}
	var link string
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}

func unpack(dir, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := receive(file, dir, ""); err != nil {
		return err
	}
	return os.Remove(archive)
}

// receive makes what an archive has in a directory, under another name unless that is "". Files that are there are replaced.
func receive(archive io.Reader, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// Directories get their modes and times last: writing a file changes the times, and may need other modes.
	var directories []*tar.Header
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if name != "" {
			_, below, _ := strings.Cut(header.Name, "/")
			header.Name = filepath.Join(name, below)
		}
		if header.Typeflag == tar.TypeDir {
			if err := root.Mkdir(header.Name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			directories = append(directories, header)
			continue
		}
		if err := root.RemoveAll(header.Name); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			err = errors.Join(root.Symlink(header.Linkname, header.Name), root.Lchown(header.Name, header.Uid, header.Gid))
		case tar.TypeReg:
			err = fill(root, header, r)
		}
		if err != nil {
			return err
		}
	}
	for _, header := range slices.Backward(directories) {
		if err := settle(root, header); err != nil {
			return err
		}
	}
	return nil
}

func fill(root *os.Root, header *tar.Header, content io.Reader) error {
	file, err := root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close(), settle(root, header))
}

func settle(root *os.Root, header *tar.Header) error {
	return errors.Join(root.Lchown(header.Name, header.Uid, header.Gid), root.Chmod(header.Name, header.FileInfo().Mode()),
		root.Chtimes(header.Name, time.Time{}, header.ModTime))
}
