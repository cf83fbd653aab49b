//go:build embedguest

package all_test

import (
	"maps"

	"trajgen/sandbox/sandboxtest"
)

// sealed leaves out what a program with the small ones in it cannot be asked.
func sealed(caps sandboxtest.Caps) sandboxtest.Caps {
	lacks := map[string]string{"helper": "the small program has not this test's helper; the tests of tools run its own"}
	maps.Copy(lacks, caps.Lacks)
	return sandboxtest.Caps{Lacks: lacks}
}
