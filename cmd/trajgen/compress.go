package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/outputs/compress"
	"trajgen/outputs/export"
	"trajgen/pipeline/run"
)

// compressOptions are the flags of compress.
type compressOptions struct {
	exportOptions
	compress.Options
	by      string
	summary summaryFlags
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
	flags.StringVar(&o.exportOptions.run, "run", "", "run directory whose journal is read")
	flags.StringVar(&o.to, "to", "jsonl", "format of the export: "+strings.Join(export.Names(), ", "))
	flags.StringVar(&o.out, "out", "", "file or directory to write; what is known of each episode lies beside it")
	flags.StringVar(&o.choice.Where, "where", "", "condition that an episode must meet, as with trajgen export")
	flags.BoolVar(&o.withoutHarness, "without-harness", false, "leave out what the harness said, before anything is counted")
	o.shared(flags)
	flags.BoolVar(&o.json, "json", false, "print what came of it on stdout as JSON")
	flags.IntVar(&o.Budget, "budget", 0, "tokens of a conversation with its tools, at most")
	flags.StringVar(&o.by, "by", "rule", "who writes what stands for the middle: rule or model")
	flags.IntVar(&o.HeadTurns, "head-turns", 1, "turns behind the prompt that stay as they are")
	flags.IntVar(&o.TailTurns, "tail-turns", 4, "turns at the end that stay as they are")
	flags.IntVar(&o.SummaryTokens, "summary-tokens", compress.DefaultSummaryTokens, "room for what stands for the middle")
	flags.IntVar(&o.Workers, "workers", 8, "episodes in work at once")
	o.summary.add(flags)
	return cmd
}

func (o *compressOptions) validate() error {
	var errs []error
	if (o.exportOptions.run == "") == (len(o.from) == 0) {
		errs = append(errs, errors.New("compress needs either --run RUN_DIRECTORY or --from PATH"))
	}
	if o.out == "" || o.out == "-" {
		errs = append(errs, errors.New("compress needs --out PATH (a file or directory: other files lie beside it)"))
	}
	if o.by != "rule" && o.by != "model" {
		errs = append(errs, fmt.Errorf("--by is %q (want rule or model)", o.by))
	}
	return errors.Join(append(errs, o.summary.validate(o.by), o.Options.Validate())...)
}

// compression is the result, as --json prints it.
type compression struct {
	export.Result
	Statuses map[compress.Status]int `json:"statuses"`
	Before   int                     `json:"before_tokens"`
	After    int                     `json:"after_tokens"`
	Reasons  map[string]int          `json:"cannot_fit"`             // by reason
	Least    int                     `json:"least_tokens,omitempty"` // a budget into which all of those would fit
	Asked    int                     `json:"asked"`                  // summaries that a model wrote now
	Kept     int                     `json:"kept"`                   // summaries that existed before
}

func (o *compressOptions) run(ctx context.Context, std stdio) (err error) {
	set, wrong := o.settings()
	if err := errors.Join(o.validate(), wrong); err != nil {
		return usage(err)
	}
	source, notes, _, about, closeSource, err := o.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	if o.withoutHarness {
		source = export.WithoutHarness(source)
	}
	if source, err = export.Choose(source, o.choice); err != nil {
		return usage(err)
	}
	o.out = filepath.Clean(o.out)
	if err := run.MakePlace(o.out); err != nil {
		return usage(fmt.Errorf("compress to %s: %w", o.out, err))
	}
	marks, err := export.NewWholeLines[compress.Mark](o.out + ".compression.jsonl")
	if err != nil {
		return usage(err)
	}
	defer func() { err = errors.Join(err, marks.Close()) }()
	result := compression{Statuses: map[compress.Status]int{compress.Fits: 0, compress.Compressed: 0, compress.CannotFit: 0}, Reasons: map[string]int{}}
	o.Measure = compress.Measure
	o.Mark = func(mark compress.Mark) error {
		result.add(mark)
		return marks.Add(mark)
	}
	var model *compress.Writer
	if o.by == "model" {
		model, err = o.summary.Open(ctx, o.out+".summaries.jsonl", std.err)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, model.Close()) }()
		o.Summarise, o.MaxText = model.Summarise, model.MaxText(o.SummaryTokens)
	}
	shorter, err := compress.New(source, o.Options)
	if err != nil {
		return usage(err)
	}
	if result.Result, err = run.ExportTo(ctx, std.out, shorter, o.to, o.out, export.Options{Set: set, Run: about, Images: o.images, Unsound: o.unsound}); err != nil {
		return err
	}
	if !export.Formats()[o.to].Rows {
		result.Notes = append(notes, result.Notes...)
	}
	info, err := marks.Commit()
	if err != nil {
		return err
	}
	result.Files = append(result.Files, info)
	if model != nil {
		result.Asked, result.Kept = model.Asked(), model.Had
	}
	result.Notes = append(result.Notes, o.partialNotes()...)
	return cmp.Or(o.tell(std, result), o.complete())
}

// add counts an episode.
func (c *compression) add(mark compress.Mark) {
	c.Statuses[mark.Status]++
	c.Before += mark.Before
	c.After += mark.After
	if mark.Reason != "" {
		c.Reasons[mark.Reason]++
		c.Least = max(c.Least, mark.Least)
	}
}

func (o *compressOptions) tell(std stdio, c compression) error {
	if o.json {
		return writeJSON(std.out, c)
	}
	o.listFiles(std, c.Files)
	fmt.Fprintf(std.err, "%d compressed, %d fit as they are, %d cannot fit; about %d tokens before, %d after\n",
		c.Statuses[compress.Compressed], c.Statuses[compress.Fits], c.Statuses[compress.CannotFit], c.Before, c.After)
	for _, reason := range slices.Sorted(maps.Keys(c.Reasons)) {
		fmt.Fprintf(std.err, "cannot fit %d: %s\n", c.Reasons[reason], reason)
	}
	if c.Least > 0 {
		fmt.Fprintf(std.err, "with --budget %d, or fewer protected turns, they fit\n", c.Least)
	}
	for _, reason := range slices.Sorted(maps.Keys(c.Dropped)) {
		fmt.Fprintf(std.err, "left out %d: %s\n", c.Dropped[reason], reason)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(std.err, "note: %s\n", note)
	}
	return nil
}
