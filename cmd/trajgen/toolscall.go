package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// callOptions are the flags of `tools call`.
type callOptions struct {
	desk.Options
	source toolSource
	policy string
	script string
	env    []string
	keep   time.Duration
}

func newToolsCall(std stdio) *cobra.Command {
	var opts callOptions
	cmd := &cobra.Command{
		Use:   "call NAME JSON | call --script FILE",
		Short: "Call a tool through the whole dispatch, in a fresh sandbox",
		Long: `Calls one tool, or with --script many in one sandbox: JSONL of {"name":...,"arguments":...} in (- is stdin), JSONL of
results out, in order. The arguments may be a JSON object or, as models send them, a JSON string. How a call ended is in its
result, not in the exit code. Each call is a turn of its own; one that leads nowhere gets the notice that it would in an episode.`,
		Example: `  trajgen tools call terminal '{"command":"uname -a"}'
  trajgen tools call read_file '{"path":"main.go"}' --workspace .
  trajgen tools call browser_navigate '{"url":"http://shop.test/"}' --site shop
  trajgen tools call web_search '{"query":"calendar"}' --web corpus --corpus bundled
  trajgen tools call my_tool '{}' --plugin ./my_tool.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			requests, err := desk.Requests(std.in, opts.script, args)
			if err != nil {
				return usage(err)
			}
			for _, pair := range opts.env {
				name, value, ok := strings.Cut(pair, "=")
				if !ok {
					return usage(fmt.Errorf("--env %q: want NAME=VALUE", pair))
				}
				if err := os.Setenv(name, value); err != nil {
					return usage(fmt.Errorf("--env %q: %w", pair, err))
				}
			}
			if err := tools.CheckPolicyMode(cmp.Or(opts.policy, tools.PolicyRecord)); err != nil {
				return usage(err)
			}
			if opts.source.Web.Mode == web.Record || opts.source.Twin.Mode == twin.Record {
				return usage(errors.New("--web record and --twin record need a run, which keeps the recording; want live or replay"))
			}
			if opts.keep < 0 {
				return usage(fmt.Errorf("--keep is %s; not below 0", opts.keep))
			}
			if opts.keep > 0 && !desk.IsKeeper() {
				err := desk.StartKeeper(std.in, std.out, std.err)
				if exit, ok := errors.AsType[*exec.ExitError](err); ok {
					return withCode(max(exit.ExitCode(), exitFailed), errQuiet)
				}
				return err
			}
			return opts.source.use(func(cmd *cobra.Command, _ []string, box *desk.Toolbox) error {
				return opts.call(cmd.Context(), std, box, requests)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.script, "script", "", "file with a call per line; - is stdin")
	opts.source.flags(flags)
	flags.StringVar(&opts.policy, "command-policy", "", "shell commands that could do harm: enforce, record or off (default with local and ssh: what is blocked is refused, and you agree to the rest; elsewhere record)")
	flags.StringVar(&opts.Workspace, "workspace", "", "folder that is copied in as the working directory")
	flags.StringSliceVar(&opts.Toolsets, "toolsets", nil, "toolsets that are enabled (default all)")
	flags.StringSliceVar(&opts.Sites, "site", nil,
		"web site that comes along, as a task names it: shop is at http://shop.test/ (trajgen sites list)")
	opts.source.webFlags(flags)
	flags.StringArrayVar(&opts.env, "env", nil, "K=V for the environment of this command itself, to prove that it is not passed on")
	flags.DurationVar(&opts.keep, "keep", 0, "leave the sandbox for inspection, for an hour unless it says --keep=DURATION")
	flags.Lookup("keep").NoOptDefVal = "1h"
	return cmd
}

func (o callOptions) call(ctx context.Context, std stdio, box *desk.Toolbox, requests []registry.Request) (err error) {
	policy := run.CallerPolicy(cmp.Or(o.policy, box.File.Commands.Policy), box.Choice.Name)
	o.Skills = slices.ContainsFunc(requests, func(r registry.Request) bool { return strings.HasPrefix(r.Name, "skill") })
	o.Warn = func(line string) { fmt.Fprintln(std.err, line) }
	d, err := o.Open(ctx, box, callID(), policy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, request := range requests {
		if err := writeLine(std.out, desk.NewLine(d.Session.Call(ctx, request))); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	if o.keep > 0 {
		ctx, stop := signal.NotifyContext(ctx, endings()...)
		defer stop()
		return d.Stay(ctx, std.err, callID(), o.keep)
	}
	return nil
}

// callID names the sandbox of a call.
func callID() string { return fmt.Sprintf("call-%d", os.Getpid()) }
