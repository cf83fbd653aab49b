package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
)

// What a sandbox sees of the host. Never home directories or directories with keys.
var (
	// rootDirs are directories or links on the host, and in a sandbox the same.
	rootDirs = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	// sharedDirs are shown read-only where they exist.
	sharedDirs = []string{
		"/usr", "/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates",
		"/etc/crypto-policies", "/etc/fonts", "/etc/perl", "/etc/python3*", "/etc/java-*-openjdk", "/etc/terminfo", "/etc/ld.so.conf.d",
	}
	// copiedFiles are small files, of which each sandbox gets a copy.
	copiedFiles = []string{
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/rpc", "/etc/networks",
		"/etc/magic", "/etc/magic.mime", "/etc/inputrc", "/etc/bash.bashrc", "/etc/locale.alias", "/etc/login.defs", "/etc/shells",
		"/etc/host.conf", "/etc/gai.conf", "/etc/ssl/openssl.cnf", "/etc/os-release", "/etc/debian_version", "/etc/lsb-release",
	}
)

// made are files with the same content on every host, so that equal commands give equal results.
var made = []guest.Write{
	{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nbin:x:2:2:bin:/bin:/usr/sbin/nologin\nmail:x:8:8:mail:/var/mail:/usr/sbin/nologin\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nuser:x:1000:1000:user:/home/user:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")},
	{Path: "/etc/group", Mode: 0o644, Data: []byte("root:x:0:\ndaemon:x:1:\nbin:x:2:\ntty:x:5:\nmail:x:8:\nwww-data:x:33:\nstaff:x:50:\nuser:x:1000:\nnogroup:x:65534:\n")},
	{Path: "/etc/hosts", Mode: 0o644, Data: []byte("127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n")},
	{Path: "/etc/hostname", Mode: 0o644, Data: []byte("sandbox\n")},
	{Path: "/etc/resolv.conf", Mode: 0o644, Data: []byte("# no name server\n")},
	{Path: "/etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n")},
	{Path: "/etc/timezone", Mode: 0o644, Data: []byte("Etc/UTC\n")},
}

// maxCopied is the size from which a read-only bind of a file is cheaper than a copy in every sandbox's memory.
const maxCopied = 16 << 10

// readOnly are the attributes of mounts of what sandboxes must not change.
const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// enterImage makes a root file system of what sandboxes may see and moves the broker into it. Guests start with a copy of its
// mounts, so a guest can never reach the host's files, even before it has a root of its own. at is a directory to build it on;
// open descriptors stay usable. images is a directory of layers, for which enterImage opens descriptors for guests.
func enterImage(at string, extra []string, images string) (guest.Image, error) {
	var image guest.Image
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return image, fmt.Errorf("make mounts private: %w", err)
	}
	trees, large, err := collect(&image, extra)
	if err != nil {
		return image, err
	}
	if images != "" {
		t, err := clone(images, readOnly)
		if err != nil {
			return image, err
		}
		t.path = imagesDir
		trees = append(trees, t)
	}
	if err := unix.Mount("image", at, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return image, fmt.Errorf("mount the image: %w", err)
	}
	for _, t := range trees {
		if err := t.attach(at); err != nil {
			return image, err
		}
	}
	for _, f := range large {
		if err := copyReadOnly(at+f.Path, 0o644, bytes.NewReader(f.Data)); err != nil {
			return image, err
		}
	}
	if err := program(at); err != nil {
		return image, err
	}
	image.Binds = append(image.Binds, guest.Bind{Path: guest.Program, File: true})
	image.Dirs, image.Pins = parents(&image), pins(&image)
	for _, dir := range []string{"/mnt", layersDir, guest.FoldersDir} {
		if err := os.Mkdir(at+dir, 0o755); err != nil {
			return image, err
		}
	}
	for _, l := range image.Links {
		if filepath.Dir(l.Path) == "/" {
			// The dynamic loader of programs is found through these links.
			if err := os.Symlink(l.Target, at+l.Path); err != nil {
				return image, err
			}
		}
	}
	if err := unix.Chdir(at); err != nil {
		return image, err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return image, fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return image, fmt.Errorf("let go of the host's root: %w", err)
	}
	return image, unix.Chdir("/")
}

// parents returns the directories that an image needs as parents of its entries.
func parents(image *guest.Image) []guest.Dir {
	known := map[string]bool{"/": true}
	for _, d := range guest.Directories {
		known[d.Path] = true
	}
	var dirs []guest.Dir
	var need func(name string)
	need = func(name string) {
		if dir := filepath.Dir(name); !known[dir] {
			known[dir] = true
			need(dir)
			dirs = append(dirs, guest.Dir{Path: dir, Mode: 0o755})
		}
	}
	for _, f := range image.Files {
		need(f.Path)
	}
	for _, l := range image.Links {
		need(l.Path)
	}
	for _, b := range image.Binds {
		need(b.Path)
	}
	return dirs
}

// pins are the directories above a bind that lies in a writable directory.
func pins(image *guest.Image) []string {
	var all []string
	for _, b := range image.Binds {
		for _, dir := range guest.Above(b.Path) {
			if !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// tree is a copy of a host mount that is not attached yet.
type tree struct {
	fd   int
	path string
	file bool
}

// collect fills an image. It returns what the broker's root needs for that: parts of the host, and files that are too large for a
// copy in every sandbox. Of those the broker has a copy, because a file of the host may be replaced, and can then no longer be bound.
func collect(image *guest.Image, extra []string) (trees []tree, large []guest.Write, err error) {
	take := func(path string, attributes uint64, shown bool) error {
		t, err := clone(path, attributes)
		if err != nil {
			return err
		}
		trees = append(trees, t)
		if shown {
			image.Binds = append(image.Binds, guest.Bind{Path: path, File: t.file})
		}
		return nil
	}
	host, err := Host(extra)
	if err != nil {
		return nil, nil, err
	}
	image.Links = host.Links
	for _, dir := range host.Shared {
		if err := take(dir, readOnly, true); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range guest.Devices {
		if err := take("/dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false); err != nil {
			return nil, nil, err
		}
	}
	if err := take("/proc", 0, false); err != nil {
		return nil, nil, err
	}
	for _, f := range host.Files {
		if len(f.Data) <= maxCopied {
			image.Files = append(image.Files, f)
			continue
		}
		image.Binds = append(image.Binds, guest.Bind{Path: f.Path, File: true})
		large = append(large, f)
	}
	return trees, large, nil
}

// public reads a file that every user may read.
func public(name string) ([]byte, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o004 == 0 {
		return nil, false
	}
	content, err := os.ReadFile(name)
	return content, err == nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func clone(path string, attributes uint64) (tree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return tree{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, fmt.Errorf("take %s into the image: %w", path, err)
	}
	if attributes != 0 {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
		if err != nil {
			return tree{}, fmt.Errorf("make %s read-only (needs Linux 5.12): %w", path, err)
		}
	}
	return tree{fd: fd, path: path, file: !info.IsDir()}, nil
}

func (t tree) attach(at string) error {
	defer unix.Close(t.fd)
	target := at + t.path
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	var err error
	if t.file {
		err = os.WriteFile(target, nil, 0o644)
	} else {
		err = os.MkdirAll(target, 0o755)
	}
	if err != nil {
		return err
	}
	return t.move(target)
}

// cover mounts a tree over what is at target.
func (t tree) cover(target string) error {
	defer unix.Close(t.fd)
	return t.move(target)
}

func (t tree) move(target string) error {
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach %s to the image: %w", t.path, err)
	}
	return nil
}

// program puts the program for helpers into the image, read-only: as a bind when every user may execute the file, else as a
// copy.
func program(at string) error {
	target := at + guest.Program
	self := os.NewFile(ProgramFD, "program")
	defer self.Close()
	info, err := self.Stat()
	if err != nil {
		return err
	}
	const runnable = fs.FileMode(0o005)
	if path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(ProgramFD)); err == nil && info.Mode()&runnable == runnable && same(path, info) {
		t, err := clone(path, readOnly)
		if err == nil {
			t.path = guest.Program
			return t.attach(at)
		}
	}
	return copyReadOnly(target, 0o555, io.NewSectionReader(self, 0, info.Size()))
}

// copyReadOnly writes a file into the image.
func copyReadOnly(target string, mode fs.FileMode, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("copy %s into the image: %w", target, err)
	}
	// An ordinary user's guest has the id of the file's owner: only the mount makes it read-only.
	t, err := clone(target, readOnly)
	if err != nil {
		return err
	}
	return t.cover(target)
}

func same(path string, info fs.FileInfo) bool {
	other, err := os.Stat(path)
	if err != nil || !os.SameFile(other, info) {
		return false
	}
	st, ok := other.Sys().(*syscall.Stat_t)
	return ok && st.Mode&syscall.S_IFMT == syscall.S_IFREG
}
