package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/desk"
	"trajgen/sandbox"
	"trajgen/tools/mcp"
)

func newMCP(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Use the MCP servers of a run file, and offer tools as one",
		Long: `A run file declares MCP servers (mcp: {servers: {NAME: {command: [...]}}}); their tools are the toolset mcp-NAME. lock writes
down what each server says of itself; a run whose file names that lock refuses a server that has become another.`,
	}
	return group(cmd, newMCPList(std), newMCPLock(std), newMCPProbe(std), newMCPCall(std), newMCPServe(std))
}

// mcpOptions are the flags that the commands share.
type mcpOptions struct {
	path    string
	sandbox run.Backend
}

// use makes the function of a command that asks the servers what they have. With anew the lock file does not count.
func (o *mcpOptions) use(std stdio, anew bool,
	do func(ctx context.Context, f *run.File, set *mcp.Set) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) (err error) {
		source := (&toolSource{desk.Source{Path: o.path, Sandbox: o.sandbox}}).of(cmd)
		box := &desk.Toolbox{File: run.Default(), Choice: o.sandbox}
		defer func() { err = errors.Join(err, box.Close()) }()
		if err := source.Read(box); err != nil {
			return usage(err)
		}
		if len(box.File.MCP.Enabled()) == 0 {
			return usage(fmt.Errorf("%s declares no MCP servers (mcp: {servers: {NAME: {command: [...]}}})", o.path))
		}
		set, err := box.File.OpenMCP(cmd.Context(), func() (sandbox.Backend, error) { return box.Backend() }, nil, source.Logger, anew)
		if err != nil {
			return usage(err)
		}
		defer func() { err = errors.Join(err, set.Close()) }()
		for _, warning := range set.Warnings() {
			fmt.Fprintln(std.err, warning)
		}
		return do(cmd.Context(), &box.File, set)
	}
}

func (o *mcpOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.path, "file", "f", "", "run file (YAML) that declares the servers")
	backendFlags(&o.sandbox, cmd.Flags(), "sandbox")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
}

func newMCPList(std stdio) *cobra.Command {
	var opts mcpOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list -f run.yaml", Short: "List the servers and their tools", Args: cobra.NoArgs,
		RunE: opts.use(std, false, func(_ context.Context, _ *run.File, set *mcp.Set) error {
			if asJSON {
				all := map[string]*mcp.Described{}
				for _, name := range set.Names() {
					all[name] = set.Described(name)
				}
				return writeJSON(std.out, all)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, name := range set.Names() {
				d := set.Described(name)
				fmt.Fprintf(table, "%s\t%s %s\tprotocol %s\n", name, d.Name, d.Version, d.Protocol)
				for _, tool := range d.Tools {
					first, _, _ := strings.Cut(tool.Description, "\n")
					if tool.Refused != "" {
						first = "left out: " + tool.Refused
					}
					fmt.Fprintf(table, "  %s\t%s\t%.80s\n", tool.Name, cmp.Or(tool.Shown, "-"), first)
				}
			}
			return table.Flush()
		}),
	}
	opts.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with schemas and digests")
	return cmd
}

func newMCPLock(std stdio) *cobra.Command {
	var opts mcpOptions
	var out string
	cmd := &cobra.Command{
		Use: "lock -f run.yaml", Short: "Write down what the servers say of themselves", Args: cobra.NoArgs,
		Long: `Asks each server for its version, tools and schemas, and writes them to the file that the run file names (mcp: {lock:
FILE}), with digests of the server's files. A run refuses a server that differs. Read the file before you trust it: descriptions
and schemas are what a model will be shown.`,
		RunE: opts.use(std, true, func(_ context.Context, f *run.File, set *mcp.Set) error {
			path := cmp.Or(out, f.MCP.Lock)
			if path == "" {
				return usage(errors.New("the run file names no lock file (mcp: {lock: FILE}): give --out FILE"))
			}
			if err := set.WriteLock(path); err != nil {
				return err
			}
			fmt.Fprintf(std.out, "%s has %d servers\n", path, len(set.Names()))
			return nil
		}),
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "lock file (default: that of the run file)")
	return cmd
}

func newMCPProbe(std stdio) *cobra.Command {
	var opts mcpOptions
	cmd := &cobra.Command{
		Use: "probe -f run.yaml", Args: cobra.NoArgs,
		Short: "Connect to each server twice, and say what it costs and whether it says the same",
		RunE: opts.use(std, true, func(ctx context.Context, _ *run.File, set *mcp.Set) error {
			for _, name := range set.Names() {
				p, err := set.Probe(ctx, name)
				if err != nil {
					return fmt.Errorf("mcp server %s: %w", name, err)
				}
				fmt.Fprintf(std.out, "%s: connected in %s, %d tools, %d lines on its standard output that are not messages, %d known packages\n",
					name, p.Took, p.Tools, p.Noise, p.Packages)
				for _, line := range p.Differs {
					fmt.Fprintf(std.out, "  the second time %s\n", line)
				}
			}
			return nil
		}),
	}
	opts.flags(cmd)
	return cmd
}

func newMCPCall(std stdio) *cobra.Command {
	call := newToolsCall(std)
	cmd := &cobra.Command{
		Use: "call SERVER TOOL JSON -f run.yaml", Args: cobra.ExactArgs(3),
		Short: "Call a tool of a server, as trajgen tools call does with the name that a model sees",
		RunE: func(cmd *cobra.Command, args []string) error {
			call.SetContext(cmd.Context())
			return call.RunE(cmd, []string{mcp.Shown(args[0], args[1]), args[2]})
		},
	}
	cmd.Flags().AddFlagSet(call.Flags())
	return cmd
}
