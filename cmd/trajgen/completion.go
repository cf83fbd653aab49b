package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/datasets"
	"trajgen/distributions"
	"trajgen/outputs/export"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/sandbox"
)

// offer returns the completions for the beginning of a flag's value or an argument, and the shell's directive.
type offer func(begun string) ([]string, cobra.ShellCompDirective)

// offers are the completions of flags, by name.
var offers = map[string]offer{
	"run": runs, "vs": runs,
	"to": only(export.Names), "distribution": orFiles(distributions.Names), "map": orFiles(datasets.Mappings),
	"dataset": orFiles(words(datasets.Bundled, datasets.BundledResearch, datasets.BundledBrowser, datasets.BundledSkills, datasets.BundledHome)), "shape": only(func() []string { return slices.Sorted(maps.Keys(datasets.Shapes())) }),
	"toolsets": only(run.ToolsetNames), "disabled-toolsets": only(run.ToolsetNames), "disable": only(run.ToolsetNames),
	"sandbox": only(sandbox.Names), "backend": only(sandbox.Names), "network": only(words("none", "loopback", "allowlist", "full")),
	"isolation": only(words("strong", "user", "landlock", "none")), "policy": only(words("oracle", "noop", "noisy", "replay")),
	"guardrails": only(words("off", "record", "tell", "stop")), "compaction": only(words("stop", "drop", "summarize")),
	"command-policy": only(words("enforce", "record", "approve", "off")), "token-ids": only(words("auto", "vllm", "sglang", "llamacpp")),
	"log-format": only(words("text", "json")), "per-task": only(words("all", "best")), "dedupe": only(words("none", "exact", "answer")),
	"by": only(words("rule", "model")), "attacks": only(check.Attacks),
}

// argumentOffers are the completions of arguments, by command.
var argumentOffers = map[string]offer{
	"trajgen report": runs, "trajgen export": runs, "trajgen compress": runs, "trajgen verify": runs, "trajgen repair": runs, "trajgen diff": runs, "trajgen merge": runs,
	"trajgen tools schema": only(run.ToolNames), "trajgen tools call": only(run.ToolNames), "trajgen toolsets resolve": only(run.ToolsetNames),
	"trajgen distributions show": orFiles(distributions.Names), "trajgen distributions sample": orFiles(distributions.Names),
}

// complete sets the completions of a command and its subcommands.
func complete(cmd *cobra.Command) {
	offered := func(o offer) cobra.CompletionFunc {
		return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) { return o(begun) }
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if o, ok := offers[flag.Name]; ok && flag.Value.Type() != "stringToString" { // corpus build's map is not a mapping of datasets
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, offered(o)) // fails only for an unknown flag, or a second time
		}
	})
	if o, ok := argumentOffers[cmd.CommandPath()]; ok {
		cmd.ValidArgsFunction = offered(o)
	}
	for _, sub := range cmd.Commands() {
		complete(sub)
	}
}

func words(all ...string) func() []string { return func() []string { return all } }

// only offers names, also after a comma.
func only(names func() []string) offer {
	return func(begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var found []string
		for _, name := range names() {
			if strings.HasPrefix(before+name, begun) {
				found = append(found, before+name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func orFiles(names func() []string) offer {
	return func(begun string) ([]string, cobra.ShellCompDirective) {
		found, _ := only(names)(begun)
		return found, cobra.ShellCompDirectiveDefault
	}
}

// runs offers the run directories below the given beginning.
func runs(begun string) ([]string, cobra.ShellCompDirective) {
	var found []string
	for _, pattern := range []string{"*/run.json", "*/*/run.json"} {
		paths, _ := filepath.Glob(begun + pattern) // an invalid pattern has no matches
		for _, path := range paths {
			found = append(found, filepath.Dir(path))
		}
	}
	if len(found) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
