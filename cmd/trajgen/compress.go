package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/outputs/compress"
	"trajgen/outputs/export"
	"trajgen/pipeline/run"
)

// compressOptions are the flags of compress.
type compressOptions struct {
	run.Compressing
	by   string
	json bool
}

func newCompress(std stdio) *cobra.Command {
	var o compressOptions
	cmd := &cobra.Command{
		Use:   "compress --run DIR --budget TOKENS --out PATH",
		Short: "Fit trajectories into a budget of tokens and export them",
		Long: `Writes an export in which every conversation that is over the budget is made shorter: turns in the middle make way for
one message that stands for them. The system message, the prompt, the first turns (--head-turns) and the last ones
(--tail-turns) stay as they are, calls stay together with their results, and what the user said in the middle stays word
for word. No more turns are left out than needed. The journal stays as it is.

--by rule writes an outline of the middle: the tools that were called and how that ended, files, failures, sizes. The same
run gives the same bytes. --by model asks --summary-model. What it writes is kept in OUT.summaries.jsonl, so that nothing
is paid for twice: after Ctrl-C, or a crash, the same command goes on where it was.

Every episode is kept. OUT.compression.jsonl says of each what was done: compressed, with the tokens before and after and
the messages that were left out; fits; or cannot_fit, with the reason, and then it is as it was. Tokens are estimates, by
what the model's server has counted of the episode where it has, and by four bytes a token elsewhere; reasoning counts.

With --to jsonl (default) the episodes come out whole, and trajgen export --from OUT writes them in any other format.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ending(cmd.Context(), "interrupted; the same command goes on", func(ctx context.Context) error {
				defer context.AfterFunc(ctx, func() {
					if o.by == "model" {
						fmt.Fprintln(std.err, "waiting for the summaries under way, which are kept; interrupt again to give them up")
					}
				})()
				return o.run(ctx, std)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Run, "run", "", "run directory whose journal is read")
	flags.StringVar(&o.To, "to", "jsonl", "format of the export: "+strings.Join(export.Names(), ", "))
	flags.StringVar(&o.Out, "out", "", "file or directory to write; what is known of each episode lies beside it")
	flags.StringVar(&o.Choice.Where, "where", "", "condition that an episode must meet, as with trajgen export")
	flags.BoolVar(&o.WithoutHarness, "without-harness", false, "leave out what the harness said, before anything is counted")
	sharedFlags(flags, &o.Exporting)
	flags.BoolVar(&o.json, "json", false, "print what came of it on stdout as JSON")
	flags.IntVar(&o.Fit.Budget, "budget", 0, "tokens of a conversation with its tools, at most")
	flags.StringVar(&o.by, "by", "rule", "who writes what stands for the middle: rule or model")
	flags.IntVar(&o.Fit.HeadTurns, "head-turns", 1, "turns behind the prompt that stay as they are")
	flags.IntVar(&o.Fit.TailTurns, "tail-turns", 4, "turns at the end that stay as they are")
	flags.IntVar(&o.Fit.SummaryTokens, "summary-tokens", compress.DefaultSummaryTokens, "room for what stands for the middle")
	flags.IntVar(&o.Fit.Workers, "workers", 8, "episodes in work at once")
	flags.StringVar(&o.Summary.Name, "summary-model", "", "model that writes the summaries with --by model")
	flags.StringVar(&o.Summary.BaseURL, "summary-base-url", run.DefaultBaseURL, "OpenAI-compatible endpoint of the summary model, with /v1")
	flags.StringVar(&o.Summary.APIKeyEnv, "summary-api-key-env", "", "environment variable that holds that endpoint's key")
	flags.DurationVar(&o.Summary.OutageLimit, "outage-limit", 10*time.Minute, "how long to wait while that endpoint does not answer; 0 is for ever")
	return cmd
}

func (o *compressOptions) validate() error {
	var errs []error
	if o.Out == "" || o.Out == "-" {
		errs = append(errs, errors.New("compress needs --out PATH (a file or directory: other files lie beside it)"))
	}
	switch {
	case o.by != "rule" && o.by != "model":
		errs = append(errs, fmt.Errorf("--by is %q (want rule or model)", o.by))
	case o.by == "model" && o.Summary.Name == "":
		errs = append(errs, errors.New("--by model needs --summary-model NAME"))
	case o.by == "rule" && o.Summary.Name+o.Summary.APIKeyEnv != "":
		errs = append(errs, errors.New("--summary-model and --summary-api-key-env are for --by model"))
	case o.Summary.OutageLimit < 0:
		errs = append(errs, fmt.Errorf("--outage-limit is %s (want 0 or more)", o.Summary.OutageLimit))
	}
	return errors.Join(append(errs, o.Validate("compress"), o.Fit.Validate())...)
}

func (o *compressOptions) run(ctx context.Context, std stdio) error {
	if err := o.validate(); err != nil {
		return usage(err)
	}
	c, err := o.Write(ctx, std.out, std.err)
	if err != nil {
		return err
	}
	if o.json {
		err = writeJSON(std.out, c)
	} else {
		o.tell(std, c)
	}
	return cmp.Or(err, withCode(exitErrors, o.Complete()))
}

func (o *compressOptions) tell(std stdio, c run.Compression) {
	listWritten(std, o.Out, c.Files)
	fmt.Fprintf(std.err, "%d compressed, %d fit as they are, %d cannot fit; about %d tokens before, %d after\n",
		c.Statuses[compress.Compressed], c.Statuses[compress.Fits], c.Statuses[compress.CannotFit], c.Before, c.After)
	for _, reason := range slices.Sorted(maps.Keys(c.Reasons)) {
		fmt.Fprintf(std.err, "cannot fit %d: %s\n", c.Reasons[reason], reason)
	}
	if c.Least > 0 {
		fmt.Fprintf(std.err, "with --budget %d, or fewer protected turns, they fit\n", c.Least)
	}
	leftOut(std, c.Result)
}
