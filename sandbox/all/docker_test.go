package all_test

import (
	"fmt"
	"os"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

func init() {
	for _, name := range []string{"docker", "podman"} {
		caps[name] = sandboxtest.Caps{Lacks: map[string]string{"network full": "the engine's own network reaches what the engine's machine does, and says so"}}
	}
	surroundings["docker"] = func(t testing.TB) (sandbox.Options, error) { return engine("DOCKER_HOST") }
	surroundings["podman"] = func(t testing.TB) (sandbox.Options, error) { return engine("CONTAINER_HOST") }
}

// engine is one that scripts/engine has started.
func engine(variable string) (sandbox.Options, error) {
	host, image := os.Getenv(variable), os.Getenv("TRAJGEN_TEST_IMAGE")
	if host == "" || image == "" {
		return sandbox.Options{}, fmt.Errorf("%s and TRAJGEN_TEST_IMAGE are not set (scripts/engine starts an engine)", variable)
	}
	return sandbox.Options{Settings: map[string]string{"host": host, "image": image}}, nil
}
