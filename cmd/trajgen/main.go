// Command trajgen turns a dataset of tasks into a dataset of agent trajectories.
//
// Only this package reads the environment, flags and the standard streams: it parses them, connects the packages and turns errors
// into exit codes.
package main

import (
	"context"
	"os"

	"trajgen/sandbox"
	_ "trajgen/sandbox/guests"
)

func main() {
	sandbox.Init() // does not return in a sandbox's own processes
	os.Exit(command(context.Background(), os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run is main without the process: it returns the exit code.
func command(ctx context.Context, args []string, std stdio) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	return exitCode(err, std.err)
}
