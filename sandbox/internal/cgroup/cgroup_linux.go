// Package cgroup limits memory, processes and CPU of sandboxes, through whichever cgroup version has each controller.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tree holds the groups of one instance: a directory in each hierarchy that it uses. It holds directories by descriptor, so
// that it works after its owner has changed the root directory.
type Tree struct {
	Memory, Processes bool // whether the limit is enforced
	CPU               bool // likewise, for sandboxes with such a limit
	Unified           bool // version 2
	Paths             []string
	Missing           []string // why a limit is not enforced
	// As runs open, which opens a file that owner will write to; nil runs it directly. In version 1, the opener of a file must
	// be root or the user whose processes become members through it.
	As     func(owner int, open func() error) error
	roots  []hierarchy
	record func(paths []string) error
}

type hierarchy struct {
	dir         int // the instance's directory
	parent      int
	name        string
	controllers []string
}

// Group is the part of a Tree that belongs to one sandbox.
type Group struct {
	// Join are version 1 `tasks` files: a thread that writes "0" to each becomes a member, and its children are members, too.
	Join []int
	// Memories counts kills by the memory limit: memory.oom_control or memory.events. Forks counts refused forks: pids.events.
	// Slowed counts the periods without time left: cpu.stat. Peak is the largest memory use, in version 1, which does not say
	// whether the limit caused a kill. Each is -1 when the kernel has none.
	Memories, Forks, Slowed, Peak int
	// Guest and Commands are version 2 directories, for CLONE_INTO_CGROUP. -1 in version 1. The guest is outside the
	// limits of its commands.
	Guest, Commands int

	tree *Tree
	id   string
}

// Open makes the directories of an instance. mode is auto, v1, v2 or none; all but auto are for tests. Without a usable
// hierarchy the Tree enforces nothing and says why in Missing.
func Open(instance, mode string, record func(paths []string) error) (*Tree, error) {
	t := &Tree{record: record}
	if mode == "none" {
		t.Missing = []string{"limits through cgroups are turned off"}
		return t, nil
	}
	mounts, err := find()
	if err != nil {
		return nil, err
	}
	name := "trajgen-" + instance
	if mode != "v2" {
		t.openV1(mounts, name)
	}
	if !t.Memory && !t.Processes && mode != "v1" {
		t.openV2(mounts, name, mode == "v2")
	}
	if !t.Memory || !t.Processes {
		t.Missing = append(t.Missing, "no writable cgroup with the memory and pids controllers: run as root, or delegate one (systemd-run --user --scope -p Delegate=yes)")
	}
	return t, nil
}

func (t *Tree) openV1(mounts []mount, name string) {
	for _, m := range mounts {
		if m.version != 1 {
			continue
		}
		controllers := slices.DeleteFunc(slices.Clone(m.controllers), func(c string) bool { return c != "memory" && c != "pids" && c != "cpu" })
		if len(controllers) == 0 {
			continue
		}
		for _, parent := range []string{filepath.Join(m.path, m.own), m.path} {
			if err := t.add(parent, name, controllers); err != nil {
				continue
			}
			t.Memory = t.Memory || slices.Contains(controllers, "memory")
			t.Processes = t.Processes || slices.Contains(controllers, "pids")
			t.CPU = t.CPU || slices.Contains(controllers, "cpu")
			break
		}
	}
}

// openV2 looks for a group that can have controllers, from the own group upward: a group with processes of its own cannot give
// controllers to its children.
func (t *Tree) openV2(mounts []mount, name string, bare bool) {
	for _, m := range mounts {
		if m.version != 2 {
			continue
		}
		for parent := filepath.Join(m.path, m.own); strings.HasPrefix(parent, m.path); parent = filepath.Dir(parent) {
			enable(parent)
			enabled := words(filepath.Join(parent, "cgroup.subtree_control"))
			memory, pids := slices.Contains(enabled, "memory"), slices.Contains(enabled, "pids")
			if !memory && !pids && !bare {
				continue
			}
			if err := t.add(parent, name, nil); err != nil {
				continue
			}
			enable(filepath.Join(parent, name))
			t.Memory, t.Processes, t.Unified = memory, pids, true
			t.CPU = slices.Contains(enabled, "cpu")
			return
		}
	}
}

func enable(dir string) {
	for _, c := range []string{"+memory", "+pids", "+cpu"} {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(c), 0)
	}
}

func (t *Tree) add(parent, name string, controllers []string) error {
	dir := filepath.Join(parent, name)
	if err := t.record(append(slices.Clone(t.Paths), dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	parentFD, err := unix.Open(parent, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(parentFD)
		return err
	}
	t.roots = append(t.roots, hierarchy{dir: fd, parent: parentFD, name: name, controllers: controllers})
	t.Paths = append(t.Paths, dir)
	return nil
}

// Limits are the limits of one sandbox.
type Limits struct {
	Memory    int64
	Processes int
	CPU       int64 // thousandths of a processor; 0 is unlimited
}

// period is the time over which the kernel counts CPU time, in microseconds.
const period = 100_000

// quota is the CPU limit in microseconds of a period; the kernel refuses less than a thousand.
func (l Limits) quota() int64 { return max(l.CPU*period/1000, 1000) }

// Create makes the groups of one sandbox. owner is the user who will put commands into them.
func (t *Tree) Create(id string, limits Limits, owner int) (*Group, error) {
	g := &Group{Memories: -1, Forks: -1, Slowed: -1, Peak: -1, Guest: -1, Commands: -1, tree: t, id: id}
	for _, root := range t.roots {
		var err error
		if t.Unified {
			err = g.createV2(root, limits, owner)
		} else {
			err = g.createV1(root, limits, owner)
		}
		if err != nil {
			g.Release()
			return nil, errors.Join(fmt.Errorf("limit sandbox %s: %w", id, err), g.Remove())
		}
	}
	return g, nil
}

func (g *Group) createV1(root hierarchy, limits Limits, owner int) error {
	if limits.CPU == 0 && !slices.Contains(root.controllers, "memory") && !slices.Contains(root.controllers, "pids") {
		return nil // a group without limits costs as much as one with them
	}
	var err error
	if err := unix.Mkdirat(root.dir, g.id, 0o755); err != nil {
		return err
	}
	if slices.Contains(root.controllers, "memory") {
		limit := strconv.FormatInt(limits.Memory, 10)
		if err := write(root.dir, g.id+"/memory.limit_in_bytes", limit); err != nil {
			return err
		}
		// The file is absent when the kernel does not account swap; then the limit has nothing to bound. Of two equal limits, the
		// one with swap is reached first.
		peak := g.id + "/memory.memsw.max_usage_in_bytes"
		if write(root.dir, g.id+"/memory.memsw.limit_in_bytes", limit) != nil {
			peak = g.id + "/memory.max_usage_in_bytes"
		}
		g.Peak, _ = counter(root.dir, peak)
		// The kernel counts memory of TCP buffers separately, and only if it has a limit of its own.
		_ = write(root.dir, g.id+"/memory.kmem.tcp.limit_in_bytes", strconv.FormatInt(limits.Memory/4, 10))
		if g.Memories, err = counter(root.dir, g.id+"/memory.oom_control"); err != nil {
			return err
		}
	}
	if slices.Contains(root.controllers, "pids") {
		// The guest's forking thread is a member too.
		if err := write(root.dir, g.id+"/pids.max", strconv.Itoa(limits.Processes+1)); err != nil {
			return err
		}
		if g.Forks, err = counter(root.dir, g.id+"/pids.events"); err != nil {
			return err
		}
	}
	if limits.CPU > 0 && slices.Contains(root.controllers, "cpu") {
		if err := write(root.dir, g.id+"/cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
			return err
		}
		if err := write(root.dir, g.id+"/cpu.cfs_quota_us", strconv.FormatInt(limits.quota(), 10)); err != nil {
			return err
		}
		if g.Slowed, err = counter(root.dir, g.id+"/cpu.stat"); err != nil {
			return err
		}
	}
	join := func() error {
		fd, err := unix.Openat(root.dir, g.id+"/tasks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			g.Join = append(g.Join, fd)
		}
		return err
	}
	if g.tree.As == nil {
		return join()
	}
	return g.tree.As(owner, join)
}

// counter opens a file with one of the kernel's counters.
func counter(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

func (g *Group) createV2(root hierarchy, limits Limits, owner int) error {
	for _, dir := range []string{g.id, g.id + "/guest", g.id + "/commands"} {
		if err := unix.Mkdirat(root.dir, dir, 0o755); err != nil {
			return err
		}
		if dir == g.id {
			_ = write(root.dir, g.id+"/cgroup.subtree_control", "+memory")
			_ = write(root.dir, g.id+"/cgroup.subtree_control", "+pids")
			if limits.CPU > 0 {
				_ = write(root.dir, g.id+"/cgroup.subtree_control", "+cpu")
			}
		}
	}
	// Moving between two groups needs write permission in their common parent, too.
	for _, dir := range []string{g.id, g.id + "/commands"} {
		if err := unix.Fchownat(root.dir, dir+"/cgroup.procs", owner, -1, 0); err != nil {
			return err
		}
	}
	if g.tree.Memory {
		if err := write(root.dir, g.id+"/commands/memory.max", strconv.FormatInt(limits.Memory, 10)); err != nil {
			return err
		}
		_ = write(root.dir, g.id+"/commands/memory.swap.max", "0")
		g.Memories, _ = counter(root.dir, g.id+"/commands/memory.events")
	}
	if g.tree.Processes {
		if err := write(root.dir, g.id+"/commands/pids.max", strconv.Itoa(limits.Processes)); err != nil {
			return err
		}
		g.Forks, _ = counter(root.dir, g.id+"/commands/pids.events")
	}
	if g.tree.CPU && limits.CPU > 0 {
		if err := write(root.dir, g.id+"/commands/cpu.max", fmt.Sprint(limits.quota(), period)); err != nil {
			return err
		}
		g.Slowed, _ = counter(root.dir, g.id+"/commands/cpu.stat")
	}
	var err error
	if g.Guest, err = unix.Openat(root.dir, g.id+"/guest", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	g.Commands, err = unix.Openat(root.dir, g.id+"/commands", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return err
}

// Release closes the descriptors, once the guest has them.
func (g *Group) Release() {
	for _, fd := range append([]int{g.Memories, g.Forks, g.Slowed, g.Peak, g.Guest, g.Commands}, g.Join...) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	g.Memories, g.Forks, g.Slowed, g.Peak, g.Guest, g.Commands, g.Join = -1, -1, -1, -1, -1, -1, nil
}

// Remove deletes the groups, whose processes must be dead.
func (g *Group) Remove() error {
	var errs []error
	for _, root := range g.tree.roots {
		dirs := []string{g.id}
		if g.tree.Unified {
			dirs = []string{g.id + "/guest", g.id + "/commands", g.id}
		}
		for _, dir := range dirs {
			errs = append(errs, rmdir(root.dir, dir))
		}
	}
	return errors.Join(errs...)
}

// Close deletes the directories of the instance.
func (t *Tree) Close() error {
	var errs []error
	for _, root := range t.roots {
		unix.Close(root.dir)
		errs = append(errs, rmdir(root.parent, root.name))
		unix.Close(root.parent)
	}
	t.roots = nil
	return errors.Join(errs...)
}

// rmdir retries for a moment: the kernel may still be removing a process that was just reaped from its group.
func rmdir(dir int, name string) error {
	var err error
	for wait := 50 * time.Microsecond; wait < 500*time.Millisecond; wait *= 2 {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		time.Sleep(wait)
	}
	return &fs.PathError{Op: "rmdir", Path: name, Err: err}
}

func write(dir int, name, value string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		for _, err = unix.Write(fd, []byte(value)); err == unix.EINTR; { // the Go scheduler's own signals can interrupt it
			_, err = unix.Write(fd, []byte(value))
		}
		unix.Close(fd)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

func words(file string) []string {
	content, _ := os.ReadFile(file)
	return strings.Fields(string(content))
}

// mount is a cgroup hierarchy and the own group in it.
type mount struct {
	version     int
	path, own   string
	controllers []string
}

func find() ([]mount, error) {
	own := map[string]string{} // by controller; "" is version 2
	file, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(file)) {
		if part := strings.SplitN(strings.TrimSpace(line), ":", 3); len(part) == 3 {
			for _, controller := range strings.Split(part[1], ",") {
				own[controller] = part[2]
			}
		}
	}
	info, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer info.Close()
	var found []mount
	for scan := bufio.NewScanner(info); scan.Scan(); {
		before, after, _ := strings.Cut(scan.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 3 {
			continue
		}
		m := mount{path: left[4]}
		switch right[0] {
		case "cgroup":
			m.version, m.controllers = 1, strings.Split(right[2], ",")
			for _, c := range m.controllers {
				if path, ok := own[c]; ok {
					m.own = path
				}
			}
		case "cgroup2":
			m.version, m.own = 2, own[""]
		default:
			continue
		}
		// In a bind mount of a part of the hierarchy, as containers have, the own path is relative to the whole.
		if rel, err := filepath.Rel(left[3], m.own); err == nil && !strings.HasPrefix(rel, "..") {
			m.own = rel
		} else {
			m.own = ""
		}
		found = append(found, m)
	}
	return found, nil
}
