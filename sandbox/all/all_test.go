package all_test

import (
	"os"
	"testing"

	"trajgen/sandbox"
	_ "trajgen/sandbox/all"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	for _, main := range mains {
		main()
	}
	os.Exit(m.Run())
}

// mains are what else this program is, under other names.
var mains []func()

// surroundings prepare what a backend needs to be opened here, for those that need something. They return an error when
// it cannot be had.
var surroundings = map[string]func(testing.TB) (sandbox.Options, error){}

// caps are what a backend cannot do that every other must, with the reason.
var caps = map[string]sandboxtest.Caps{}

// TestContract asks every backend everything.
func TestContract(t *testing.T) {
	for _, name := range sandbox.Names() {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return open(t, name) }, sealed(caps[name]))
		})
	}
}

func open(t testing.TB, name string) sandbox.Backend {
	t.Helper()
	var options sandbox.Options
	if prepare := surroundings[name]; prepare != nil {
		var err error
		options, err = prepare(t)
		sandboxtest.Require(t, name, err)
	}
	if options.StateDir == "" {
		options.StateDir = t.TempDir()
	}
	b, err := sandbox.Open(name, options)
	sandboxtest.Require(t, name, err)
	return b
}
