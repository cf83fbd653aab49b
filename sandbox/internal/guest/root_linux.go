package guest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// staging is where the new root is put together: an empty directory of the broker's root.
const staging = "/mnt"

// Devices are what a sandbox finds in /dev.
var Devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// masked are files of /proc that tell about the host, or worse; readonly are those that could change it.
var (
	masked   = []string{"kcore", "keys", "key-users", "timer_list", "latency_stats", "config.gz", "cmdline", "kallsyms", "sched_debug"}
	readonly = []string{"sys", "irq", "bus", "fs", "sysrq-trigger", "acpi", "scsi", "mtrr"}
)

// buildRoot makes the file system of the sandbox and moves into it. Nothing of it is seen outside: all happens in the
// guest's own mount namespace.
func buildRoot(boot *Boot) (lastPID *os.File, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	// Inodes are memory that size does not count.
	inodes := min(max(boot.Disk/2048, 4096), 1<<20)
	options := fmt.Sprintf("mode=755,size=%d,nr_inodes=%d", boot.Disk, inodes)
	if err := unix.Mount("sandbox", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("mount the root: %w", err)
	}
	for _, step := range []func(*Boot) error{directories, contents, devices, mountProc} {
		if err := step(boot); err != nil {
			return nil, err
		}
	}
	lastPID = pids()
	if err := protectProc(); err != nil {
		return nil, err
	}
	return lastPID, pivot()
}

func directories(boot *Boot) error {
	for _, d := range []struct {
		name string
		mode uint32
	}{
		{"/dev", 0o755}, {"/dev/pts", 0o755}, {"/dev/shm", 0o1777}, {"/etc", 0o755}, {"/home", 0o755}, {"/mnt", 0o755},
		{"/opt", 0o755}, {"/proc", 0o555}, {"/root", 0o700}, {"/run", 0o755}, {"/srv", 0o755}, {"/tmp", 0o1777}, {"/usr", 0o755},
		{"/var", 0o755}, {"/var/tmp", 0o1777}, {"/var/log", 0o755}, {"/var/lib", 0o755}, {"/var/cache", 0o755},
		{"/workspace", 0o755},
	} {
		if err := unix.Mkdir(staging+d.name, d.mode); err != nil {
			return &os.PathError{Op: "mkdir", Path: d.name, Err: err}
		}
		if d.mode&0o1000 != 0 {
			// mkdir leaves the sticky bit to the file system's taste.
			if err := unix.Chmod(staging+d.name, d.mode); err != nil {
				return &os.PathError{Op: "chmod", Path: d.name, Err: err}
			}
		}
	}
	return os.MkdirAll(staging+boot.Workdir, 0o755)
}

func contents(boot *Boot) error {
	for _, l := range append(boot.Image.Links, Link{"/var/run", "/run"}, Link{"/var/lock", "/run"}) {
		if err := unix.Symlink(l.Target, staging+l.Path); err != nil {
			return &os.PathError{Op: "symlink", Path: l.Path, Err: err}
		}
	}
	made := map[string]bool{}
	parent := func(name string) error {
		if dir := path.Dir(name); !made[dir] {
			made[dir] = true
			return os.MkdirAll(staging+dir, 0o755)
		}
		return nil
	}
	for i := range boot.Image.Files {
		f := &boot.Image.Files[i]
		if err := parent(f.Path); err != nil {
			return err
		}
		if err := put(staging+f.Path, f.Data, uint32(f.Mode)); err != nil {
			return err
		}
	}
	for _, b := range boot.Image.Binds {
		if err := parent(b.Path); err != nil {
			return err
		}
		if err := bind(b.Path, staging+b.Path, b.File); err != nil {
			return err
		}
	}
	return nil
}

// put writes a small file with plain system calls: there are dozens for each sandbox.
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

// bind shows a path of the broker's root, which is read-only there and therefore here.
func bind(from, to string, file bool) error {
	if file {
		if err := put(to, nil, 0o644); err != nil {
			return err
		}
	} else if err := unix.Mkdir(to, 0o755); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mkdir", Path: to, Err: err}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	return nil
}

func devices(*Boot) error {
	for _, name := range Devices {
		if err := bind("/dev/"+name, staging+"/dev/"+name, true); err != nil {
			return err
		}
	}
	for _, l := range []Link{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		if err := unix.Symlink(l.Target, staging+"/dev/"+l.Path); err != nil {
			return &os.PathError{Op: "symlink", Path: "/dev/" + l.Path, Err: err}
		}
	}
	err := unix.Mount("devpts", staging+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	if err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	return nil
}

func mountProc(*Boot) error {
	if err := unix.Mount("proc", staging+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc (in a container, its masked entries forbid that): %w", err)
	}
	return nil
}

func protectProc() error {
	proc := staging + "/proc"
	// Once more than a filter: no process of the sandbox can make a namespace below it.
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		if err := os.WriteFile(proc+"/sys/user/max_"+kind+"_namespaces", []byte("0"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range readonly {
		target := filepath.Join(proc, name)
		err := unix.Mount(target, target, "", unix.MS_BIND|unix.MS_REC, "")
		if err == unix.ENOENT {
			continue
		}
		if err == nil {
			err = unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("make /proc/%s read-only: %w", name, err)
		}
	}
	for _, name := range masked {
		err := unix.Mount("/dev/null", filepath.Join(proc, name), "", unix.MS_BIND, "")
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("mask /proc/%s: %w", name, err)
		}
	}
	return nil
}

func pivot() error {
	if err := unix.Chdir(staging); err != nil {
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

// loopback brings the interface lo up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// pids is the file that says which process number was given last; nil where the kernel has none.
func pids() *os.File {
	file, err := os.OpenFile(staging+"/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return file
}
