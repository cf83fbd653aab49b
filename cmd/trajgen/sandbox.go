package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/sandbox"
)

func newSandbox(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Run a command in a fresh sandbox; list and sweep sandboxes"}
	return group(cmd, newSandboxExec(std), newSandboxList(std), newSandboxSweep(std))
}

func newSandboxExec(std stdio) *cobra.Command {
	var choice run.Backend
	network, image, tty := string(sandbox.NetworkLoopback), "", false
	memory, allow := "", []string(nil)
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD ARGS...",
		Short: "Run one command in a fresh sandbox",
		Long:  "Runs one command in a fresh sandbox with the streams of this one; the exit code is the command's.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := sandbox.Spec{ID: fmt.Sprintf("exec-%d", os.Getpid()), Image: image, Network: sandbox.Network(network), Allow: allow}
			if memory != "" {
				bytes, err := sandbox.ParseSize(memory)
				if err != nil {
					return usage(fmt.Errorf("--memory: %w", err))
				}
				spec.Limits.Memory = int64(bytes)
			}
			signals := func(ctx context.Context) (context.Context, <-chan struct{}, func()) {
				return interruptible(ctx, io.Discard, nil)
			}
			command := sandbox.Command{Args: args, Stdin: std.in, Stdout: std.out, Stderr: std.err}
			code, err := desk.Exec(cmd.Context(), choice, spec, command, tty, signals)
			if errors.Is(err, sandbox.ErrNotFound) {
				return withCode(127, err)
			}
			if err != nil {
				return err
			}
			if code != 0 {
				return withCode(code, errQuiet)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	backendFlags(&choice, flags, "backend")
	flags.BoolVarP(&tty, "tty", "t", false, "run the command on a terminal of its own, as wide as this one")
	flags.StringVar(&image, "image", "", "image (default: the host's toolchain)")
	flags.StringVar(&network, "network", network, "none, loopback, allowlist or full")
	flags.StringSliceVar(&allow, "allow", nil, "targets of network allowlist: names, addresses or CIDR ranges, each with or without :PORT")
	flags.StringVar(&memory, "memory", "", "memory limit, such as 512M")
	return cmd
}

func newSandboxList(std stdio) *cobra.Command {
	all := func(context.Context) ([]sandbox.Live, error) { return sandbox.List(run.StateDir()) }
	return listing(std, "list", "List the live sandboxes of this machine", all, func(w io.Writer, s sandbox.Live) {
		fmt.Fprintf(w, "%s\t%s\tpid %d\towner %d\t%s\n", s.ID, s.Backend, s.PID, s.Owner, s.Started.Format(time.RFC3339))
	})
}

func newSandboxSweep(std stdio) *cobra.Command {
	all := func(context.Context) ([]sandbox.Leftover, error) { return sandbox.Sweep(run.StateDir()) }
	return listing(std, "sweep", "Remove sandboxes whose owner is dead", all, func(w io.Writer, leftover sandbox.Leftover) { fmt.Fprintln(w, leftover) })
}
