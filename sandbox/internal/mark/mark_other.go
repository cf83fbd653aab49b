//go:build !linux

package mark

// Kill has no way here to find processes that left their group.
func Kill(string, uint64) error { return nil }

// KillBelow has none, either.
func KillBelow(string) error { return nil }

// Tree is of nothing that could be found.
func Tree(int, string, uint64) []int { return nil }

// Birth does not tell the time.
func Birth() uint64 { return 0 }

// Put marks nothing.
func Put(int, string) {}
