package singularity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// box is how an instance was asked for.
type box struct {
	ContainAll, CleanEnv, NoHome, WritableTmpfs bool
	NoMount                                     []string
	Hostname                                    string
	Binds                                       []string
	Workdir                                     string
	Scratch                                     []string
	Net                                         bool
	Network                                     string
	Fakeroot, NoPrivs                           bool
	AddCaps                                     string
	Memory, MemorySwap                          string
	PIDs                                        int
	CPUs                                        string

	Image string // its directory
}

// start starts the instance's first process and returns when it is ready.
func (b *box) start() (int, error) {
	config, err := json.Marshal(b)
	if err != nil {
		return 0, err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	c := exec.Command("/proc/self/exe", "standin-init", string(config))
	c.Args[0] = os.Args[0]
	c.Dir = "/"
	c.Env = []string{}
	c.ExtraFiles = []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}
	if b.Net {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}
	if uid := os.Getuid(); uid != 0 {
		inside := uid
		if b.Fakeroot {
			inside = 0
		}
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getgid(), Size: 1}}
	}
	if os.Getuid() != 0 && !b.Fakeroot { // until the root stands
		c.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
	}
	err = c.Start()
	theirs.Close()
	if err != nil {
		return 0, err
	}
	said := make([]byte, 1000)
	n, _ := ready.Read(said)
	if text := string(said[:n]); text != "ready" {
		return 0, fmt.Errorf("the instance did not start: %s", text)
	}
	return c.Process.Pid, nil
}

// boot is the first process of an instance.
func boot(config string) error {
	ready := os.NewFile(3, "ready")
	unix.CloseOnExec(3)
	b := &box{}
	err := json.Unmarshal([]byte(config), b)
	if err == nil {
		err = b.build()
	}
	if err == nil {
		err = b.confine()
	}
	if err != nil {
		fmt.Fprint(ready, err)
		return err
	}
	fmt.Fprint(ready, "ready")
	ready.Close()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

// build makes the root file system and enters it.
func (b *box) build() error {
	root := filepath.Join(b.Workdir, "session", "root")
	var errs []error
	do := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	mount := func(source, target, kind string, flags uintptr, data string) {
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			do(fmt.Errorf("mount %s on %s: %w", source, target, err))
		}
	}
	bind := func(source, at string, readOnly bool) {
		target := filepath.Join(root, at)
		info, err := os.Stat(source)
		if err != nil {
			do(err)
			return
		}
		if info.IsDir() {
			do(os.MkdirAll(target, 0o755))
		} else if _, err := os.Lstat(target); err != nil {
			do(os.WriteFile(target, nil, 0o644))
		}
		mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
		if readOnly {
			mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
		}
	}
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	session := filepath.Dir(root)
	do(os.MkdirAll(session, 0o755))
	mount("session", session, "tmpfs", 0, "size=64m")
	do(errors.Join(os.Mkdir(root, 0o755), os.Mkdir(session+"/upper", 0o755), os.Mkdir(session+"/work", 0o755)))
	mount("overlay", root, "overlay", 0, fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", strings.ReplaceAll(b.Image, ":", `\:`), session, session))
	if content, err := os.ReadFile(filepath.Join(b.Image, bindsFile)); err == nil {
		for _, dir := range strings.Fields(string(content)) {
			bind(dir, dir, true)
		}
	}
	do(os.MkdirAll(root+"/proc", 0o755))
	mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	do(os.MkdirAll(root+"/dev", 0o755))
	mount("dev", root+"/dev", "tmpfs", unix.MS_NOSUID, "mode=755")
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		bind("/dev/"+name, "/dev/"+name, false)
	}
	do(errors.Join(os.Mkdir(root+"/dev/pts", 0o755), os.Mkdir(root+"/dev/shm", 0o1777), os.Symlink("pts/ptmx", root+"/dev/ptmx"), os.Symlink("/proc/self/fd", root+"/dev/fd")))
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		do(os.Symlink(fmt.Sprintf("/proc/self/fd/%d", i), root+"/dev/"+name))
	}
	mount("devpts", root+"/dev/pts", "devpts", unix.MS_NOSUID, "newinstance,ptmxmode=666,mode=620")
	mount("shm", root+"/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	for _, at := range []string{"/tmp", "/var/tmp"} {
		dir := filepath.Join(b.Workdir, strings.ReplaceAll(at[1:], "/", "_"))
		do(errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o1777)))
		bind(dir, at, false)
	}
	for _, at := range b.Scratch {
		dir := filepath.Join(b.Workdir, "scratch", at)
		do(os.MkdirAll(dir, 0o755))
		bind(dir, at, false)
	}
	for _, text := range b.Binds {
		fields := strings.Split(text, ":")
		if len(fields) != 3 || fields[2] != "ro" {
			do(fmt.Errorf("bind %q is not read-only", text))
			continue
		}
		bind(fields[0], fields[1], true)
	}
	do(unix.Sethostname([]byte(b.Hostname)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if b.Net {
		if err := loopback(); err != nil {
			return err
		}
	}
	return unix.Chdir("/")
}

// loopback brings it up.
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
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// confine takes from this thread what processes of the instance do not have.
func (b *box) confine() error {
	keep := map[uintptr]bool{}
	for name, n := range capabilities {
		keep[n] = b.Fakeroot || slices.Contains(strings.Split(b.AddCaps, ","), name)
	}
	for n := uintptr(0); n <= unix.CAP_LAST_CAP; n++ {
		if !keep[n] {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// enter runs a command in an instance.
func enter(dir string, args []string) error {
	f := pflag.NewFlagSet("exec", pflag.ContinueOnError)
	f.SetInterspersed(false)
	clean := f.BoolP("cleanenv", "e", false, "")
	cwd := f.String("pwd", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	name, ok := strings.CutPrefix(f.Arg(0), "instance://")
	if !ok || f.NArg() < 2 {
		return fmt.Errorf("exec takes an instance and a command, got %q", f.Args())
	}
	i, err := readInstance(dir, name)
	if err != nil {
		return err
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C", "PS1=Apptainer> ", "APPTAINER_NAME=" + name, "SINGULARITY_NAME=" + name, "LD_LIBRARY_PATH=/.singularity.d/libs"}
	if content, err := os.ReadFile(filepath.Join(i.Box.Image, envFile)); err == nil {
		env = append(env, strings.Fields(string(content))...)
	}
	if !*clean {
		env = append(env, os.Environ()...)
	}
	var c *exec.Cmd
	if os.Getuid() == 0 {
		// A thread of its own: it is never given back.
		runtime.LockOSThread()
		if err := join(i.PID); err != nil {
			return err
		}
		if err := i.Box.confine(); err != nil {
			return err
		}
		c = &exec.Cmd{Path: f.Arg(1), Args: f.Args()[1:], Dir: *cwd}
	} else {
		// A user namespace is not for a program of many threads to enter.
		c = exec.Command("nsenter", "--target", strconv.Itoa(i.PID), "--user", "--preserve-credentials", "--mount", "--ipc", "--uts", "--pid")
		if i.Box.Net {
			c.Args = append(c.Args, "--net")
		}
		c.Args = append(append(c.Args, "--", "/usr/bin/setpriv", "--no-new-privs"), f.Args()[1:]...)
	}
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}

// join enters all namespaces of a process; that of processes is for children.
func join(pid int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	var fds []int
	for _, kind := range []string{"net", "ipc", "uts", "pid", "mnt"} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		fds = append(fds, fd)
	}
	for _, fd := range fds {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter the instance: %w", err)
		}
	}
	return nil
}
