package guest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// LandlockName is the role of this program that serves a sandbox of a directory without namespaces.
const LandlockName = "trajgen-landlock"

// Directory is the first message to such a guest, which also brings the program for helpers.
type Directory struct {
	Workdir, Tests string
	Own            string   // the directory that commands may change, with all below it
	Readable       []string // paths that commands may also read; missing ones are left out
	Offline        bool
	Files          int64
	Memory         int64 // per process
	FileSize       int64
}

// Fields implements wire.Message.
func (d *Directory) Fields(c wire.Coder) {
	c.String(&d.Workdir, &d.Tests, &d.Own)
	c.Strings(&d.Readable)
	c.Bool(&d.Offline)
	c.Int(&d.Files, &d.Memory, &d.FileSize)
}

// landlockMain runs such a guest and does not return. It answers the first message with "" or an error.
func landlockMain() {
	runtime.LockOSThread()
	runner := wire.Blocking(RunnerFD)
	message, fds, err := runner.Recv()
	if err != nil || len(fds) != 1 {
		fmt.Fprintln(os.Stderr, LandlockName+" is started by the program itself")
		os.Exit(2)
	}
	var d Directory
	from := wire.NewDecoder(message)
	from.Take(&d)
	var b *Bare
	if err = from.Err(); err == nil {
		b, err = newDirectory(&d, fds[0])
	}
	var e wire.Encoder
	if err != nil {
		e.String(err.Error())
		_ = runner.Send(e.Bytes)
		os.Exit(1)
	}
	e.String("")
	_ = runner.Send(e.Bytes)
	b.serve()
	<-b.ended
	os.Exit(0)
}

// newDirectory confines the threads of a guest to a directory.
func newDirectory(d *Directory, helper int) (*Bare, error) {
	abi := LandlockVersion()
	if abi == 0 {
		return nil, errors.New("this kernel has no landlock")
	}
	if err := limit(d.Files); err != nil {
		return nil, err
	}
	g := &guest{
		runner: wire.Blocking(RunnerFD), tree: fileTree{workdir: d.Workdir, tests: d.Tests}, helper: "/proc/self/fd/" + strconv.Itoa(helper),
		counters: NoCounters, limits: standIns{limits: map[int]uint64{unix.RLIMIT_DATA: uint64(d.Memory), unix.RLIMIT_FSIZE: uint64(d.FileSize)}},
	}
	return newBare(g, func(*Bare) error {
		for _, step := range []func() error{
			dropCapabilities, unprivileged, guardNumbers, func() error { return landlocked(d, abi, helper) },
			func() error { return restrict(policy{offline: d.Offline}) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// landlocked takes from the calling thread, and its children, all files but those of a Directory.
func landlocked(d *Directory, abi, helper int) error {
	all, read, device := fileRights(abi)
	rules := unix.LandlockRulesetAttr{Handled_access_fs: all}
	if abi >= 6 {
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return landlock(rules, func(fd int) error {
		// A memory file cannot be in a rule, and needs none.
		if errno := beneath(fd, helper, read&^unix.LANDLOCK_ACCESS_FS_READ_DIR); errno != 0 && errno != unix.EBADFD {
			return fmt.Errorf("allow the program for helpers: %w", errno)
		}
		rights := map[string]uint64{d.Own: all, "/proc": read}
		for _, name := range d.Readable {
			rights[name] = read
		}
		for _, name := range Devices {
			rights["/dev/"+name] = device
		}
		rights["/dev/ptmx"], rights["/dev/pts"] = device, device|unix.LANDLOCK_ACCESS_FS_READ_DIR
		for name, r := range rights {
			if err := allow(fd, name, r, device); err != nil {
				return err
			}
		}
		return nil
	})
}

// landlock puts the calling thread, and its children, under rules, to which add adds.
func landlock(rules unix.LandlockRulesetAttr, add func(fd int) error) error {
	// Older kernels take the fields that they do not know as long as those are zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("make landlock rules: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := add(int(fd)); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict to landlock rules: %w", errno)
	}
	return nil
}

// allow adds a rule for a path, if it is there. Of the rights, files other than directories get what is for files.
func allow(rules int, name string, rights, device uint64) error {
	at, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT || err == unix.EACCES {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | device
	}
	if errno := beneath(rules, at, rights); errno != 0 {
		return fmt.Errorf("allow %s: %w", name, errno)
	}
	return nil
}

// beneath adds a rule for a file, or for a directory with all below it.
func beneath(rules, at int, rights uint64) unix.Errno {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	return errno
}

// fileRights returns the rights that a version of Landlock knows: all, those for reading, and those for using a device.
func fileRights(abi int) (all, read, device uint64) {
	all = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // the rights of version 1
	read = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	device = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	if abi >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		device |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		device |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all, read, device
}

// LandlockVersion returns this kernel's version; 0 when there is none that may be used.
func LandlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}
