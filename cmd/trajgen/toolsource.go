package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/pipeline/run/desk"
)

// pluginFlag is for trying a plugin without a run file.
func pluginFlag(flags *pflag.FlagSet, paths *[]string) {
	flags.StringArrayVar(paths, "plugin", nil, "plugin: an executable, or a .yaml file with what a run file says of one in tools: {plugins: [...]}; repeat for more")
}

// toolSource is the flags that say which tools a command is about.
type toolSource struct{ desk.Source }

func (s *toolSource) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&s.Path, "file", "f", "", "run file (YAML) whose plugins, MCP servers and toolsets are there too")
	pluginFlag(flags, &s.Plugins)
	backendFlags(&s.Sandbox, flags, "sandbox")
}

// webFlags let a command say what the web tools answer from.
func (s *toolSource) webFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Web.Mode, "web", "",
		"what the web tools and the browser answer from: live, replay or corpus (default: as in the run file, or live)")
	flags.StringVar(&s.Web.Recording, "web-recording", "", "with --web replay: the run directory whose web was recorded")
	flags.StringVar(&s.Web.Corpus, "corpus", "",
		"with --web corpus, and for search, open and find: an index, bundled, or the URL of a retrieval server")
	flags.StringVar(&s.Twin.Mode, "twin", "", "tools that answer from outside of the sandbox: live or replay (default: as in the run file, or live)")
	flags.StringVar(&s.Twin.Recording, "twin-recording", "", "with --twin replay: the run directory whose calls were recorded")
}

// of is the source, for a command whose flags were parsed.
func (s *toolSource) of(cmd *cobra.Command) *desk.Source {
	s.Given = cmd.Flags().Changed
	s.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &s.Source
}

// use makes the function of a command that opens a toolbox.
func (s *toolSource) use(do func(cmd *cobra.Command, args []string, box *desk.Toolbox) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		box, err := s.of(cmd).Open(cmd.Context())
		if err != nil {
			return err
		}
		return errors.Join(do(cmd, args, box), box.Close())
	}
}
