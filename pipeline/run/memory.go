package run

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// FreeMemory is the available memory of this machine in bytes, at most what control groups or GOMEMLIMIT allow this process; 0
// if unknown.
func FreeMemory() uint64 {
	return freeMemoryOf("/", debug.SetMemoryLimit(-1))
}

func freeMemoryOf(root string, limit int64) uint64 {
	var free uint64
	for line := range strings.Lines(readText(root + "proc/meminfo")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemAvailable:" {
			kB, _ := strconv.ParseUint(fields[1], 10, 54)
			free = kB << 10
		}
	}
	if limit < math.MaxInt64 {
		free = min(free, uint64(limit))
	}
	for line := range strings.Lines(readText(root + "proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, dir, _ := strings.Cut(rest, ":")
		base, file := root+"sys/fs/cgroup", "memory.max"
		switch controllers {
		case "":
		case "memory":
			base, file = base+"/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for ; ; dir = path.Dir(dir) { // the limits of the groups around it apply, too
			if bytes, err := strconv.ParseUint(strings.TrimSpace(readText(path.Join(base, dir, file))), 10, 64); err == nil {
				free = min(free, bytes)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return free
}

// readText returns "" if the file cannot be read.
func readText(name string) string {
	content, _ := os.ReadFile(name)
	return string(content)
}
