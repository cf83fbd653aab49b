package toolbench

import "github.com/spf13/pflag"

// Flags lets a command set the options.
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.From, "from", "", "run directory whose recorded calls are made again, each behind the earlier calls of its episode")
	flags.StringVar(&o.Script, "script", "", "YAML file of calls and what they are expected to do")
	flags.Bool("generate", false, "calls that are made from the tools' schemas")
	flags.StringSliceVar(&o.Toolsets, "toolsets", nil, "toolsets that are enabled (default all)")
	flags.IntVar(&o.Calls, "calls", 20, "with --from: calls of each tool")
	flags.IntVar(&o.Repeat, "repeat", 1, "plays of each call, which are compared with each other")
	flags.IntSliceVar(&o.Workers, "workers", []int{1}, "calls at the same time; several numbers for one measurement each")
	flags.StringSliceVar(&o.Backends, "backend", nil, "sandbox backends, whose results are compared (default that of --sandbox)")
	flags.StringVar(&o.Ledger, "ledger", "", "folder whose tools.jsonl gets a line per tool, and says what got worse")
	flags.StringVar(&o.Night, "night", "", "the ledger's name for this measurement (default today)")
}
