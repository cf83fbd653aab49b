package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/tools"
	"trajgen/tools/mcpserve"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// serveOptions are the flags of `mcp serve`.
type serveOptions struct {
	callOptions
	addr, tokenEnv, out string
	idle                time.Duration
	sessions            int

	taskID, dataset, mapping string
}

func newMCPServe(std stdio) *cobra.Command {
	opts := serveOptions{callOptions: callOptions{Options: desk.Options{Sees: true}}}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve tools over MCP, each session in a sandbox of its own",
		Long: `Offers tools to any program that speaks MCP, with the descriptions, the validation and the sandboxes that episodes have.
On standard input and output it serves one session, which ends with the input. With --http it serves many, each in a sandbox
of its own, at http://ADDRESS/mcp: to clients that send the token, and until they end the session or are idle. A sandbox is
opened at the first call of a session, and gone at its end, however that comes.`,
		Example: `  trajgen mcp serve --toolsets terminal,file --workspace .
  trajgen mcp serve --http 127.0.0.1:8500 --out calls/
  trajgen mcp serve -f run.yaml --toolsets web,code_execution
  trajgen mcp serve --task log-warnings --dataset bundled --out calls/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := opts.check(); err != nil {
				return usage(err)
			}
			if opts.Task, err = desk.FindTask(cmd.Context(), opts.taskID, opts.dataset, opts.mapping); err != nil {
				return usage(err)
			}
			return opts.source.use(func(cmd *cobra.Command, _ []string, box *desk.Toolbox) error {
				return opts.serve(cmd.Context(), std, box)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	opts.source.flags(flags)
	opts.source.webFlags(flags)
	flags.StringSliceVar(&opts.Toolsets, "toolsets", nil, "toolsets that are offered (default all)")
	flags.StringVar(&opts.Workspace, "workspace", "", "folder that is copied into each sandbox as the working directory")
	flags.StringVar(&opts.Image, "image", "", "image that sandboxes begin with (default: as in the run file)")
	flags.StringSliceVar(&opts.Sites, "site", nil, "web site that comes along, as a task names it (trajgen sites list)")
	flags.StringVar(&opts.policy, "command-policy", "",
		"shell commands that could do harm: enforce, record or off (default with local and ssh: refused; elsewhere record)")
	flags.StringVar(&opts.addr, "http", "",
		"address of this machine to serve HTTP at, such as 127.0.0.1:8500; port 0 takes a free one")
	flags.StringVar(&opts.tokenEnv, "token-env", "TRAJGEN_MCP_TOKEN",
		"with --http: variable that has the token; without one, a token is made and printed")
	flags.DurationVar(&opts.idle, "idle", 30*time.Minute, "with --http: how long a session may be idle before it is ended")
	flags.IntVar(&opts.sessions, "sessions", 64, "with --http: sessions at once")
	flags.StringVar(&opts.taskID, "task", "",
		"task that each session is about: its files are in the sandbox, its prompt is a resource, and the end is judged")
	flags.StringVar(&opts.dataset, "dataset", "", "with --task: the dataset that has it")
	flags.StringVar(&opts.mapping, "map", "", "with --task: mapping file of the dataset")
	flags.StringVar(&opts.out, "out", "",
		"directory that gets a file for each session, with a line for each call as tools call prints it")
	return cmd
}

func (o serveOptions) check() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(o.source.Web.Mode == web.Record || o.source.Twin.Mode == twin.Record,
		"--web record and --twin record need a run, which keeps the recording")
	bad(o.taskID == "" && o.dataset+o.mapping != "" || o.taskID != "" && o.dataset == "", "--task ID and --dataset D go together")
	bad(o.taskID != "" && o.out == "", "--task needs --out DIR, which gets the verdicts")
	bad(o.taskID != "" && len(o.Sites) > 0, "--site is for sessions without a task, which names its own")
	bad(o.idle <= 0, "--idle is %s; over 0", o.idle)
	bad(o.sessions < 1, "--sessions is %d; at least 1", o.sessions)
	if o.addr != "" {
		host, _, err := net.SplitHostPort(o.addr)
		ip := net.ParseIP(host)
		bad(err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()),
			"--http %q: want an address of this machine alone, such as 127.0.0.1:8500; who reaches it has its sandboxes", o.addr)
	}
	return errors.Join(append(errs, tools.CheckPolicyMode(cmp.Or(o.policy, tools.PolicyRecord)))...)
}

func (o serveOptions) serve(ctx context.Context, std stdio, box *desk.Toolbox) (err error) {
	toolset, err := o.Selected(box)
	if err != nil {
		return err
	}
	if _, err := box.Backend(); err != nil { // before sessions open it side by side
		return usage(err)
	}
	if o.out != "" {
		if err := disk.MakeDir(o.out); err != nil {
			return usage(fmt.Errorf("make %s: %w", o.out, err))
		}
	}
	o.Skills, o.Warn = slices.Contains(o.Toolsets, "skills"), func(line string) { fmt.Fprintln(std.err, line) }
	server := mcpserve.New(mcpserve.Config{
		Version: run.Version(), Toolset: toolset, Sessions: o.sessions, Prompt: desk.Prompt(o.Task),
		Logger: slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Open: func(ctx context.Context, number int) (*mcpserve.Desk, error) {
			policy := run.AgentPolicy(cmp.Or(o.policy, box.File.Commands.Policy), box.Choice.Name)
			return o.Serve(ctx, box, policy, o.out, number)
		},
	})
	defer func() { err = errors.Join(err, server.Close()) }()
	if o.addr == "" {
		return ending(ctx, "interrupted", func(ctx context.Context) error {
			err := server.Serve(ctx, &mcp.IOTransport{Reader: io.NopCloser(std.in), Writer: keptOpen{std.out}})
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		})
	}
	return o.listen(ctx, std, server)
}

// keptOpen leaves standard output to the process.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// listen serves HTTP until the user ends it.
func (o serveOptions) listen(ctx context.Context, std stdio, server *mcpserve.Server) error {
	mux, token := http.NewServeMux(), os.Getenv(o.tokenEnv)
	made := cmp.Or(token, rand.Text())
	mux.Handle("/mcp", server.Handler(made, o.idle))
	end := func() { _ = server.Close() } // its streams would keep the connections; Close is called again
	return serve(ctx, o.addr, mux, end, func(at net.Addr) {
		fmt.Fprintf(std.out, "http://%s/mcp\n", at)
		if token == "" {
			fmt.Fprintf(std.out, "Authorization: Bearer %s\n", made)
		}
	})
}
