package toolbench

import (
	"maps"
	"testing"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	_ "trajgen/sandbox/docker"
	_ "trajgen/sandbox/native"
)

// TestSettingsOfBackends gives each backend of a bench what it has, and an unknown one to all, so that its error is seen.
func TestSettingsOfBackends(t *testing.T) {
	b := Bench{Options: Options{Backends: []string{"native", "docker"}}, Source: &desk.Source{Sandbox: run.Backend{Settings: map[string]string{"image": "debian", "imag": "x"}}}}
	for backend, want := range map[string]map[string]string{"native": {"imag": "x"}, "docker": {"image": "debian", "imag": "x"}} {
		if got := b.settings(backend); !maps.Equal(got, want) {
			t.Errorf("%s gets %v, want %v", backend, got, want)
		}
	}
}
