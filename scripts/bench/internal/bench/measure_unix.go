//go:build unix

package bench

import (
	"syscall"
	"time"
)

// childrenCPU is the time of all processes that this one waited for, and of those that they waited for, in
// milliseconds.
func childrenCPU() float64 { return cpuMS(syscall.RUSAGE_CHILDREN) }

// ownCPU is that of this process alone.
func ownCPU() float64 { return cpuMS(syscall.RUSAGE_SELF) }

func cpuMS(who int) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0 // no other who can be wrong
	}
	return float64(time.Duration(usage.Utime.Nano()+usage.Stime.Nano())) / float64(time.Millisecond)
}
