package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// callOptions are the flags of `tools call`.
type callOptions struct {
	source            toolSource
	policy            string
	script, workspace string
	toolsets, env     []string
	sites             []string
	keep              time.Duration
	image             string
	sees              bool          // results may have images
	task              *episode.Task // whose sandbox it is; nil for none
	skills            bool          // those that come along are there, unless the run file names others
	warn              func(string)
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
			requests, err := opts.requests(std.in, args)
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
			if opts.source.web.Mode == web.Record || opts.source.twin.Mode == twin.Record {
				return usage(errors.New("--web record and --twin record need a run, which keeps the recording; want live or replay"))
			}
			if opts.keep < 0 {
				return usage(fmt.Errorf("--keep is %s; not below 0", opts.keep))
			}
			if opts.keep > 0 && !isKeeper() {
				return startKeeper(std)
			}
			return opts.source.use(func(cmd *cobra.Command, _ []string, box *toolbox) error {
				return opts.call(cmd.Context(), std, box, requests)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.script, "script", "", "file with a call per line; - is stdin")
	opts.source.flags(flags)
	flags.StringVar(&opts.policy, "command-policy", "", "shell commands that could do harm: enforce, record or off (default with local and ssh: what is blocked is refused, and you agree to the rest; elsewhere record)")
	flags.StringVar(&opts.workspace, "workspace", "", "folder that is copied in as the working directory")
	flags.StringSliceVar(&opts.toolsets, "toolsets", nil, "toolsets that are enabled (default all)")
	flags.StringSliceVar(&opts.sites, "site", nil,
		"web site that comes along, as a task names it: shop is at http://shop.test/ (trajgen sites list)")
	opts.source.webFlags(flags)
	flags.StringArrayVar(&opts.env, "env", nil, "K=V for the environment of this command itself, to prove that it is not passed on")
	flags.DurationVar(&opts.keep, "keep", 0, "leave the sandbox for inspection, for an hour unless it says --keep=DURATION")
	flags.Lookup("keep").NoOptDefVal = keepTime
	return cmd
}

// requests reads the calls.
func (o callOptions) requests(stdin io.Reader, args []string) ([]registry.Request, error) {
	if o.script == "" {
		if len(args) != 2 {
			return nil, errors.New("want NAME and JSON, or --script FILE")
		}
		return []registry.Request{{ID: "call_0", Name: args[0], Arguments: rawArguments([]byte(args[1]))}}, nil
	}
	if len(args) > 0 {
		return nil, errors.New("with --script the calls come from the file alone")
	}
	in := stdin
	if o.script != "-" {
		file, err := os.Open(o.script)
		if err != nil {
			return nil, fmt.Errorf("open script: %w", err)
		}
		defer file.Close()
		in = file
	}
	var requests []registry.Request
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var line struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("script line %d: %w", n, err)
		}
		requests = append(requests, registry.Request{
			ID: fmt.Sprintf("call_%d", len(requests)), Turn: len(requests), Name: line.Name, Arguments: rawArguments(line.Arguments),
		})
	}
	return requests, lines.Err()
}

// rawArguments is the text that a model would have sent: an object unchanged, a JSON string unwrapped.
func rawArguments(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// resultLine is a call's result.
type resultLine struct {
	Name         string             `json:"name"`
	Toolset      string             `json:"toolset"`
	Status       episode.CallStatus `json:"status"`
	RawArguments string             `json:"raw_arguments"`
	Arguments    json.RawMessage    `json:"arguments"`
	Coerced      []string           `json:"coerced"`
	Repaired     bool               `json:"repaired"`
	Result       string             `json:"result"`
	ErrorClass   string             `json:"error_class"`
	Truncated    bool               `json:"truncated"`
	DurationUS   int64              `json:"duration_us"`
	SandboxUS    int64              `json:"sandbox_us"`
	ExitCode     *int               `json:"exit_code,omitempty"`

	Rewritten []string         `json:"rewritten,omitempty"`
	Via       string           `json:"via,omitempty"`
	Verdict   *episode.Verdict `json:"verdict,omitempty"`
	Stored    string           `json:"stored,omitempty"`
	Untrusted string           `json:"untrusted,omitempty"`
	Source    json.RawMessage  `json:"source,omitempty"`
	Runner    bool             `json:"runner,omitempty"`
	Masked    []string         `json:"masked,omitempty"`
	SameAs    string           `json:"same_as,omitempty"`
	Notice    string           `json:"notice,omitempty"`
}

func newResultLine(call episode.ToolCall) resultLine {
	return resultLine{
		Name: call.Name, Toolset: call.Toolset, Status: call.Status, RawArguments: call.RawArguments, Arguments: call.Arguments,
		Coerced: append([]string{}, call.Coerced...), Repaired: call.Repaired, Result: call.Result, ErrorClass: call.ErrorClass,
		Truncated: call.Truncated, DurationUS: call.Elapsed.Microseconds(), SandboxUS: call.SandboxTime.Microseconds(),
		Rewritten: call.Rewritten, Via: call.Via, Verdict: call.Verdict, Stored: call.Stored, Untrusted: call.Untrusted, Source: call.Source, Runner: call.Runner,
		Masked: call.Masked, SameAs: call.SameAs, Notice: call.Notice, ExitCode: call.ExitCode,
	}
}

func (o callOptions) call(ctx context.Context, std stdio, box *toolbox, requests []registry.Request) (err error) {
	policy := run.CallerPolicy(cmp.Or(o.policy, box.file.Commands.Policy), box.choice.Name)
	o.skills = slices.ContainsFunc(requests, func(r registry.Request) bool { return strings.HasPrefix(r.Name, "skill") })
	o.warn = func(line string) { fmt.Fprintln(std.err, line) }
	d, err := o.begin(ctx, box, callID(), policy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, request := range requests {
		if err := writeLine(std.out, newResultLine(d.session.Call(ctx, request))); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	if o.keep > 0 {
		return stayBehind(ctx, std, d.sandbox, callID(), o.keep)
	}
	return nil
}

// callID names the sandbox of a call.
func callID() string { return fmt.Sprintf("call-%d", os.Getpid()) }
