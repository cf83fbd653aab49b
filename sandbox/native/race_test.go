//go:build linux && race

package native_test

// The race detector has mapped so much memory in the guest, too, that it may get no more while a limit is on.
func init() { softMemory = 1 << 46 }
