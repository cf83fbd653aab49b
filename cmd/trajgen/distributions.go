package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"trajgen/distributions"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

func newDistributions(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "distributions",
		Short: "Show and sample toolset distributions",
		Long: `A distribution gives each toolset its chance of being in an episode, independently of the others; a draw is never
empty. Besides the names that list prints, a path to a YAML file works everywhere:

  name: mine
  description: mostly shell
  toolsets: {terminal: 95, file: 80, code_execution: 30}`,
	}
	return group(cmd, newDistributionsList(std), newDistributionsShow(std), newDistributionsSample(std))
}

func newDistributionsList(std stdio) *cobra.Command {
	all := func(context.Context) (all []distributions.Distribution, err error) {
		for _, name := range distributions.Names() {
			d, err := distributions.Get(name)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	}
	return listing(std, "list", "List the distributions", all, func(w io.Writer, d distributions.Distribution) {
		fmt.Fprintf(w, "%s\t%s\n", d.Name, d.Description)
	})
}

func newDistributionsShow(std stdio) *cobra.Command {
	return showing(std, &cobra.Command{
		Use: "show NAME|FILE", Short: "Show one distribution", Args: cobra.ExactArgs(1),
	}, func(_ *cobra.Command, args []string) (distributions.Distribution, error) {
		d, err := run.ResolveDistribution(args[0])
		return d, usage(err)
	}, func(w io.Writer, d distributions.Distribution) error {
		fmt.Fprintf(w, "%s: %s\n", d.Name, d.Description)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, share := range d.Toolsets {
			fmt.Fprintf(table, "%s\t%v %%\t\n", share.Toolset, share.Percent)
		}
		return table.Flush()
	})
}

func newDistributionsSample(std stdio) *cobra.Command {
	var n int
	var seed uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sample NAME|FILE",
		Short: "Draw from a distribution: JSONL of {\"toolsets\":[...],\"log_p\":x}",
		Long: `Draws as a run with draw: sample does: the n-th line is what sample n of a task named "sample" would get with this seed;
with draw: task, all samples have the first. log_p is the natural logarithm of the probability of exactly that set.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := run.ResolveDistribution(args[0])
			if err != nil {
				return usage(err)
			}
			if n < 0 {
				return usage(fmt.Errorf("--n is %d; not below 0", n))
			}
			encoder := json.NewEncoder(std.out)
			for i := range n {
				key := episode.Key{Seed: seed, Task: "sample", Sample: i}
				if err := encoder.Encode(d.Sample(key.Rand("toolsets"))); err != nil {
					return fmt.Errorf("write draw: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&n, "n", 10, "number of draws")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSONL; it always is")
	return cmd
}
