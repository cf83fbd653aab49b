package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Machine is where it was measured.
type Machine struct {
	OS        string  `json:"os"`
	Arch      string  `json:"arch"`
	Kernel    string  `json:"kernel,omitempty"`
	CPU       string  `json:"cpu,omitempty"`
	Cores     int     `json:"cores"`
	MemoryMB  float64 `json:"memory_mb,omitempty"`
	OpenFiles int     `json:"open_files"` // that a process may have
	Go        string  `json:"go"`
	Root      bool    `json:"root"`
}

func thisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernel(), CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		MemoryMB: number(field("/proc/meminfo", "MemTotal")) / 1024, OpenFiles: openFiles(), Go: runtime.Version(), Root: os.Geteuid() == 0,
	}
}

// openFiles is the hard limit, up to which a Go program raises its own.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Max > 1<<30 {
		return 1 << 30
	}
	return int(limit.Max)
}

// connections are as many as one process has at most, beside its own files and a quarter of them for sandboxes: trajgen run
// sends no more requests at a time, and the loop does the same.
func connections() int {
	const spare = 512
	return max(openFiles()-spare-openFiles()/4, 16)
}

// field is what stands behind a name in one of the system's files; "" where there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func number(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

// loadAverage is that of the last minute: what else runs here disturbs what is measured.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	return number(string(text))
}
