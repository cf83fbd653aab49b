// Command sandboxd is the broker and the guests as a program of its own: it starts in a fraction of the time that the
// whole program needs, and has less memory for a fork to copy. scripts/build-guest builds it for package embedded.
package main

import (
	"os"

	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/guest"
)

func main() {
	switch os.Args[0] {
	case broker.Name:
		broker.Main()
	case guest.LandlockName:
		guest.LandlockMain()
	}
	guest.Main()
}
