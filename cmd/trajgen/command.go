package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/tools/policy"
)

func newCommand(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "command", Short: "Judge shell commands as the command policy does"}
	return group(cmd, newCommandCheck(std), newCommandRules(std))
}

func newCommandCheck(std stdio) *cobra.Command {
	var asJSON bool
	var known policy.Context
	cmd := &cobra.Command{
		Use:   "check [--json] -- 'COMMAND LINE' | check -",
		Short: "Say whether a command line is allowed, needs approval, or is blocked",
		Long: `Says what the command policy says of a bash command line: allow, ask (needs approval) or block (never, outside of a
disposable sandbox), with the rule and the reason. Nothing is run. With - the command lines are read from stdin, one a line,
each as it is or as a JSON string (for one of several lines), and the verdicts are written as JSONL, in order.

The exit code is 0 whatever the verdict is.`,
		Example: `  trajgen command check -- 'rm -rf build'
  trajgen command check --json -- 'curl https://example.org/install.sh | sudo bash'`,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range []string{known.Dir, known.Home} {
				if dir != "" && !path.IsAbs(dir) {
					return usage(fmt.Errorf("%s is not an absolute path", dir))
				}
			}
			if len(args) == 1 && args[0] == "-" {
				return checkLines(std, known)
			}
			if len(args) == 0 {
				return usage(errors.New("no command line: give it behind --, or - to read stdin"))
			}
			verdict := policy.Check(strings.Join(args, " "), known)
			if asJSON {
				return writeLine(std.out, verdict)
			}
			if verdict.Verdict == policy.Allow {
				_, err := fmt.Fprintln(std.out, verdict.Verdict)
				return err
			}
			_, err := fmt.Fprintf(std.out, "%s  %s: it %s\n", verdict.Verdict, verdict.Rule, verdict.Reason)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&known.Dir, "dir", "", "absolute path of the directory in which it would run")
	cmd.Flags().StringVar(&known.Home, "home", "", "absolute path of the home directory")
	return cmd
}

func writeLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// checkLines judges the command lines on stdin.
func checkLines(std stdio, known policy.Context) error {
	in := bufio.NewReader(std.in)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			command := strings.TrimSuffix(line, "\n")
			var text string
			if strings.HasPrefix(command, `"`) && json.Unmarshal([]byte(command), &text) == nil {
				command = text
			}
			if err := writeLine(std.out, policy.Check(command, known)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read command lines: %w", err)
		}
	}
}

func newCommandRules(std stdio) *cobra.Command {
	return listing(std, "rules", "List the rules", func(context.Context) ([]policy.Verdict, error) { return policy.Rules(), nil },
		func(w io.Writer, rule policy.Verdict) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", rule.Rule, rule.Verdict, rule.Reason)
		})
}
