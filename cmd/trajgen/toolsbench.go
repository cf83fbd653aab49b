package main

import (
	"cmp"
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
			switch {
			case err != nil:
			case asJSON:
				err = writeJSON(std.out, report)
			default:
				err = report.WriteText(std.out)
			}
			if err == nil && report.Bad() {
				return withCode(exitGate, errQuiet)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	bench.Flags(cmd.Flags())
	source.flags(cmd.Flags())
	cmd.MarkFlagsOneRequired("generate", "from", "script")
	cmd.MarkFlagsMutuallyExclusive("generate", "from", "script")
	return cmd
}
