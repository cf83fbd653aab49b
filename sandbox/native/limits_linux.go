package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/broker"
)

// testLimits are the limits of the self-test's sandbox. They differ from the defaults, so that the test finds the limits it
// asked for.
var testLimits = sandbox.Limits{Processes: 200, CPUs: 2, Disk: 64 << 20, Inodes: 5000, Files: 300}

// softMemory says what the memory limit lacks without a cgroup. Refusing memfd_create would not help: shared anonymous mappings
// escape the limit as well, and too many programs use them.
const softMemory = "a limit on all memory together: each process is bounded by itself, and memory that is shared is not counted: " +
	"memory files (memfd_create), shared mappings, System V segments"

// probeLimits prints the limits as seen inside.
const probeLimits = `
echo files; ulimit -Hn
stat -f -c 'disk %b %S %c' / 2>/dev/null
`

// isolation is the isolation of a native sandbox, before the self-test corrects it. A guest always has the namespaces.
func isolation() map[string]string {
	return map[string]string{
		"files": "own", "processes": "own", "network": "own", "ids": "shifted", "calls": "filtered", "kernel": "shared", "quotas": "own",
	}
}

// groupLimits reads from the cgroups of a sandbox which limits are in force there: memory, processes and cpu.
func groupLimits(ready broker.Ready, id string, asked sandbox.Limits) map[string]string {
	limits := map[string]string{sandbox.LimitMemory: "soft", sandbox.LimitProcesses: "soft", sandbox.LimitCPU: "none"}
	processes := strconv.Itoa(asked.Processes)
	with := strconv.Itoa(asked.Processes + 1) // the guest's own thread, in version 1
	quota := strconv.Itoa(int(asked.CPUs * 100_000))
	for _, group := range ready.Groups {
		for file, want := range map[string]struct{ name, value string }{
			"memory.limit_in_bytes": {sandbox.LimitMemory, strconv.FormatInt(asked.Memory, 10)},
			"commands/memory.max":   {sandbox.LimitMemory, strconv.FormatInt(asked.Memory, 10)},
			"pids.max":              {sandbox.LimitProcesses, with},
			"commands/pids.max":     {sandbox.LimitProcesses, processes},
			"cpu.cfs_quota_us":      {sandbox.LimitCPU, quota},
			"commands/cpu.max":      {sandbox.LimitCPU, quota + " 100000"},
		} {
			content, err := os.ReadFile(filepath.Join(group, id, file))
			if err == nil && strings.TrimSpace(string(content)) == want.value {
				limits[want.name] = "hard"
			}
		}
	}
	return limits
}

// ownLimits parses what probeLimits printed.
func ownLimits(said string, asked sandbox.Limits) map[string]string {
	limits := map[string]string{sandbox.LimitFiles: "none", sandbox.LimitDisk: "none", sandbox.LimitInodes: "none"}
	if strings.Contains(said, fmt.Sprintf("files\n%d\n", asked.Files)) {
		limits[sandbox.LimitFiles] = "hard"
	}
	_, after, _ := strings.Cut(said, "disk ")
	var blocks, size, inodes int64
	if n, _ := fmt.Sscan(after, &blocks, &size, &inodes); n == 3 {
		if blocks*size == asked.Disk {
			limits[sandbox.LimitDisk] = "hard"
		}
		if inodes == asked.Inodes {
			limits[sandbox.LimitInodes] = "hard"
		}
	}
	return limits
}
