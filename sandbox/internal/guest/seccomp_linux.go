package guest

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused system calls fail with EPERM. They need a capability that commands do not have, or no task needs them and they widen
// the kernel's attack surface.
var refused = []uintptr{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KCMP,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_SYSLOG, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// namespaces are the clone flags that make a namespace.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// Offsets in struct seccomp_data. Both architectures are little endian: the low half of an argument comes first.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// filter is a classic BPF program under construction.
type filter []unix.SockFilter

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (f *filter) jump(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | code, Jt: yes, Jf: no, K: k})
}

func (f *filter) ret(action uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// rule is what the filter does for one system call. The body always returns.
type rule struct {
	call uintptr
	body filter
}

// decide adds a binary search for the call in the accumulator among rules, sorted by call; other calls are allowed. The kernel
// runs the filter for every possible call when it is installed, so a linear list would take longer than all the mounts.
func (f *filter) decide(rules []rule) {
	if len(rules) > 3 {
		var below filter
		middle := len(rules) / 2
		below.decide(rules[:middle])
		f.jump(unix.BPF_JGE, uint32(rules[middle].call), uint8(len(below)), 0)
		*f = append(*f, below...)
		f.decide(rules[middle:])
		return
	}
	for _, r := range rules {
		f.jump(unix.BPF_JEQ, uint32(r.call), 0, uint8(len(r.body)))
		*f = append(*f, r.body...)
	}
	f.ret(unix.SECCOMP_RET_ALLOW)
}

func fails(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// policy is what differs between the filters of sandboxes.
type policy struct {
	// clone3 is allowed. Its flags are behind a pointer, where the filter cannot read them: it must fail with ENOSYS so that
	// libraries fall back to clone. Where the guest needs it to fork into a cgroup, namespace quotas of zero replace the
	// filter.
	clone3 bool
	// pretend lets calls that change the owner of files or the user succeed without effect: there is only one user, and
	// programs that unpack files as root would fail needlessly.
	pretend bool
	// counted is not nil if the filter asks the guest about netlink sockets, whose number is limited. Answering adds to this
	// garbage.
	counted *garbage
	// everywhere puts all threads of the guest under a filter that is counted, not only the calling one: this is cheaper than a
	// second filter for the file thread. Not possible where other threads set the limits of commands.
	everywhere bool
	// offline refuses network sockets, for machines whose network cannot be taken away.
	offline bool
}

// pretended calls succeed without effect, with policy.pretend.
var pretended = []uintptr{
	unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETGROUPS, unix.SYS_SETREUID,
	unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
}

// program builds the filter that every command runs under.
func program(p policy) filter {
	var f filter
	f.load(offsetArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.ret(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(offsetCall)
	if x32Bit != 0 {
		f.jump(unix.BPF_JGE, x32Bit, 0, 1)
		f.ret(fails(unix.ENOSYS))
	}
	var rules []rule
	onCall := func(call uintptr, body func(*filter)) {
		r := rule{call: call}
		body(&r.body)
		rules = append(rules, r)
	}
	for _, call := range slices.Concat(refused, refusedHere) {
		onCall(call, func(f *filter) { f.ret(fails(unix.EPERM)) })
	}
	if !p.clone3 {
		onCall(unix.SYS_CLONE3, func(f *filter) { f.ret(fails(unix.ENOSYS)) })
	}
	if p.pretend {
		for _, call := range slices.Concat(pretended, pretendedHere) {
			onCall(call, func(f *filter) { f.ret(fails(0)) })
		}
	}
	onCall(unix.SYS_CLONE, func(f *filter) {
		f.load(offsetArgs)
		f.jump(unix.BPF_JSET, namespaces, 0, 1)
		f.ret(fails(unix.EPERM))
		f.ret(unix.SECCOMP_RET_ALLOW)
	})
	// Typing into a terminal that is shared with a process outside, and giving the terminal to another part of the kernel.
	onCall(unix.SYS_IOCTL, func(f *filter) {
		f.load(offsetArgs + 8)
		f.jump(unix.BPF_JEQ, unix.TIOCSTI, 2, 0)
		f.jump(unix.BPF_JEQ, unix.TIOCSETD, 1, 0)
		f.jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1)
		f.ret(fails(unix.EPERM))
		f.ret(unix.SECCOMP_RET_ALLOW)
	})
	// Other families are not bound to the network namespace: AF_VSOCK reaches the hypervisor.
	onCall(unix.SYS_SOCKET, func(f *filter) {
		f.load(offsetArgs)
		if p.offline {
			f.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1)
			f.ret(unix.SECCOMP_RET_ALLOW)
			f.ret(fails(unix.EAFNOSUPPORT))
			return
		}
		f.jump(unix.BPF_JEQ, unix.AF_UNIX, 3, 0)
		f.jump(unix.BPF_JEQ, unix.AF_INET, 2, 0)
		f.jump(unix.BPF_JEQ, unix.AF_INET6, 1, 0)
		f.jump(unix.BPF_JEQ, unix.AF_NETLINK, 1, 4)
		f.ret(unix.SECCOMP_RET_ALLOW)
		// Netlink sockets, which programs use to read their addresses. Data that waits in other netlink sockets is memory that
		// no limit counts.
		f.load(offsetArgs + 16)
		f.jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 0, 1)
		if p.counted != nil {
			f.ret(unix.SECCOMP_RET_USER_NOTIF)
		} else {
			f.ret(unix.SECCOMP_RET_ALLOW)
		}
		f.ret(fails(unix.EAFNOSUPPORT))
	})
	onCall(unix.SYS_SOCKETPAIR, func(f *filter) {
		f.load(offsetArgs)
		f.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1)
		f.ret(unix.SECCOMP_RET_ALLOW)
		f.ret(fails(unix.EOPNOTSUPP))
	})
	refuseLimits(onCall)
	// All processes of the machine share one quota of these; libraries do without.
	onCall(unix.SYS_IO_SETUP, func(f *filter) { f.ret(fails(unix.ENOSYS)) })
	// A lease makes other openers of a file wait for most of a minute, such as the guest.
	onCall(unix.SYS_FCNTL, func(f *filter) {
		f.load(offsetArgs + 8)
		f.jump(unix.BPF_JEQ, unix.F_SETLEASE, 1, 0)
		f.jump(unix.BPF_JEQ, setDelegation, 0, 1)
		f.ret(fails(unix.EINVAL))
		f.ret(unix.SECCOMP_RET_ALLOW)
	})
	// A larger buffer is memory that no limit counts. The kernel may also give less than requested.
	onCall(unix.SYS_SETSOCKOPT, func(f *filter) {
		f.load(offsetArgs + 8)
		f.jump(unix.BPF_JEQ, unix.SOL_SOCKET, 0, 3)
		f.load(offsetArgs + 16)
		f.jump(unix.BPF_JEQ, unix.SO_RCVBUF, 0, 1)
		f.ret(fails(0))
		f.ret(unix.SECCOMP_RET_ALLOW)
	})
	slices.SortFunc(rules, func(a, b rule) int { return cmp.Compare(a.call, b.call) })
	f.decide(rules)
	return f
}

// setDelegation is F_SETDELEG, of Linux 6.19.
const setDelegation = 1024 + 16

// refuseLimits keeps commands from setting the limits of others: process 1 has the same user, and could no longer start a
// command or write a file. Setting the limit of core dumps seems to succeed and must not: where a core handler of the machine
// takes dumps, only a limit of one byte keeps it from being run.
func refuseLimits(onCall func(uintptr, func(*filter))) {
	onCall(unix.SYS_PRLIMIT64, func(f *filter) {
		const pid, resource, value = offsetArgs, offsetArgs + 8, offsetArgs + 16
		f.load(value)
		f.jump(unix.BPF_JEQ, 0, 0, 2)
		f.load(value + 4)
		f.jump(unix.BPF_JEQ, 0, 5, 0) // only reads the limit
		f.load(pid)
		f.jump(unix.BPF_JEQ, 0, 0, 4)
		f.load(resource)
		f.jump(unix.BPF_JEQ, unix.RLIMIT_CORE, 0, 1)
		f.ret(fails(0))
		f.ret(unix.SECCOMP_RET_ALLOW)
		f.ret(fails(unix.EPERM))
	})
	onCall(unix.SYS_SETRLIMIT, func(f *filter) {
		f.load(offsetArgs)
		f.jump(unix.BPF_JEQ, unix.RLIMIT_CORE, 0, 1)
		f.ret(fails(0))
		f.ret(unix.SECCOMP_RET_ALLOW)
	})
}

// restrict puts the calling thread, and its children, under the filter. It cannot be undone.
func restrict(p policy) error {
	if p.counted != nil {
		return listen(p)
	}
	return program(p).install("system calls")
}

// install puts the calling thread, and its children, under the filter.
func (f filter) install(what string) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("install the filter of %s: %w", what, err)
	}
	return nil
}
