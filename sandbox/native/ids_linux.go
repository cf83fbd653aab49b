package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/broker"
)

// userIDs are the user and group ids that sandboxes can have. In kind broker.IDsShared, users and groups are the first ids of
// two ranges, each as long as a sandbox needs. The system assigns the ranges to an ordinary user; root without the right to
// mount, as in a container, takes them.
type userIDs struct {
	kind          int64 // see package broker
	users, groups int
	taken         bool
}

// mappers are the programs that write id maps for users who may not.
var mappers = []string{"newuidmap", "newgidmap"}

// brokerRights are the capabilities that the broker needs in its user namespace. The kernel runs it there before the namespace
// has ids, and would drop all capabilities otherwise.
var brokerRights = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETFCAP, unix.CAP_KILL, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE,
	unix.CAP_FOWNER, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE,
}

// ownIDs returns the ids of a process that may do everything, or nil.
func ownIDs() *userIDs {
	if os.Getuid() == 0 && hasRights(unix.CAP_SYS_ADMIN) {
		return &userIDs{kind: broker.IDsOwn}
	}
	return nil
}

// sharedIDs finds the ids that this user may use. The error says what to do when there are none.
func sharedIDs() (*userIDs, error) {
	if os.Getuid() == 0 && hasRights(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETFCAP) {
		first := broker.FirstID(os.Getpid())
		for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if !covered(string(content), first) {
				return nil, fmt.Errorf("this container has no ids from %d to %d, by %s", first, first+broker.PerBox-1, file)
			}
		}
		return &userIDs{kind: broker.IDsShared, users: first, groups: first, taken: true}, nil
	}
	return lentIDs()
}

// hasRights reports whether this thread has capabilities that its children inherit.
func hasRights(capabilities ...uintptr) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if unix.Capget(&header, &have[0]) != nil {
		return false
	}
	for _, c := range capabilities {
		if have[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}

// covered reports whether an id map has all ids of a sandbox.
func covered(idMap string, first int) bool {
	for line := range strings.Lines(idMap) {
		var start, outside, count int
		if _, err := fmt.Sscan(line, &start, &outside, &count); err == nil && start <= first && first+broker.PerBox <= start+count {
			return true
		}
	}
	return false
}

func lentIDs() (*userIDs, error) {
	for _, name := range mappers {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("there is no %s: install uidmap (in some systems shadow-utils)", name)
		}
	}
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	ids := userIDs{kind: broker.IDsShared}
	for name, first := range map[string]*int{"/etc/subuid": &ids.users, "/etc/subgid": &ids.groups} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		var next int
		if *first, next = findRange(string(content), u); *first == 0 {
			return nil, fmt.Errorf("%s has none for this user: add the line %s:%d:%d", name, u.Username, next, broker.PerBox)
		}
	}
	return &ids, nil
}

// findRange returns where the first range of a user begins that is large enough, or 0, and where a free one begins.
func findRange(content string, u *user.User) (first, free int) {
	free = 100_000
	for line := range strings.Lines(content) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		start, err := strconv.ParseUint(fields[1], 10, 32)
		count, countErr := strconv.ParseUint(fields[2], 10, 32)
		if err != nil || countErr != nil {
			continue
		}
		free = max(free, int(start+count))
		if first == 0 && count >= broker.PerBox && (fields[0] == u.Username || fields[0] == u.Uid) {
			first = int(start)
		}
	}
	return first, free
}

// separate starts a process in a mount namespace and, without root's rights, in a user namespace.
func (u *userIDs) separate() *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS}
	switch u.kind {
	case broker.IDsShared:
		sys.Cloneflags |= unix.CLONE_NEWUSER
		sys.AmbientCaps = brokerRights
	case broker.IDsSingle:
		sys.Cloneflags |= unix.CLONE_NEWUSER
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return sys
}

// give writes the id maps of a process that separate has started: this user as 0, and the others from 1 on.
func (u *userIDs) give(pid int) error {
	if u.kind != broker.IDsShared {
		return nil
	}
	for i, id := range [][2]int{{os.Getuid(), u.users}, {os.Getgid(), u.groups}} {
		if err := writeMap(i, pid, id[0], id[1], u.taken); err != nil {
			return err
		}
	}
	return nil
}

// writeMap writes the id map of users or, with number 1, of groups.
func writeMap(number, pid, own, first int, taken bool) error {
	if taken {
		file := fmt.Sprintf("/proc/%d/%s", pid, [...]string{"uid_map", "gid_map"}[number])
		if err := os.WriteFile(file, fmt.Appendf(nil, "0 %d 1\n1 %d %d\n", own, first, broker.PerBox), 0); err != nil {
			return fmt.Errorf("take user ids: %w", err)
		}
		return nil
	}
	c := exec.Command(mappers[number], fmt.Sprint(pid), "0", fmt.Sprint(own), "1", "1", fmt.Sprint(first), fmt.Sprint(broker.PerBox))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", mappers[number], err, strings.TrimSpace(string(out)))
	}
	return nil
}
