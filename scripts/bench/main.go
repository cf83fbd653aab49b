// bench measures what episodes cost on this machine, and what the parts of the runner add to that.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/sandbox"
	_ "trajgen/sandbox/guests"
	"trajgen/scripts/bench/internal/bench"
)

func main() {
	sandbox.Init() // does not return in a sandbox's own processes
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newBench().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s\n", err)
		if errors.Is(err, errGate) {
			os.Exit(4)
		}
		os.Exit(1)
	}
}

// errGate says that a target is missed.
var errGate = errors.New("missed")

func newBench() *cobra.Command {
	options := bench.Options{Version: run.Version(), Log: os.Stderr}
	var out, profile string
	var gate bool
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
	cmd.AddCommand(newPlay())
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "file for everything that was measured, as JSON")
	flags.StringVar(&options.Trajgen, "trajgen", "bin/trajgen", "the program that is measured")
	flags.IntVar(&options.Rounds, "rounds", 5, "measurements of each stage, of which the median counts; within a round every stage has its turn")
	flags.BoolVar(&options.Quick, "quick", false, "small sizes, for a first look; some targets are not measured by them")
	flags.StringSliceVar(&options.Only, "only", nil, "sections that are measured (default: all)")
	flags.BoolVar(&options.Tiny, "tiny", false, "sizes that say nothing, to see whether the benchmark works")
	_ = flags.MarkHidden("tiny")
	flags.StringVar(&profile, "profile", "", "directory for cpu.pprof and heap.pprof of the whole pipeline at 100 episodes a second, or as many as there can be; nothing else is measured")
	flags.StringVar(&options.Dir, "dir", "", "directory for what is written meanwhile, on the disk that is to be measured (default: the system's temporary one)")
	flags.BoolVar(&gate, "gate", false, "exit with 4 when a target is missed")
	for _, name := range []string{"only", "rounds", "out", "gate"} {
		cmd.MarkFlagsMutuallyExclusive("profile", name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		ctx := cmd.Context()
		if options.Itself, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		switch {
		case options.Validate() != nil:
			return options.Validate()
		case profile != "":
			if err := bench.Profile(ctx, options, profile); err != nil {
				return err
			}
			fmt.Printf("look at them with: go tool pprof -top %s\n", filepath.Join(profile, "cpu.pprof"))
			return nil
		}
		report, err := bench.Run(ctx, options)
		if report == nil {
			return err
		}
		if out != "" {
			text, encoded := json.MarshalIndent(report, "", "  ")
			err = errors.Join(err, encoded, os.WriteFile(out, append(text, '\n'), 0o644))
		}
		err = errors.Join(err, report.WriteTable(os.Stdout))
		if missed := report.Missed(); err == nil && gate && len(missed) > 0 {
			err = fmt.Errorf("%d of %d targets are %w: %s", len(missed), len(report.Targets), errGate, strings.Join(missed, "; "))
		}
		return err
	}
	return cmd
}

func sectionList() string {
	var b strings.Builder
	for _, s := range bench.Sections {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, s.About)
	}
	return b.String()
}

func newPlay() *cobra.Command {
	return &cobra.Command{
		Use: "play DIR", Short: "Play what the benchmark has prepared in a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			setup, stage, err := bench.ReadSetup(args[0])
			if err != nil {
				return err
			}
			played, err := player{setup, stage}.play(cmd.Context())
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(played)
		},
	}
}
