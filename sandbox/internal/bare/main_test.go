package bare_test

import (
	"os"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}
