package tools

import (
	"cmp"
	"path"
	"slices"

	"trajgen/sandbox"
)

// giveDirect is give for a command line that needs no shell: one steady program, with arguments in plain sight, where a
// shell would be as it was at first. Starting a bash only to have it make place for cat takes three times as long as cat
// does.
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

// fresh tells whether no command has left anything that the next one's program would find, but for the directory.
func (s *shellState) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loud || s.now.functions != "" || s.now.aliases != "" {
		return false
	}
	return s.base == nil || s.changed() == "" && len(s.now.variables) == len(s.base.variables)
}
