package guest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// detached returns a descriptor of a new mount of a directory, which keeps the file system alive when this namespace is gone.
// The broker makes a layer for other sandboxes of it.
func detached(name string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("hold on to %s: %w", name, err)
	}
	return fd, nil
}

// stack mounts an overlay of the layers below what commands will write, inside the file system that was mounted for the
// sandbox.
func (r *root) stack() error {
	for _, name := range []string{"upper", "work", "root", "layers"} {
		if err := unix.Mkdir(name, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: name, Err: err}
		}
	}
	names := make([]string, len(r.layers))
	for i, fd := range r.layers {
		names[i] = "layers/" + strconv.Itoa(i)
		if err := unix.Mkdir(names[i], 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: names[i], Err: err}
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, names[i], unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("attach layer %d: %w", i, err)
		}
	}
	wire.CloseAll(r.layers)
	// Short names: all options together must fit into one page.
	if err := unix.Chdir("layers"); err != nil {
		return err
	}
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	merge := func() error { return overlay(names, "../upper", "../work", "../root") }
	if r.boot.Host {
		merge = r.mergeHost
	}
	if err := merge(); err != nil {
		return err
	}
	if err := unix.Chdir(staging); err != nil {
		return err
	}
	r.at = staging + "/root"
	var err error
	r.upper, err = detached("upper")
	return err
}

func overlay(lower []string, upper, work, at string) error {
	options := "userxattr,lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("sandbox", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount %d layers (needs overlay file systems in user namespaces, Linux 5.11): %w", len(lower), err)
	}
	return nil
}

// system makes a root of an image, which commands can write to everywhere. The image is not trusted: its links are not followed
// before the broker's root is out of reach.
func (r *root) system() error {
	if err := unix.Mkdir("mounts", 0o755); err != nil {
		return err
	}
	if err := unix.Chdir("mounts"); err != nil {
		return err
	}
	for _, d := range []Dir{{"dev", 0o755}, {"dev/pts", 0o755}, {"dev/shm", 0o1777}, {"proc", 0o555}, {"tests", 0o755}} {
		if err := unix.Mkdir(d.Path, uint32(d.Mode)); err != nil {
			return &os.PathError{Op: "mkdir", Path: d.Path, Err: err}
		}
		if err := unix.Chmod(d.Path, uint32(d.Mode)); err != nil {
			return err
		}
	}
	pins := func() error { return errors.Join(pin("dev"), pin("dev/shm")) }
	steps, places := []func() error{deviceLinks, pins, devices, mountProc}, []string{"dev", "proc"}
	if !r.boot.Bare {
		steps, places = append(steps, mountTests), append(places, "tests")
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	err := unix.Mount("", "dev", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, "")
	if err != nil {
		return fmt.Errorf("make /dev read-only: %w", err)
	}
	r.openLastPID()
	if err := protectProc(r.boot.Single); err != nil {
		return err
	}
	if err := unix.Chdir(staging + "/mounts"); err != nil {
		return err
	}
	for _, name := range places {
		if err := r.place(name); err != nil {
			return err
		}
	}
	if err := r.placeProgram(); err != nil {
		return err
	}
	if err := r.placeFolder(); err != nil {
		return err
	}
	if err := r.pivot(); err != nil {
		return err
	}
	if !r.boot.Fork {
		if err := r.furnish(); err != nil {
			return err
		}
	}
	return r.nameServer()
}

// place moves a mount to its path in the root.
func (r *root) place(name string) error {
	target, err := r.target(name, unix.O_DIRECTORY)
	if err == unix.ENOENT {
		if err = unix.Mkdir(r.at+"/"+name, 0o755); err == nil {
			target, err = r.target(name, unix.O_DIRECTORY)
		}
	}
	if err != nil {
		return fmt.Errorf("the image's /%s is not a directory: %w", name, err)
	}
	defer unix.Close(target)
	if err := unix.MoveMount(unix.AT_FDCWD, name, target, "", unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("place /%s: %w", name, err)
	}
	return nil
}

// placeProgram binds the program for helpers, read-only as it is in the broker's root.
func (r *root) placeProgram() error {
	name := below(Program)
	target, err := r.target(name, 0)
	if err == unix.ENOENT {
		if err = put(r.at+Program, nil, 0o444); err == nil {
			target, err = r.target(name, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("the image has a %s of its own: %w", Program, err)
	}
	defer unix.Close(target)
	if err := unix.Mount(Program, "/proc/self/fd/"+strconv.Itoa(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", Program, err)
	}
	return nil
}

// placeFolder binds the read-only folder, in a root of either kind.
func (r *root) placeFolder() error {
	name := r.boot.Folder
	if name == "" {
		return nil
	}
	if err := unix.Mkdir(r.at+"/"+name, 0o755); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mkdir", Path: "/" + name, Err: err}
	}
	target, err := r.target(name, unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("the image's /%s is not a directory: %w", name, err)
	}
	defer unix.Close(target)
	if err := unix.Mount(FoldersDir+"/"+r.boot.Digest, "/proc/self/fd/"+strconv.Itoa(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind /%s: %w", name, err)
	}
	return nil
}

// target opens a name at the top of the root, which must not be a link.
func (r *root) target(name string, flags uint64) (int, error) {
	at, err := unix.Open(r.at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.Openat2(at, name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
}

// furnish adds files that commands rely on and images lack. It runs after the change of the root, so that the image's links
// lead to places in the sandbox.
func (r *root) furnish() error {
	dirs := []Dir{{"/etc", 0o755}}
	if !r.boot.Bare {
		dirs = append(dirs, Dir{"/tmp", 0o1777}, Dir{"/var/tmp", 0o1777}, Dir{"/root", 0o700}, Dir{"/run", 0o755})
	}
	for _, d := range dirs {
		if _, err := os.Stat(d.Path); err == nil {
			continue
		}
		if err := os.MkdirAll(d.Path, 0o755); err != nil {
			return err
		}
		if err := unix.Chmod(d.Path, uint32(d.Mode)); err != nil {
			return err
		}
	}
	for i := range r.image.Files {
		f := &r.image.Files[i]
		switch f.Path {
		case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf":
			if err := os.Remove(f.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err := put(f.Path, f.Data, uint32(f.Mode)); err != nil {
				return err
			}
		}
	}
	if r.boot.Bare {
		return nil
	}
	return os.MkdirAll(r.boot.Workdir, 0o755)
}
