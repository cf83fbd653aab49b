package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Measurement is what a process cost, with everything that it started.
type Measurement struct {
	WallS float64 `json:"wall_s"`
	CPUMS float64 `json:"cpu_ms"` // user and system time of the process and of all that anybody waited for
	// CgroupCPUMS is the same from the accounts of a cgroup, where one can be had that sandboxes do not leave: 0 without.
	CgroupCPUMS float64 `json:"cgroup_cpu_ms,omitempty"`
	// PeakMB is the most memory at a time of the runner and its broker together, without what runs in sandboxes.
	PeakMB   float64 `json:"peak_mb"`
	MemoryIs string  `json:"memory_is"` // pss, or maxrss where the system does not tell: then of the largest process
	// MeanMB is the mean over the second half of the time, of the same.
	MeanMB float64 `json:"mean_mb,omitempty"`
	Exit   int     `json:"exit"`
}

// Measure runs a command to its end, and to that of all that it leaves behind. The process that calls it does nothing
// else: all that it has ever waited for counts.
func Measure(cmd *exec.Cmd, sample time.Duration, privateMounts bool) (Measurement, error) {
	if err := adoptStrays(); err != nil {
		return Measurement{}, err
	}
	account, err := openAccount()
	if err != nil {
		return Measurement{}, err
	}
	defer account.close()
	if privateMounts {
		separateMounts(cmd)
	}
	began := time.Now()
	if err := account.start(cmd); err != nil {
		return Measurement{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	memory := watchMemory(cmd.Process.Pid, sample)
	err = cmd.Wait()
	m := Measurement{WallS: time.Since(began).Seconds()}
	memory.stop()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return m, err
	}
	m.Exit = cmd.ProcessState.ExitCode()
	if err := reapStrays(2 * time.Minute); err != nil {
		return m, err
	}
	m.CPUMS, m.CgroupCPUMS = childrenCPU(), account.cpuMS()
	m.PeakMB, m.MeanMB, m.MemoryIs = memory.peak()
	return m, nil
}

// Write leaves the measurement where the driver looks for it.
func (m Measurement) Write(path string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
