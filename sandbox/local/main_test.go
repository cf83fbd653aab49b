package local_test

import (
	"os"
	"testing"

	_ "trajgen/sandbox/local"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}
