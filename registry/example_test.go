package registry_test

import (
	"context"
	"fmt"
	"strings"

	"trajgen/registry"
)

func Example() {
	type arguments struct {
		Text  string `json:"text" doc:"what to say"`
		Times int    `json:"times,omitempty" doc:"how often" default:"1" min:"1" max:"3"`
	}
	say := registry.Define(
		registry.Definition{Name: "say", Toolset: "speech", Description: "Say something."},
		func(_ context.Context, _ *registry.Env, args arguments) (any, error) {
			if args.Text == "" {
				return nil, registry.Failf("nothing", "there is nothing to say")
			}
			return map[string]string{"said": strings.Repeat(args.Text, args.Times)}, nil
		})

	r, err := registry.New(say)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	tools, err := r.Select([]string{"speech"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	episode := tools.Session(registry.SessionConfig{})
	defer episode.Close()

	for i, raw := range []string{`{"text":"ha","times":"2"}`, `{"text":"ha","times":9}`, `{"text":""}`} {
		call := episode.Call(ctx, registry.Request{ID: fmt.Sprint("call_", i), Name: "say", Arguments: raw})
		fmt.Println(call.Status, call.Coerced, call.Result)
	}
	// Output:
	// ok [times] {"said":"haha"}
	// invalid_arguments [] {"error":"invalid arguments for say: times: expected integer from 1 to 3, got number 9","example":{"text":"...","times":1},"problems":[{"field":"times","expected":"integer from 1 to 3","got":"number 9"}]}
	// error [] {"error":"there is nothing to say"}
}
