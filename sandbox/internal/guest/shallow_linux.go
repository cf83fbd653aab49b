package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// deepest is how deep directories may lie in one another in the end. Who removes a container does so with a descriptor for
	// each level, and fails when it has no more of them; so does then whatever else it wants to do.
	deepest = 100
	// shallowTime bounds the search for what lies deeper. What is not found is left.
	shallowTime = 5 * time.Second
	// headStart is how long before the guest what commands write to may have been made.
	headStart = 2 * time.Minute
)

// shallower moves up what lies too deep in the root file system.
type shallower struct {
	remover
	// since is when a directory was last changed at the earliest, if anything in it or below has been; 0 where the file system
	// does not tell.
	since int64
	until time.Time
}

// shallow is called when no process is left that could go on making directories.
func (g *guest) shallow() {
	root, err := os.Open("/")
	if err != nil {
		return
	}
	defer root.Close()
	s := shallower{remover: remover{garbage: &g.garbage, top: int(root.Fd())}, until: time.Now().Add(shallowTime)}
	var fs unix.Statfs_t
	if unix.Fstatfs(int(root.Fd()), &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		// With a file, overlay copies all directories on the way to it. What the image has is not looked through.
		s.since = g.born.Add(-headStart).UnixNano()
	}
	s.visit(root, 1)
	for i := 1; i <= s.moved; i++ {
		if fd, err := openInside(s.top, movedName(i), unix.O_RDONLY); err == nil {
			inside := os.NewFile(uintptr(fd), movedName(i))
			s.visit(inside, 2)
			_ = inside.Close()
		}
	}
}

func (s *shallower) visit(dir *os.File, depth int) {
	for _, name := range s.directories(dir) {
		if time.Now().After(s.until) {
			return
		}
		fd, err := openInside(int(dir.Fd()), name, unix.O_RDONLY)
		if err != nil {
			continue // of another file system, or not ours to look into
		}
		inside := os.NewFile(uintptr(fd), name)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Ctim.Nano() >= s.since {
			switch {
			case depth < deepest:
				s.visit(inside, depth+1)
			case s.moveUp(int(dir.Fd()), name) != nil: // the image's, or the top is not ours
				r := remover{garbage: s.garbage, top: -1}
				_ = r.remove(int(dir.Fd()), name, 0)
			}
		}
		_ = inside.Close()
	}
}

func (s *shallower) directories(dir *os.File) (names []string) {
	for {
		entries, err := dir.ReadDir(1024)
		s.garbage.count(len(entries) * entryGarbage)
		s.garbage.collect()
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
		if err != nil || time.Now().After(s.until) {
			return names
		}
	}
}
