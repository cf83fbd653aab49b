//go:build !linux

package self

// KeepDescriptors does nothing on this system.
func KeepDescriptors() {}
