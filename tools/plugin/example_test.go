package plugin_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

func Example() {
	ctx := context.Background()
	state, err := os.MkdirTemp("", "plugin-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(state)
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: state})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close()

	plugins, err := plugin.Open(ctx, []plugin.Config{{
		Name: "workspace", Command: []string{"./workspace.sh"}, Files: []string{"../../examples/plugins/workspace.sh"},
	}}, plugin.Options{
		Sandbox: func(ctx context.Context) (sandbox.Sandbox, error) {
			return backend.Open(ctx, sandbox.Spec{ID: "describe"})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer plugins.Close()

	tools, err := registry.New(plugins.Tools()...)
	if err != nil {
		log.Fatal(err)
	}
	toolset, err := tools.Select([]string{"plugin-workspace"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	session := toolset.Session(registry.SessionConfig{
		Sandbox: func(ctx context.Context) (sandbox.Sandbox, error) {
			return backend.Open(ctx, sandbox.Spec{ID: "episode"})
		},
	})
	defer session.Close()
	call := session.Call(ctx, registry.Request{ID: "call_1", Name: "workspace_size", Arguments: "{}"})
	fmt.Println(call.Status, call.Result)
	// Output: ok {"files":0,"bytes":0}
}
