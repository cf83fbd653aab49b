//go:build !linux

package mark

// Kill cannot find processes that left their group on this system.
func Kill(string, uint64) error { return nil }

// KillBelow cannot, either.
func KillBelow(string) error { return nil }

// Tree finds no processes.
func Tree(int, string, uint64) []int { return nil }

// Birth returns 0: the time is not known.
func Birth() uint64 { return 0 }

// Put does nothing.
func Put(int, string) {}
