package guest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// staging is where the new root is built: an empty directory of the broker's root.
const staging = "/mnt"

// Devices are the devices in a sandbox's /dev.
var Devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// masked are files of /proc that tell about the host, or worse; readonly are those that could change it.
var (
	masked   = []string{"kcore", "keys", "key-users", "timer_list", "latency_stats", "config.gz", "cmdline", "kallsyms", "sched_debug"}
	readonly = []string{"sys", "irq", "bus", "fs", "sysrq-trigger", "acpi", "scsi", "mtrr"}
)

// Directories are in every sandbox. Tasks in Harbor's format use /logs and /solution.
var Directories = []Dir{
	{"/dev", 0o755}, {"/dev/pts", 0o755}, {"/dev/shm", 0o1777}, {"/etc", 0o755}, {"/home", 0o755}, {"/logs", 0o755}, {"/mnt", 0o755},
	{"/opt", 0o755}, {"/proc", 0o555}, {"/root", 0o700}, {"/run", 0o755}, {"/solution", 0o755}, {"/srv", 0o755}, {Tests, 0o755}, {"/tmp", 0o1777},
	{"/usr", 0o755}, {"/var", 0o755}, {"/var/tmp", 0o1777}, {"/var/log", 0o755}, {"/var/lib", 0o755}, {"/var/cache", 0o755},
	{"/workspace", 0o755},
}

// Writable are those that commands can write to, beside the working directory and Tests. Each is a mount of its own over the
// read-only root: in a writable root, commands could rename directories, mount points included, and put others in their place
// for the verifier to find. None of them holds programs or their configuration.
var Writable = []string{"/dev/shm", "/home", "/logs", "/mnt", "/opt", "/root", "/run", "/solution", "/srv", "/tmp", "/var"}

// testsOptions reserve space for Tests, even when all else is full.
const testsOptions = "mode=755,size=64m,nr_inodes=16k"

// root is the file system of a sandbox under construction. Nothing of it is visible outside of the guest's mount namespace. It
// is made by plain system calls on short names: each sandbox takes hundreds.
type root struct {
	boot   *Boot
	image  *Image
	layers []int

	at      string // path where it is built
	upper   int    // a descriptor of a detached mount of all that commands will write
	lastPID int    // a descriptor of the file with the last process number; -1 where the kernel has none
}

// build makes the root and moves into it.
func (r *root) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	options := "mode=755,size=" + strconv.FormatInt(r.boot.Disk, 10) + ",nr_inodes=" + strconv.FormatInt(r.boot.Inodes, 10)
	if err := unix.Mount("sandbox", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := unix.Chdir(staging); err != nil {
		return err
	}
	var err error
	if len(r.layers) == 0 {
		r.at = staging
		r.upper, err = detached(".")
	} else {
		err = r.stack()
	}
	if err != nil {
		return err
	}
	if r.boot.System {
		return r.system()
	}
	return r.toolchain()
}

// toolchain makes a root of the broker's parts of the host, with a few writable directories.
func (r *root) toolchain() error {
	if err := unix.Chdir(r.at); err != nil {
		return err
	}
	steps := []func() error{r.writable, r.workdir, r.binds, devices, mountProc}
	if !r.boot.Fork {
		// In a fork, commands have removed whatever is missing.
		steps = slices.Insert(steps, 0, r.directories)
		steps = slices.Insert(steps, 3, r.contents, deviceLinks)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	r.openLastPID()
	if err := protectProc(r.boot.Single); err != nil {
		return err
	}
	if err := r.placeFolder(); err != nil {
		return err
	}
	if err := r.pivot(); err != nil {
		return err
	}
	if err := r.nameServer(); err != nil {
		return err
	}
	// All capabilities that could undo it are dropped before the first command.
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	if err := unix.Access(r.boot.Workdir, unix.W_OK); err != nil {
		return fmt.Errorf("working directory: %w", &os.PathError{Op: "write", Path: r.boot.Workdir, Err: err})
	}
	return nil
}

func (r *root) openLastPID() {
	var err error
	if r.lastPID, err = unix.Open("proc/sys/kernel/ns_last_pid", unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		r.lastPID = -1
	}
}

// writable comes before the mounts below these directories.
func (r *root) writable() error {
	for _, name := range slices.Concat(Writable, r.image.Pins) {
		if err := pin(below(name)); err != nil {
			return err
		}
	}
	return mountTests()
}

func mountTests() error {
	if err := unix.Mount("tests", below(Tests), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, testsOptions); err != nil {
		return fmt.Errorf("mount %s: %w", Tests, err)
	}
	return nil
}

// pin makes a directory a mount of its own, on the same file system: it stays writable when its parent becomes read-only, and
// no process can rename, remove or replace it.
func pin(name string) error {
	if err := unix.Mount(name, name, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin /%s: %w", name, err)
	}
	return nil
}

// workdir makes the working directory and pins it, and the directories between it and a writable one, and between it and a bind
// in it.
func (r *root) workdir() error {
	name := path.Clean(r.boot.Workdir)
	if slices.Contains(Writable, name) {
		return nil
	}
	if err := os.MkdirAll(below(name), 0o755); err != nil {
		return err
	}
	dirs := append(Above(name), name)
	for _, b := range r.image.Binds {
		dirs = append(dirs, between(name, b.Path)...)
	}
	for _, dir := range dirs {
		if err := pin(below(dir)); err != nil {
			return err
		}
	}
	return nil
}

// Above returns the directories between one of the Writable and a path in it, the outermost first.
func Above(name string) []string {
	for _, top := range Writable {
		if dirs := between(top, name); dirs != nil {
			return dirs
		}
	}
	return nil
}

func between(top, name string) []string {
	var dirs []string
	if strings.HasPrefix(name, top+"/") {
		for dir := path.Dir(name); dir != top; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
		slices.Reverse(dirs)
	}
	return dirs
}

// below turns a path of the sandbox into one relative to the current directory, which is the new root.
func below(name string) string { return name[1:] }

func (r *root) directories() error {
	for _, d := range slices.Concat(Directories, r.image.Dirs) {
		if err := unix.Mkdir(below(d.Path), uint32(d.Mode)); err != nil {
			return &os.PathError{Op: "mkdir", Path: d.Path, Err: err}
		}
		if d.Mode&0o1000 != 0 {
			// Some file systems reset the sticky bit in mkdir.
			if err := unix.Chmod(below(d.Path), uint32(d.Mode)); err != nil {
				return &os.PathError{Op: "chmod", Path: d.Path, Err: err}
			}
		}
	}
	return nil
}

func (r *root) contents() error {
	for _, l := range append(r.image.Links, Link{"/var/run", "/run"}, Link{"/var/lock", "/run"}) {
		if err := link(l); err != nil {
			return err
		}
	}
	for i := range r.image.Files {
		f := &r.image.Files[i]
		if err := put(below(f.Path), f.Data, uint32(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

func (r *root) binds() error {
	for _, b := range r.image.Binds {
		if err := bind(b.Path, b.File); err != nil {
			return err
		}
	}
	return nil
}

func link(l Link) error {
	if err := unix.Symlink(l.Target, below(l.Path)); err != nil {
		return &os.PathError{Op: "symlink", Path: l.Path, Err: err}
	}
	return nil
}

func put(name string, data []byte, mode uint32) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	defer unix.Close(fd)
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			return &os.PathError{Op: "write", Path: name, Err: err}
		}
		data = data[n:]
	}
	return nil
}

// tell writes to a file of /proc.
func tell(name, value string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// bind shows a path of the broker's root at the same path, read-only as it is there.
func bind(name string, file bool) error {
	to := below(name)
	if file {
		if err := put(to, nil, 0o644); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	} else if err := unix.Mkdir(to, 0o755); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	if err := unix.Mount(name, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", name, err)
	}
	return nil
}

func deviceLinks() error {
	for _, l := range []Link{
		{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"},
	} {
		if err := link(l); err != nil {
			return err
		}
	}
	return nil
}

func devices() error {
	for _, name := range Devices {
		if err := bind("/dev/"+name, true); err != nil {
			return err
		}
	}
	err := unix.Mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	if err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	return nil
}

func mountProc() error {
	if err := unix.Mount("proc", "proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc (in a container, its masked entries forbid that): %w", err)
	}
	return nil
}

func protectProc(single bool) error {
	if err := unix.Chdir("proc"); err != nil {
		return err
	}
	// Beside the filter, this keeps processes of the sandbox from making namespaces.
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		if err := tell("sys/user/max_"+kind+"_namespaces", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if single {
		// All sandboxes of this user share the kernel's quota of one user.
		if err := tell("sys/user/max_inotify_instances", "32"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range readonly {
		err := unix.Mount(name, name, "", unix.MS_BIND|unix.MS_REC, "")
		if err == unix.ENOENT {
			continue
		}
		if err == nil {
			err = unix.Mount("", name, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("make /proc/%s read-only: %w", name, err)
		}
	}
	for _, name := range masked {
		err := unix.Mount("/dev/null", name, "", unix.MS_BIND, "")
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("mask /proc/%s: %w", name, err)
		}
	}
	return nil
}

func (r *root) pivot() error {
	if err := unix.Chdir(r.at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	return unix.Chdir("/")
}
