package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// callOptions are the flags of `tools call`.
type callOptions struct {
	script, workspace string
	sandbox           backendChoice
	toolsets, env     []string
	keep              bool
}

func newToolsCall(std stdio) *cobra.Command {
	var opts callOptions
	cmd := &cobra.Command{
		Use:   "call NAME JSON | call --script FILE",
		Short: "Call a tool through the whole dispatch, in a fresh sandbox",
		Long: `Calls one tool, or with --script many in one sandbox: JSONL of {"name":...,"arguments":...} in (- is stdin), JSONL of
results out, in order. The arguments may be a JSON object or, as models send them, a JSON string.`,
		Example: `  trajgen tools call terminal '{"command":"uname -a"}'
  trajgen tools call read_file '{"path":"main.go"}' --workspace .`,
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
			return opts.call(cmd.Context(), std, requests)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.script, "script", "", "file with a call per line; - is stdin")
	opts.sandbox.flags(flags, "sandbox")
	flags.StringVar(&opts.workspace, "workspace", "", "folder that is copied in as the working directory")
	flags.StringSliceVar(&opts.toolsets, "toolsets", nil, "toolsets that are enabled (default all)")
	flags.StringArrayVar(&opts.env, "env", nil, "K=V for the environment of this command itself, to prove that it is not passed on")
	flags.BoolVar(&opts.keep, "keep", false, "keep the sandbox open until an interrupt, for inspection")
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

// rawArguments is the text that a model would have sent: an object as it is, a JSON string unwrapped.
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
}

func (o callOptions) call(ctx context.Context, std stdio, requests []registry.Request) (err error) {
	reg, err := newRegistry(nil)
	if err != nil {
		return err
	}
	enabled := o.toolsets
	if len(enabled) == 0 {
		enabled = []string{"all"}
	}
	toolset, err := reg.Select(ctx, enabled, nil)
	if err != nil {
		return usage(err)
	}
	sb, closeAll, err := o.openSandbox(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	session := toolset.Session(registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return sb, nil },
		Rand:    episode.Key{Task: "tools call"}.Rand("tools"), Now: time.Now,
	})
	defer session.Close()
	encoder := json.NewEncoder(std.out)
	encoder.SetEscapeHTML(false)
	for _, request := range requests {
		call := session.Call(ctx, request)
		line := resultLine{
			Name: call.Name, Toolset: call.Toolset, Status: call.Status, RawArguments: call.RawArguments, Arguments: call.Arguments,
			Coerced: append([]string{}, call.Coerced...), Repaired: call.Repaired, Result: call.Result, ErrorClass: call.ErrorClass,
			Truncated: call.Truncated, DurationUS: call.Elapsed.Microseconds(), SandboxUS: call.SandboxTime.Microseconds(),
		}
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	if o.keep {
		o.wait(ctx, std, sb)
	}
	return nil
}

func (o callOptions) openSandbox(ctx context.Context) (sandbox.Sandbox, func() error, error) {
	files, err := readFolder(o.workspace)
	if err != nil {
		return nil, nil, usage(err)
	}
	backend, err := o.sandbox.open()
	if err != nil {
		return nil, nil, usage(err)
	}
	sb, err := backend.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("call-%d", os.Getpid())})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open sandbox: %w", err), backend.Close())
	}
	closeAll := func() error { return errors.Join(sb.Close(), backend.Close()) }
	if err := sb.Files().Write(ctx, files...); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("copy %s into the sandbox: %w", o.workspace, err), closeAll())
	}
	return sb, closeAll, nil
}

// wait keeps the sandbox until an interrupt.
func (o callOptions) wait(ctx context.Context, std stdio, sb sandbox.Sandbox) {
	fmt.Fprintf(std.err, "the sandbox is kept, working directory %s; trajgen sandbox list shows it; interrupt to end it\n", sb.Layout().Workdir)
	ctx, drain, stop := interruptible(ctx, io.Discard)
	defer stop()
	select {
	case <-drain:
	case <-ctx.Done():
	}
}

// readFolder reads the regular files of a folder. Links are not followed: they could lead out of it.
func readFolder(root string) ([]sandbox.FileWrite, error) {
	if root == "" {
		return nil, nil
	}
	var files []sandbox.FileWrite
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, sandbox.FileWrite{Path: filepath.ToSlash(relative), Data: data, Mode: info.Mode().Perm()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	return files, nil
}
