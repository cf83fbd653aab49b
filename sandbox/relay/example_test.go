package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// A backend at one end of a stream is a backend at the other.
func Example() {
	backend := &sandboxtest.Scripted{Command: func(_ context.Context, _ *sandboxtest.ScriptedSandbox, cmd sandbox.Command) (sandbox.Exit, error) {
		_, err := fmt.Fprintln(cmd.Stdout, strings.ToUpper(cmd.Args[1]))
		return sandbox.Exit{Code: 3}, err
	}}
	here, there := net.Pipe()
	served := make(chan error)
	go func() { served <- relay.Serve(there, backend, slog.New(slog.DiscardHandler)) }()

	ctx := context.Background()
	client, err := relay.Dial(ctx, here, relay.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sb, err := client.Open(ctx, sandbox.Spec{ID: "demo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"shout", "hello"}}, sandbox.RunOptions{})
	fmt.Printf("%s%d %v\n", result.Stdout.Bytes(), result.Exit.Code, err)
	fmt.Println(client.Close(), <-served)
	// Output:
	// HELLO
	// 3 <nil>
	// <nil> <nil>
}
