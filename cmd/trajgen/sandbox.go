package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"trajgen/sandbox"
)

// stateDir is where sandboxes keep what must be on disk.
func stateDir() string { return sandbox.DefaultStateDir(os.Getuid(), os.Getenv("XDG_RUNTIME_DIR")) }

// openBackend opens a sandbox backend by name.
func openBackend(name string, logger *slog.Logger) (sandbox.Backend, error) {
	return sandbox.Open(name, sandbox.Options{StateDir: stateDir(), Logger: logger})
}

func newSandbox(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Run a command in a fresh sandbox; list and sweep sandboxes"}
	return group(cmd, newSandboxExec(std), newSandboxList(std), newSandboxSweep(std))
}

func newSandboxExec(std stdio) *cobra.Command {
	backend, network, image := "native", string(sandbox.NetworkLoopback), ""
	memory := ""
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD ARGS...",
		Short: "Run one command in a fresh sandbox",
		Long:  "Runs one command in a fresh sandbox with the streams of this one; the exit code is the command's.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := sandbox.Spec{ID: fmt.Sprintf("exec-%d", os.Getpid()), Image: image, Network: sandbox.Network(network)}
			if memory != "" {
				bytes, err := parseSize(memory)
				if err != nil {
					return usage(fmt.Errorf("--memory: %w", err))
				}
				spec.Limits.Memory = int64(bytes)
			}
			code, err := execOnce(cmd.Context(), std, backend, spec, args)
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
	flags.StringVar(&backend, "backend", backend, "sandbox backend: native or local")
	flags.StringVar(&image, "image", "", "image (default: the host's toolchain)")
	flags.StringVar(&network, "network", network, "none or loopback")
	flags.StringVar(&memory, "memory", "", "memory limit, such as 512M")
	return cmd
}

func execOnce(ctx context.Context, std stdio, name string, spec sandbox.Spec, args []string) (code int, err error) {
	backend, err := openBackend(name, nil)
	if err != nil {
		return 0, usage(err)
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return 0, fmt.Errorf("open sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	ctx, drain, stop := interruptible(ctx, io.Discard)
	defer stop()
	process, err := sb.Start(ctx, sandbox.Command{Args: args, Stdin: std.in, Stdout: std.out, Stderr: std.err})
	if errors.Is(err, sandbox.ErrNotFound) {
		return 127, withCode(127, err)
	}
	if err != nil {
		return 0, err
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
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the live sandboxes of this machine", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			live, err := sandbox.List(stateDir())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, live)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, s := range live {
				fmt.Fprintf(table, "%s\t%s\tpid %d\towner %d\t%s\n", s.ID, s.Backend, s.PID, s.Owner, s.Started.Format(time.RFC3339))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newSandboxSweep(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "sweep", Short: "Remove sandboxes whose owner is dead", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			swept, err := sandbox.Sweep(stateDir())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, swept)
			}
			for _, leftover := range swept {
				fmt.Fprintln(std.out, leftover)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
