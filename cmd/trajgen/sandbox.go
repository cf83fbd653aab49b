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
			code, err := execOnce(cmd.Context(), std, choice, spec, args, tty)
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

func execOnce(ctx context.Context, std stdio, choice run.Backend, spec sandbox.Spec, args []string, tty bool) (code int, err error) {
	backend, err := choice.Open()
	if err != nil {
		return 0, usage(err)
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	if err := backend.Offers(spec.Network, spec.Image); err != nil {
		return 0, usage(err)
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return 0, fmt.Errorf("open sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	ctx, drain, stop := interruptible(ctx, io.Discard, nil)
	defer stop()
	command := sandbox.Command{Args: args, Stdin: std.in, Stdout: std.out, Stderr: std.err}
	var lent *lentTerminal
	if tty {
		if lent, err = takeTerminal(std.in); err != nil {
			return 0, err
		}
		defer lent.giveBack()
		size := lent.size()
		command.TTY, command.Stderr = &size, nil
	}
	process, err := sb.Start(ctx, command)
	if errors.Is(err, sandbox.ErrNotFound) {
		return 127, withCode(127, err)
	}
	if err != nil {
		return 0, err
	}
	if lent != nil {
		defer lent.follow(ctx, process)()
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() { // the first interrupt ends the command
		select {
		case <-drain:
			_ = process.Kill(context.WithoutCancel(ctx), time.Second)
		case <-ended:
		}
	}()
	exit, err := process.Wait(ctx)
	return exit.Code, err
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
