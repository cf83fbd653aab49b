package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// deepest is how deep directories may be nested at the end. Container runtimes remove them with a descriptor for each
	// level, and fail when they run out, also in everything else they do then.
	deepest = 100
	// shallowTime bounds the search for deeper ones. Those that are not found by then stay.
	shallowTime = 5 * time.Second
	// headStart is how much older than the guest the directories of commands may be.
	headStart = 2 * time.Minute
)

// shallower moves up directories that are nested too deep in the root file system.
type shallower struct {
	remover
	// since is the earliest time at which a directory can have changed if a command changed anything in it or below; 0 where
	// the file system does not tell.
	since int64
	until time.Time
}

// shallow is called when no process is left that could make directories.
func shallow(born time.Time, garbage *garbage) {
	root, err := os.Open("/")
	if err != nil {
		return
	}
	defer root.Close()
	s := shallower{remover: remover{garbage: garbage, top: int(root.Fd())}, until: time.Now().Add(shallowTime)}
	var fs unix.Statfs_t
	if unix.Fstatfs(int(root.Fd()), &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		// When a file changes, overlay copies all its parents. Directories of the image are not searched.
		s.since = born.Add(-headStart).UnixNano()
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
			continue // on another file system, or not readable for us
		}
		inside := os.NewFile(uintptr(fd), name)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Ctim.Nano() >= s.since {
			switch {
			case depth < deepest:
				s.visit(inside, depth+1)
			case s.moveUp(int(dir.Fd()), name) != nil: // it is the image's, or the top is not ours
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
