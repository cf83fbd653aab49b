package tools

import (
	"cmp"
	"path"
	"slices"

	"trajgen/sandbox"
)

// giveDirect is give for a command line that needs no shell: one steady program with literal arguments, in a shell without
// changed state. Starting bash to run cat takes three times as long as cat.
func (s *shellState) giveDirect(layout sandbox.Layout, args terminalArgs) (g given, ok bool) {
	if args.Background || args.Pty || args.Workdir != "" && (!path.IsAbs(args.Workdir) || path.Clean(args.Workdir) != args.Workdir) {
		return g, false
	}
	words, ok := layout.Direct(args.Command, nil)
	if !ok || !slices.Contains(steady, words[0]) || !s.fresh() {
		return g, false
	}
	return given{quiet: true, direct: &sandbox.Command{Args: words, Dir: cmp.Or(args.Workdir, s.directory(layout))}}, true
}

// fresh reports whether no command has changed the state that the next program would get, except the directory.
func (s *shellState) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loud || s.now.functions != "" || s.now.aliases != "" {
		return false
	}
	return s.base == nil || s.changed() == "" && len(s.now.variables) == len(s.base.variables)
}
