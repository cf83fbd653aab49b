package run

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestFreeMemory(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n"
	for name, tt := range map[string]struct {
		files map[string]string
		limit int64
		want  uint64
	}{
		"nothing is said":     {nil, math.MaxInt64, 0},
		"the machine's":       {map[string]string{"proc/meminfo": meminfo}, math.MaxInt64, 20000000 << 10},
		"GOMEMLIMIT":          {map[string]string{"proc/meminfo": meminfo}, 1 << 30, 1 << 30},
		"no limit of a group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, math.MaxInt64, 20000000 << 10},
		"a job's": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job/step\n", "sys/fs/cgroup/job/step/memory.max": "max\n", "sys/fs/cgroup/job/memory.max": "1000000\n",
		}, math.MaxInt64, 1000000},
		"a container's": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000000\n"}, math.MaxInt64, 2000000},
		"the older way": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/job\n", "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "3000000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/x/memory.max": "1\n",
		}, math.MaxInt64, 3000000},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir() + "/"
			for file, content := range tt.files {
				if err := os.MkdirAll(filepath.Dir(root+file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(root+file, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := freeMemoryOf(root, tt.limit); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	if got := FreeMemory(); got == 0 {
		t.Error("this machine says nothing of its memory")
	}
}
