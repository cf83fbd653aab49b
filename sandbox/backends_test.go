package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestUnknownSetting has settings refused that a kind does not declare, before anything is swept or opened.
func TestUnknownSetting(t *testing.T) {
	opened := 0
	sandbox.RegisterFor(t, "choosy", sandbox.Kind{
		Open: func(sandbox.Options) (sandbox.Backend, error) {
			opened++
			return &sandboxtest.Scripted{}, nil
		},
		Settings: []sandbox.Setting{{Name: "size"}, {Name: "key", Secret: true}, {Name: "depth"}},
	})
	for _, tt := range []struct {
		name    string
		backend string
		give    map[string]string
		want    string // "" when it opens
	}{
		{"none", "choosy", nil, ""},
		{"known", "choosy", map[string]string{"key": "a", "depth": ""}, ""},
		{"unknown", "choosy", map[string]string{"size": "1", "colour": "red"},
			`open sandbox backend choosy: unknown setting "colour" (have size, key, depth)`},
		{"several", "choosy", map[string]string{"smell": "", "colour": "red"}, "open sandbox backend choosy: " +
			"unknown setting \"colour\" (have size, key, depth)\nunknown setting \"smell\" (have size, key, depth)"},
		{"nothing declared", "local", map[string]string{"size": "1"}, `open sandbox backend local: unknown setting "size" (have none)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opened = 0
			state := t.TempDir()
			dead := filepath.Join(state, "choosy-dead")
			if err := os.Mkdir(dead, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := sandbox.Open(tt.backend, sandbox.Options{StateDir: state, Settings: tt.give})
			_, swept := os.Stat(dead)
			if tt.want == "" {
				if err != nil || opened != 1 || swept == nil {
					t.Errorf("got %v, opened %d times, left by a dead runner: %v; want it swept and opened", err, opened, swept)
				}
				return
			}
			if err == nil || err.Error() != tt.want || opened != 0 || swept != nil {
				t.Errorf("got %v, opened %d times, left by a dead runner: %v; want %s and nothing done", err, opened, swept, tt.want)
			}
		})
	}
}
