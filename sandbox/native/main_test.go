package native_test

import (
	"os"
	"testing"

	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}
