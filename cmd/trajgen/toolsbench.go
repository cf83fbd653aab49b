package main

import (
	"cmp"
	"io"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/toolbench"
)

func newToolsBench(std stdio) *cobra.Command {
	var source toolSource
	var bench toolbench.Bench
	var asJSON bool
	cmd := &cobra.Command{
		Use: "bench --generate | --from RUN | --script FILE", Args: cobra.NoArgs, Short: "Measure and test tools alone, without a model",
		Long: `Makes calls in fresh sandboxes, through the whole dispatch. The exit code is 4 when a call was not as expected, or when the
ledger says that a tool got worse.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bench.Source, bench.Night = source.of(cmd), cmp.Or(bench.Night, time.Now().Format(time.DateOnly))
			report, err := bench.Run(cmd.Context())
			return gated(std, report, err, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	bench.Flags(cmd.Flags())
	source.flags(cmd.Flags())
	cmd.MarkFlagsOneRequired("generate", "from", "script")
	cmd.MarkFlagsMutuallyExclusive("generate", "from", "script")
	return cmd
}

func newToolsDrift(std stdio) *cobra.Command {
	var ledger string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "drift --ledger DIR", Args: cobra.NoArgs, Short: "Say what got worse in the ledger of tools bench, and since when; then the exit code is 4",
		RunE: func(*cobra.Command, []string) error {
			drift, err := toolbench.ReadDrift(ledger)
			return gated(std, drift, err, asJSON)
		},
	}
	cmd.Flags().StringVar(&ledger, "ledger", "", "folder of tools.jsonl")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	_ = cmd.MarkFlagRequired("ledger") // it exists
	return cmd
}

// gated prints what was found, and fails if that is bad.
func gated(std stdio, found interface {
	WriteText(io.Writer) error
	Bad() bool
}, err error, asJSON bool) error {
	switch {
	case err != nil:
	case asJSON:
		err = writeJSON(std.out, found)
	default:
		err = found.WriteText(std.out)
	}
	if err == nil && found.Bad() {
		return withCode(exitGate, errQuiet)
	}
	return err
}
