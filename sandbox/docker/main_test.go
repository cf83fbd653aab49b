package docker_test

import (
	"fmt"
	"os"
	"testing"

	"trajgen/sandbox"
)

// roles are other things that this test program does, by its name.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	sandbox.Init()
	if role, ok := roles[os.Args[0]]; ok {
		fmt.Fprintln(os.Stderr, role(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}
