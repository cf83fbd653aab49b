// Package embedded holds the commands sandboxd and sandboxhelper, in what was built with the tag embedguest after
// scripts/build-guest. In all else both are empty, and the whole program runs itself again instead.
package embedded

// Helper is the program that lies in sandboxes, an executable file for Linux on an architecture; "" where there is none.
func Helper(goarch string) string {
	switch goarch {
	case "amd64":
		return helperAMD64
	case "arm64":
		return helperARM64
	}
	return ""
}
