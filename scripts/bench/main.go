// bench measures what episodes cost on this machine, and what the parts of the runner add to that.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/sandbox"
	"trajgen/scripts/bench/internal/bench"
)

func main() {
	sandbox.Init() // does not return in a sandbox's own processes
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newBench().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s\n", err)
		os.Exit(exitCode(err))
	}
}

// errGate says that a target is missed.
var errGate = errors.New("missed")

// exitCode is 4 when a target is missed, and that of what was measured when that failed.
func exitCode(err error) int {
	if exit, ok := errors.AsType[childExit](err); ok {
		return int(exit)
	}
	if errors.Is(err, errGate) {
		return 4
	}
	return 1
}

// childExit is the exit code of what was measured.
type childExit int

func (c childExit) Error() string { return fmt.Sprintf("what was measured exited with %d", int(c)) }

func newBench() *cobra.Command {
	options := bench.Options{Version: run.Version(), Log: os.Stderr, Now: time.Now}
	var out, profile string
	var gate, list, asJSON bool
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure what episodes cost on this machine, beside the least that they can cost",
		Long: `Plays the standard episode (five model turns, four tool calls, a verifier) against a server of its own and measures what
the runner takes of this machine for it, beside a tight loop that makes the same requests and starts a shell for each
call. The parts of the runner are switched on one by one, so that the price of each shows. Nothing leaves the machine.

It takes a quarter to half an hour, and --quick two minutes. Run it while nothing else is at work: the load average is
printed, and a spread far over 1 says that something was. The exit code is 0 whatever was measured; with --gate it is 4
when a target is missed. Sections:

` + sectionList(),
		Example: `  make bench
  bin/bench --quick --only parts,start
  bin/bench --profile profiles`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(newServe(), newPlay(), newMeasure(), newRegistries(), newSandboxes(), newWrite())
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "file for everything that was measured, as JSON")
	flags.StringVar(&options.Trajgen, "trajgen", "bin/trajgen", "the program that is measured")
	flags.IntVar(&options.Rounds, "rounds", 5, "measurements of each stage, of which the median counts; within a round every stage has its turn")
	flags.BoolVar(&options.Quick, "quick", false, "small sizes, for a first look; some targets are not measured by them")
	flags.StringSliceVar(&options.Only, "only", nil, "sections that are measured (default: all)")
	flags.BoolVar(&options.Tiny, "tiny", false, "sizes that say nothing, to see whether the benchmark works")
	_ = flags.MarkHidden("tiny")
	flags.BoolVar(&list, "list", false, "print the sections and the stages of parts, and measure nothing")
	flags.StringVar(&profile, "profile", "", "directory for cpu.pprof and heap.pprof of the whole pipeline at 100 episodes a second, or as many as there can be; nothing else is measured")
	flags.StringVar(&options.Dir, "dir", "", "directory for what is written meanwhile, on the disk that is to be measured (default: the system's temporary one)")
	flags.BoolVar(&gate, "gate", false, "exit with 4 when a target is missed")
	flags.BoolVar(&asJSON, "json", false, "print everything that was measured as JSON on stdout, and no table")
	for _, name := range []string{"only", "rounds", "out", "gate", "json"} {
		cmd.MarkFlagsMutuallyExclusive("profile", name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		ctx := cmd.Context()
		if options.Itself, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		switch {
		case list:
			fmt.Printf("sections:\n\n%s\nstages of parts:\n\n%s", sectionList(), stageList())
			return nil
		case options.Validate() != nil:
			return options.Validate()
		case profile != "":
			return profileFull(ctx, profile, options)
		}
		report, err := bench.Run(ctx, options)
		if ctx.Err() != nil || report == nil {
			return err
		}
		if out != "" {
			err = errors.Join(err, writeJSONFile(out, report))
		}
		if asJSON {
			err = errors.Join(err, writeJSON(os.Stdout, report))
		} else {
			err = errors.Join(err, report.WriteTable(os.Stdout))
		}
		if missed := report.Missed(); err == nil && gate && len(missed) > 0 {
			err = fmt.Errorf("%d of %d targets are %w: %s", len(missed), len(report.Targets), errGate, strings.Join(missed, "; "))
		}
		return err
	}
	return cmd
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func writeJSONFile(path string, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func sectionList() string {
	var b strings.Builder
	for _, s := range bench.Sections {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, s.About)
	}
	return b.String()
}

// profileFull profiles the whole pipeline at the pace that the targets ask for.
func profileFull(ctx context.Context, dir string, options bench.Options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	episodes := "3000"
	switch {
	case options.Tiny:
		episodes = "10"
	case options.Quick:
		episodes = "300"
	}
	child := exec.CommandContext(ctx, options.Itself, "play", "--stage", "full", "--rate", "100", "--in-flight", "64", "--episodes", episodes,
		"--cpuprofile", filepath.Join(dir, "cpu.pprof"), "--memprofile", filepath.Join(dir, "heap.pprof"))
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Run(); err != nil {
		return fmt.Errorf("play the profiled run: %w", err)
	}
	fmt.Printf("look at them with: go tool pprof -top %s\n", filepath.Join(dir, "cpu.pprof"))
	return nil
}

func newServe() *cobra.Command {
	var ports int
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the benchmark's model until standard input ends", Hidden: true, Args: cobra.NoArgs,
		Long: "Prints the addresses that it listens at, and serves /SCRIPT/DELAY/TURN/v1, such as /episode/2s/all/v1. SCRIPT is answer\nor episode, and TURN the only one whose reply is delayed, or all. GET /counts says what came, since GET /reset.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := bench.Listen(ports)
			if err != nil {
				return err
			}
			fmt.Println(strings.Join(server.Addrs, " "))
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				cancel()
			}()
			return server.Serve(ctx)
		},
	}
	cmd.Flags().IntVar(&ports, "ports", 1, "ports to listen on")
	return cmd
}

func newPlay() *cobra.Command {
	var play benchPlay
	var name string
	cmd := &cobra.Command{
		Use: "play --stage NAME", Short: "Play one stage of the benchmark in this process", Hidden: true, Args: cobra.NoArgs,
		Long: "Plays the standard episode and prints what it took as JSON. Without --addr it starts a server of its own. The stages:\n\n" + stageList(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if play.stage, err = bench.FindStage(name); err != nil {
				return err
			}
			if err := play.validate(); err != nil {
				return err
			}
			if len(play.setup.Addrs) == 0 {
				itself, err := os.Executable()
				if err != nil {
					return err
				}
				server, err := bench.StartServer(cmd.Context(), itself, 1, os.Stderr)
				if err != nil {
					return err
				}
				defer server.Close()
				play.setup.Addrs = server.Addrs
			}
			if play.setup.Dir == "" {
				if play.setup.Dir, err = os.MkdirTemp("", "trajgen-bench-"); err != nil {
					return err
				}
				defer os.RemoveAll(play.setup.Dir)
			}
			played, err := play.run(cmd.Context())
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(played)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "stage", "full", "stage that is played")
	flags.IntVar(&play.setup.Episodes, "episodes", 1000, "episodes that are played")
	flags.IntVar(&play.setup.InFlight, "in-flight", 16, "episodes in play at once")
	flags.StringSliceVar(&play.setup.Addrs, "addr", nil, "addresses of the server")
	flags.StringVar(&play.setup.Dir, "dir", "", "empty directory for the dataset and the run (default: a temporary one)")
	flags.DurationVar(&play.setup.Delay, "delay", 0, "time before the server's replies")
	flags.IntVar(&play.setup.DelayedTurn, "delayed-turn", -1, "the only turn whose reply is delayed, from 0 (default: all)")
	flags.IntVar(&play.setup.PromptBytes, "prompt-bytes", 0, "size of the prompts")
	flags.Float64Var(&play.rate, "rate", 0, "episodes that are begun in a second, at most (default: as many as can be)")
	flags.IntVar(&play.leave, "leave", 0, "episodes at the end that are not played, for a resume to find")
	flags.StringVar(&play.cpuProfile, "cpuprofile", "", "file for a profile of the CPU while it plays")
	flags.StringVar(&play.memProfile, "memprofile", "", "file for a profile of the heap when half of it is played")
	return cmd
}

func stageList() string {
	var b strings.Builder
	for _, s := range bench.Stages {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, s.About)
	}
	return b.String()
}

func newMeasure() *cobra.Command {
	var out string
	var every time.Duration
	var private bool
	cmd := &cobra.Command{
		Use: "measure --to FILE -- PROGRAM ARGS...", Short: "Run a program and say what it cost", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			child := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
			child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
			m, err := bench.Measure(child, every, private)
			if err != nil {
				return err
			}
			if err := m.Write(out); err != nil {
				return err
			}
			if m.Exit != 0 {
				return childExit(m.Exit)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&out, "to", "", "file for the measurement")
	flags.DurationVar(&every, "every", 100*time.Millisecond, "time between samples of the memory")
	flags.BoolVar(&private, "private-mounts", false, "give it a mount namespace of its own")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func newRegistries() *cobra.Command {
	return &cobra.Command{
		Use: "registries", Short: "Measure registries of different sizes", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := bench.MeasureRegistries(cmd.Context())
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(all)
		},
	}
}

func newSandboxes() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "sandboxes", Short: "Measure native sandboxes while many are open", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if most < 1 {
				return fmt.Errorf("--most is %d; at least 1", most)
			}
			backend, err := run.Backend{Name: "native"}.Open()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, backend.Close()) }()
			all, err := bench.MeasureAlive(cmd.Context(), backend, most)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(all)
		},
	}
	cmd.Flags().IntVar(&most, "most", 100, "sandboxes that are open in the end")
	return cmd
}

func newWrite() *cobra.Command {
	var format, dir string
	var episodes int
	cmd := &cobra.Command{
		Use: "write", Short: "Measure how fast episodes are written", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(bench.Formats(), format) || dir == "" {
				return fmt.Errorf("--format is %q (have %s) and --dir %q (an empty directory)", format, strings.Join(bench.Formats(), ", "), dir)
			}
			w, err := bench.MeasureWriting(cmd.Context(), format, dir, episodes)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(w)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "", "format: "+strings.Join(bench.Formats(), ", "))
	flags.StringVar(&dir, "dir", "", "empty directory to write to")
	flags.IntVar(&episodes, "episodes", 1000, "episodes that are written")
	return cmd
}
