package sandbox

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

// lent are the first of as many user ids, and of as many group ids, as a sandbox has. The system lends them to an
// ordinary user.
type lent struct{ users, groups int }

// programs that write the maps of ids for who may not.
var mappers = []string{"newuidmap", "newgidmap"}

// brokerRights are what the broker needs in its user namespace. It is executed there before the namespace has ids, and
// would have none of them otherwise.
var brokerRights = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETFCAP, unix.CAP_KILL, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE,
	unix.CAP_FOWNER, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE,
}

// findLent finds the ids that this user may use. The error says what to do about it.
func findLent() (*lent, error) {
	for _, name := range mappers {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("there is no %s: install uidmap (in some systems shadow-utils)", name)
		}
	}
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	var l lent
	for name, first := range map[string]*int{"/etc/subuid": &l.users, "/etc/subgid": &l.groups} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		var next int
		if *first, next = findRange(string(content), u); *first == 0 {
			return nil, fmt.Errorf("%s has none for this user: add the line %s:%d:%d", name, u.Username, next, broker.PerBox)
		}
	}
	return &l, nil
}

// findRange returns where the first range of a user begins that is large enough, or 0, and where one is free.
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

// ids says what the broker has of them.
func (l *lent) ids() int64 {
	switch {
	case os.Getuid() == 0:
		return broker.IDsOwn
	case l != nil:
		return broker.IDsShared
	}
	return broker.IDsSingle
}

// separate makes a process begin in namespaces of mounts and, as an ordinary user, of users.
func (l *lent) separate() *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS}
	switch l.ids() {
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

// lend gives a process that was begun so the ids: this user as 0, and what is lent from 1 on.
func (l *lent) lend(pid int) error {
	if l.ids() != broker.IDsShared {
		return nil
	}
	for i, id := range [][2]int{{os.Getuid(), l.users}, {os.Getgid(), l.groups}} {
		c := exec.Command(mappers[i], fmt.Sprint(pid), "0", fmt.Sprint(id[0]), "1", "1", fmt.Sprint(id[1]), fmt.Sprint(broker.PerBox))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", mappers[i], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
