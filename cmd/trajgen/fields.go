package main

import (
	"fmt"
	"strings"

	"trajgen/pipeline/run"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bindFields makes a flag of every setting, as of a run file, that has a help text. The returned function sets the settings whose flags
// were given; call it after the run file was decoded, so that flags override it.
func bindFields(flags *pflag.FlagSet, settings []run.Setting) (apply func() error) {
	var all []*given
	for _, s := range settings {
		if s.Help == "" {
			continue
		}
		held := &given{Setting: s, shown: s.Shown()}
		flag := flags.VarPF(held, s.Flag, "", s.Help)
		flag.Annotations = map[string][]string{flagGroup: {s.Group}}
		if held.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
		all = append(all, held)
	}
	return func() error {
		for _, g := range all {
			if len(g.texts) == 0 {
				continue
			}
			if err := g.Take(g.texts); err != nil {
				return fmt.Errorf("--%s: %w", g.Flag, err)
			}
		}
		return nil
	}
}

// flagGroup is the annotation with a flag's group.
const flagGroup = "group"

// groupHelp shows the flags of a command by group, in the order of their struct.
func groupHelp(cmd *cobra.Command, std stdio) {
	cmd.Flags().SortFlags = false
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		const own = "This command"
		names, groups := []string{}, map[string]*pflag.FlagSet{}
		add := func(name string, flag *pflag.Flag) {
			if groups[name] == nil {
				names = append(names, name)
				groups[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
				groups[name].SortFlags = false
			}
			groups[name].AddFlag(flag)
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if len(flag.Annotations[flagGroup]) == 0 {
				add(own, flag)
			}
		})
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			for _, name := range flag.Annotations[flagGroup] {
				add(name, flag)
			}
		})
		width, isTerminal := terminal(std.out)
		if !isTerminal {
			width = 0 // one line for each flag, for grep
		}
		w := cmd.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, name := range names {
			fmt.Fprintf(w, "\n%s:\n%s", name, groups[name].FlagUsagesWrapped(width))
		}
		return nil
	})
}

// given is a flag's value as it was typed.
type given struct {
	run.Setting
	shown string // the default, for the help
	texts []string
}

func (g *given) String() string {
	if len(g.texts) > 0 {
		return strings.Join(g.texts, ",")
	}
	return g.shown
}
func (g *given) Type() string { return g.Kind() }
func (g *given) Set(text string) error {
	if err := g.Check(text); err != nil { // at once, so that the error names the flag
		return err
	}
	g.texts = append(g.texts, text)
	return nil
}
