// Command sandboxhelper lies in every sandbox: it is the helpers of sandbox.Command, and a guest where a memory file may
// not be executed. It holds nothing that those who are confined there should not read, no dataset above all.
// scripts/build-guest builds it for package sandbox/guests.
package main

import (
	"fmt"
	"os"

	_ "trajgen/pipeline/reward/suspects" // registers itself, as do those that follow
	"trajgen/sandbox"
	_ "trajgen/sandbox/local" // what an agent serves on another machine, too, as does the next
	_ "trajgen/sandbox/native"
	_ "trajgen/sandbox/relay"
	_ "trajgen/tools/page"
	_ "trajgen/tools/search"
)

func main() {
	sandbox.Init()
	fmt.Fprintln(os.Stderr, "sandboxhelper is started by trajgen")
	os.Exit(2)
}
