package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
)

func init() { sandbox.RegisterHelper(helper, look) }

func look(_ []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := Facts{PID: os.Getpid(), IDs: ids()}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	f.Processes = len(entries)
	for line := range strings.Lines(read("/proc/self/status")) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "Seccomp":
			f.Filtered = value == "2"
		case "NoNewPrivs":
			f.NoNewPrivs = value == "1"
		}
	}
	f.Memory = number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
	f.PIDs = number("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
	f.CPUs = cpus()
	var disk unix.Statfs_t
	if unix.Statfs("/", &disk) == nil {
		f.Disk, f.Inodes = int64(disk.Blocks)*disk.Bsize, int64(disk.Files)
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		f.Files = int64(min(files.Max, 1<<62))
	}
	f.Interfaces, f.Unreachable = interfaces()
	at := "/" + Folder.Name
	_, err := os.Stat(at + "/file")
	f.FixedFolder = err == nil && errors.Is(os.WriteFile(at+"/new", nil, 0o600), unix.EROFS)
	f.Kernel = strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	if err := json.NewEncoder(stdout).Encode(f); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func read(name string) string {
	content, _ := os.ReadFile(name)
	return string(content)
}

// number reads the first file that exists; text, and numbers too large to limit anything, give 0.
func number(names ...string) int64 {
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil || n > 1<<60 {
			return 0
		}
		return n
	}
	return 0
}

func cpus() float64 {
	quota, period, found := strings.Cut(strings.TrimSpace(read("/sys/fs/cgroup/cpu.max")), " ")
	if !found {
		quota, period = read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, other := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || other != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

func ids() string {
	fields := strings.Fields(read("/proc/self/uid_map"))
	switch {
	case len(fields) == 3 && fields[2] == "1":
		return "single"
	case len(fields) >= 3 && fields[0] == "0" && fields[1] == "0":
		return "host"
	case len(fields) >= 3:
		return "shifted"
	}
	return ""
}

// interfaces returns the network interfaces without loopback; unreachable says that routes are missing too.
func interfaces() (names []string, unreachable bool) {
	lines := bufio.NewScanner(strings.NewReader(read("/proc/net/dev")))
	for lines.Scan() {
		name, _, found := strings.Cut(lines.Text(), ":")
		// Some kernels put unused tunnels into every network.
		if name = strings.TrimSpace(name); found && name != "lo" {
			if state := strings.TrimSpace(read("/sys/class/net/" + name + "/operstate")); state != "down" {
				names = append(names, name)
			}
		}
	}
	return names, strings.Count(read("/proc/net/route"), "\n") <= 1
}
