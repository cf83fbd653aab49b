package all_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/sandbox"
	_ "trajgen/sandbox/all"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// bare are the backends that need nothing around them to be opened in a test.
var bare = []string{"native", "local"}

// TestContract asks them everything. The tests of the other backends ask it with what each of those needs.
func TestContract(t *testing.T) {
	for _, name := range bare {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return open(t, name) }, sandboxtest.Caps{})
		})
	}
}

// TestEveryBackendIsAsked holds that no backend which is linked can do without the contract.
func TestEveryBackendIsAsked(t *testing.T) {
	all, err := parser.ParseFile(token.NewFileSet(), "all.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, linked := range all.Imports {
		name := strings.TrimPrefix(strings.Trim(linked.Path.Value, `"`), "trajgen/sandbox/")
		tests, _ := filepath.Glob(filepath.Join("..", name, "*_test.go"))
		asks := func(file string) bool {
			content, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(content), "func TestContract(") && strings.Contains(string(content), "sandboxtest.Run(")
		}
		if !slices.Contains(bare, name) && !slices.ContainsFunc(tests, asks) {
			t.Errorf("the tests of %s do not ask the contract: see TestContract of package modal", name)
		}
	}
}

func open(t testing.TB, name string) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, name, err)
	return b
}
