// Command sandboxd is the broker and the guests as a program of its own: it starts in a fraction of the time that the
// whole program needs, and has less memory for a fork to copy. scripts/build-guest builds it for package embedded.
package main

import (
	"os"

	_ "trajgen/sandbox/internal/broker" // plays a role
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/self"
)

func main() {
	self.Play(os.Args[0])
	guest.Main()
}
