package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/outputs/report"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/pipeline/run/progress"
)

// runOptions are the flags of run that are not settings of a run file.
type runOptions struct {
	path      string
	faults    string
	plugins   []string
	resume    bool
	quiet     bool
	json      bool
	logFormat string
}

func newRun(std stdio) *cobra.Command {
	file := run.Default()
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run [-f run.yaml] [flags]",
		Short: "Play a dataset",
		Long: `Plays every task of a dataset and writes the episodes to a run directory: a journal, Parquet files and a report.

Each flag below is also a key in a section of the run file; a flag wins. The first interrupt finishes the episodes in
play, the second cancels them; either way --resume goes on.

` + stepsHelp + `
Each is of the experiment: a resume refuses another choice. A task keeps its id and its row, so that exports are in the
order of the dataset. trajgen datasets show prints what is chosen.

What has no flag stands in the run file alone:
  model:
    extra_body: {min_p: 0.05, top_k: 20}     body fields of any name; null takes one out that the server refuses
    headers, header_env: {NAME: VALUE}       headers, and those whose value an environment variable holds
    provider: {order: [a, b], sort: price}   OpenRouter's routing, as it is
    fallbacks: [{model: NAME, base_url: URL, api_key_env: NAME}]
  sweep: {temperature: [0, 0.7], top_p: [...], reasoning_effort: [...],
          model: [one, {name: two, base_url: URL, api_key_env: NAME}]}
                                           sample i of each task gets combination i of these values, beginning again
                                           after the last; it takes as many samples as there are combinations
  tools: {plugins, custom_toolsets, result_limits, tool_search}
  budget: {prices: {NAME: {input: X, output: X, cached_input: X}}}`,
		Example: `  trajgen run --dataset bundled --policy oracle
  trajgen run --dataset tasks.jsonl --model my-model --base-url http://localhost:8000/v1 --samples 4
  trajgen run -f run.yaml --out runs/night --workers 64
  trajgen run --resume --out runs/night --retry-errors`,
		Args: flagsAlone,
	}
	flags := cmd.Flags()
	apply := bindFields(flags, file.Settings())
	flags.StringVarP(&opts.path, "file", "f", "", "run file (YAML)")
	pluginFlag(flags, &opts.plugins)
	flags.StringVar(&opts.faults, "faults", "", "file with the section faults of the run file (YAML)")
	flags.BoolVar(&opts.resume, "resume", false, "go on with the run directory")
	flags.BoolVar(&opts.quiet, "quiet", false, "no progress and no report in the terminal")
	flags.BoolVar(&opts.json, "json", false, "print the report as JSON on stdout")
	flags.StringVar(&opts.logFormat, "log-format", "text", "warnings on stderr as text or json")
	groupHelp(cmd, std)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := opts.load(&file, apply); err != nil {
			return usage(err)
		}
		if err := file.Validate(); err != nil {
			return usage(err)
		}
		return execute(cmd.Context(), std, file, opts)
	}
	return cmd
}

// flagsAlone refuses arguments, and names the flag for a dataset or a run file.
func flagsAlone(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(fmt.Errorf("%s takes no argument such as %q: a run file is given with -f FILE, a dataset with --dataset PATH", cmd.CommandPath(), args[0]))
}

// load combines the run file from defaults, the file (on resume that of the run directory), and flags.
func (o runOptions) load(file *run.File, apply func() error) error {
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format is %q; text or json", o.logFormat)
	}
	if o.path != "" {
		if err := run.Decode(o.path, "a run file", file); err != nil {
			return err
		}
		if file.Tools.Toolsets != nil && len(file.Tools.Toolsets) == 0 {
			file.Tools.Toolsets = []string{episode.NoToolsets} // run.json cannot hold an empty list
		}
	}
	if err := apply(); err != nil {
		return err
	}
	if file.Play.RetryErrors && !o.resume {
		return errors.New("retry_errors is about an earlier run: it goes with --resume")
	}
	if o.resume && o.path == "" {
		if file.Out == "" && file.Name == "" {
			return errors.New("--resume needs --out RUN_DIRECTORY (or --name)")
		}
		var err error
		if *file, err = run.Resumed(file.OutDir()); err != nil {
			return err
		}
		if err := apply(); err != nil {
			return err
		}
	}
	if o.faults != "" {
		if err := run.Decode(o.faults, "a file of faults", &file.Faults); err != nil {
			return err
		}
	}
	return file.Tools.AddPlugins(o.plugins)
}

// warnings writes warnings for the user, as log lines if the user chose those.
func (o runOptions) warnings(w io.Writer) io.Writer {
	if o.logFormat != "json" {
		return w
	}
	return slog.NewLogLogger(slog.NewJSONHandler(w, nil), slog.LevelWarn).Writer()
}

// execute runs an experiment from the run file to the report.
func execute(ctx context.Context, std stdio, file run.File, opts runOptions) (err error) {
	if file.Name == "" && file.Out == "" {
		base, _, _ := strings.Cut(filepath.Base(file.Dataset.Path[0]), ".")
		file.Name = base + "-" + time.Now().UTC().Format("20060102-150405")
	}
	dir := file.OutDir()
	store, err := run.Open(ctx, file, opts.resume, opts.warnings(std.err), func(exp *run.Experiment) error {
		return check.Preflight(ctx, file, exp, opts.warnings(std.err), opts.watchProof(std))
	})
	if errors.Is(err, errInterrupted) || errors.Is(err, check.ErrDrained) {
		return withCode(exitInterrupted, errors.New("interrupted before the run began; what was proven is kept"))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	began := time.Now()
	summary, runErr := play(ctx, std, store, opts)
	report, err := store.Finish(ctx, summary, time.Since(began))
	if err != nil && runErr != nil {
		// The disk most likely caused both errors; the user must resolve the one that stopped the run.
		store.Exp.Logger.Error("files were not written", "error", err.Error())
		return verdict(runErr, summary, nil, dir, 0)
	}
	if err != nil {
		return err
	}
	if err := show(std, report, dir, opts); err != nil {
		return err
	}
	return verdict(runErr, summary, report, dir, file.Play.MaxErrorShare)
}

// play runs the pipeline and shows its progress.
func play(ctx context.Context, std stdio, store *run.Run, opts runOptions) (pipeline.Summary, error) {
	exp := store.Exp
	width, isTerminal := terminal(std.err)
	var bar *progress.Run
	var messages io.Writer = std.err
	var watch run.Watch
	if !opts.quiet {
		bar = progress.New(std.err, store.Manifest.Tasks*exp.File.Samples, isTerminal && opts.logFormat == "text", width, time.Now)
		if opts.logFormat == "json" {
			bar.Logger = slog.New(slog.NewJSONHandler(std.err, nil))
		}
		bar.Held = exp.Held
		watch.Observe, watch.Outage, messages = bar.Observe, bar.Outage, bar
	}
	ctx, drain, stop := interruptible(ctx, messages, exp.Paused)
	defer stop()
	watch.Drain = drain
	summary, err := store.Play(ctx, watch)
	if bar != nil {
		bar.End()
	}
	return summary, err
}

// show prints the report.
func show(std stdio, report *report.Report, dir string, opts runOptions) error {
	if opts.json {
		encoder := json.NewEncoder(std.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	if opts.quiet {
		return nil
	}
	width, color := paper(std.out)
	if err := report.WriteTerminal(std.out, width, color); err != nil {
		return err
	}
	return listFiles(std.out, dir)
}

// listFiles prints the paths of the output.
func listFiles(w io.Writer, dir string) error {
	fmt.Fprintln(w)
	for _, pattern := range []string{"trajectories/*.parquet", "tool_calls/*.parquet", "report.md", "report.json"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			fmt.Fprintln(w, path)
		}
	}
	return nil
}

// verdict turns how a run ended into an exit code.
func verdict(runErr error, summary pipeline.Summary, report *report.Report, dir string, allowed float64) error {
	resume := fmt.Sprintf("trajgen run --resume --out %s", dir)
	if errors.Is(runErr, pipeline.ErrStop) && report != nil && report.Episodes.Errors > 0 {
		resume += " --retry-errors" // episodes that failed in the outage are in the journal, as errors
	}
	reached, broke := errors.AsType[*budget.Reached](runErr)
	switch {
	case broke:
		return withCode(exitBudget, fmt.Errorf("%w; --resume with a higher %s goes on: %s", reached, run.More(reached), resume))
	case errors.Is(runErr, errInterrupted):
		return withCode(exitInterrupted, fmt.Errorf("interrupted; go on with: %s", resume))
	case runErr != nil:
		return withCode(exitFailed, fmt.Errorf("%w; what was played is kept, go on with: %s", runErr, resume))
	case summary.Drained:
		return withCode(exitInterrupted, fmt.Errorf("interrupted; go on with: %s", resume))
	}
	if missing := report.Episodes.Missing; missing != nil && *missing > 0 {
		return withCode(exitFailed, fmt.Errorf("%d episodes are missing though nothing stopped the run; please report this, and go on with: %s", *missing, resume))
	}
	failed, total := 0, 0
	for _, count := range report.Outcomes {
		total += count.Count
		if !count.Outcome.AgentsDoing() {
			failed += count.Count
		}
	}
	if failed > 0 && float64(failed) > allowed*float64(total) {
		return withCode(exitErrors, fmt.Errorf("%d of %d episodes ended in an error outcome (max_error_share is %v); play them again with: %s --retry-errors",
			failed, total, allowed, resume))
	}
	return nil
}
