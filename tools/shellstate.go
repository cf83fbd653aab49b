package tools

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"trajgen/registry"
	"trajgen/sandbox"
)

// shellState is what the shells of an episode pass on to each other: the working directory, exported variables, functions,
// aliases and shell options. Every command has a bash of its own; the bash gets the state at its start and reports it at its
// end over descriptor 3, which its commands do not see.
type shellState struct {
	mu   sync.Mutex // guards the fields below
	base *shellFacts
	now  shellFacts
}

// shellFacts is the state of a shell.
type shellFacts struct {
	dir       string            // "" is the sandbox's working directory
	variables map[string]string // exported ones, as declarations
	options   map[string]bool   // enabled options of set -o and of shopt
	functions string            // shell code that defines them all
	aliases   string            // and these
}

func shellOf(s *registry.Session) *shellState {
	return registry.State(s, "tools.shell", func() *shellState { return &shellState{} })
}

// directory returns where the next command starts.
func (s *shellState) directory(layout sandbox.Layout) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.now.dir, layout.Workdir)
}

// exports returns shell code that sets the variables that commands have exported or changed.
func (s *shellState) exports() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changedVariables()
}

// changedVariables is exports for a caller that holds the lock.
func (s *shellState) changedVariables() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.now.variables)) {
		if each := s.now.variables[name]; each != s.base.variables[name] {
			b.WriteString(each + "\n")
		}
	}
	return b.String()
}

// given is what a command gets.
type given struct {
	facts   shellFacts
	first   bool             // the shell reports its state before the command, too
	workdir string           // from the call; the command's final directory is not passed on then
	state   string           // shell code that makes the state, with the command in a variable
	direct  *sandbox.Command // needs no shell; nil for one that does
}

// give makes the state of a command's shell.
func (s *shellState) give(layout sandbox.Layout, args terminalArgs) given {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.base == nil {
		b.WriteString(reportBase + "\n")
	}
	b.WriteString("{ ")
	s.enter(&b, layout, args.Workdir)
	b.WriteString("declare -x OLDPWD; unset -v __trajgen_state __trajgen_rest\n")
	s.restore(&b)
	if s.base == nil || s.now.options["expand_aliases"] {
		b.WriteString("builtin shopt -s expand_aliases\n")
	}
	b.WriteString("__trajgen_command=" + quoteShell(args.Command) + "\n} 2>/dev/null\n")
	return given{facts: s.now, first: s.base == nil, workdir: args.Workdir, state: b.String()}
}

// giveDirect is give for a command line that needs no shell: one steady program with literal arguments, in a shell without
// changed state. Starting bash to run cat takes three times as long as cat.
func (s *shellState) giveDirect(layout sandbox.Layout, args terminalArgs) (g given, ok bool) {
	if args.Pty || args.Workdir != "" && (!path.IsAbs(args.Workdir) || path.Clean(args.Workdir) != args.Workdir) {
		return g, false
	}
	words, ok := layout.Direct(args.Command, nil)
	if !ok || !slices.Contains(steady, words[0]) || !s.fresh() {
		return g, false
	}
	return given{direct: &sandbox.Command{Args: words, Dir: cmp.Or(args.Workdir, s.directory(layout))}}, true
}

// steady are programs that can replace the shell. For another one, the shell may have to report a kill or crash; mv could move
// the directory.
var steady = strings.Fields("awk basename cat chmod cmp comm cp cut date df diff dirname du egrep fgrep file find grep head jq ln ls " +
	"md5sum mkdir nl od paste readlink realpath rg rm rmdir sed seq sha256sum sort stat tac tail tee touch tr tree uniq wc which xxd")

// fresh reports whether no command has changed the state that the next program would get, except the directory.
func (s *shellState) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.functions == "" && s.now.aliases == "" &&
		(s.base == nil || s.changedVariables() == "" && len(s.now.variables) == len(s.base.variables))
}

// enter changes to the directory. The call's directory must exist; instead of one that an earlier command left, the nearest
// existing parent will do.
func (s *shellState) enter(b *strings.Builder, layout sandbox.Layout, workdir string) {
	dir := quoteShell(cmp.Or(s.now.dir, layout.Workdir))
	b.WriteString("builtin cd -- " + dir + " || { __trajgen_dir=" + dir +
		`; until builtin cd -- "${__trajgen_dir:-/}"; do __trajgen_dir=${__trajgen_dir%/*}; done; unset -v __trajgen_dir; }` + "\n")
	if workdir != "" {
		if workdir = expandHome(workdir, layout); !path.IsAbs(workdir) {
			workdir = "./" + workdir // neither an option nor searched in CDPATH
		}
		b.WriteString("builtin cd -- " + quoteShell(workdir) +
			" >/dev/null || { " + refuseDirectory + "; }\n")
	}
	b.WriteString("builtin unset -v OLDPWD\n")
}

// restore writes code that turns a new shell's state into the present one. Functions come before aliases, which would be
// expanded in them again, and each part is evaluated separately, so that an error in one does not affect the others.
func (s *shellState) restore(b *strings.Builder) {
	if s.base == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.base.variables)) {
		if _, ok := s.now.variables[name]; !ok {
			b.WriteString("unset -v " + name + "\n")
		}
	}
	b.WriteString(s.changedVariables())
	for i, name := range handedOn {
		on := s.now.options[name]
		switch {
		case on == s.base.options[name]:
		case i < setOptionsEnd && on:
			b.WriteString("set -o " + name + "\n")
		case i < setOptionsEnd:
			b.WriteString("set +o " + name + "\n")
		case on:
			b.WriteString("shopt -s " + name + "\n")
		default:
			b.WriteString("shopt -u " + name + "\n")
		}
	}
	for _, code := range []string{s.now.functions, s.now.aliases} {
		if code != "" {
			b.WriteString("builtin eval -- " + quoteShell(code) + "\n")
		}
	}
}

// Options that are passed on: those that change how commands are read. Others end a shell or trace it, and apply to one command
// only.
var handedOn = []string{
	"allexport", "braceexpand", "noclobber", "noglob", "physical", "pipefail", // of set -o; the rest are of shopt
	"autocd", "cdable_vars", "cdspell", "checkhash", "dotglob", "expand_aliases", "extglob", "failglob", "globasciiranges",
	"globskipdots", "globstar", "inherit_errexit", "lastpipe", "nocaseglob", "nocasematch", "nullglob",
	"patsub_replacement", "shift_verbose", "sourcepath", "xpg_echo",
}

// setOptionsEnd is how many of them are of set -o.
var setOptionsEnd = slices.Index(handedOn, "autocd")

// remember takes over what a command changed, and nothing else: a concurrent command may have changed the rest. A command that
// replaced or killed its shell reports nothing and changes nothing.
func (s *shellState) remember(g given, report []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(string(report), "\x00")
	if g.first {
		if len(parts) < 3 {
			return
		}
		if s.base == nil {
			base := shellFacts{variables: declarations(parts[0]), options: setOptions(parts[1])}
			base.options["expand_aliases"] = true // as in an interactive shell
			s.base = &base
			s.now.variables, s.now.options = maps.Clone(base.variables), maps.Clone(base.options)
		}
		parts = parts[2:]
	}
	if len(parts) != 6 || parts[5] != "\x01" || s.base == nil {
		return
	}
	before := g.facts
	if before.variables == nil {
		before.variables, before.options = s.base.variables, s.base.options
	}
	after := shellFacts{
		variables: declarations(parts[0]), options: setOptions(parts[1]), functions: parts[2], aliases: parts[3],
		dir: strings.TrimSuffix(parts[4], "\n"),
	}
	s.now = s.now.changed(before, after, g.workdir == "")
}

// changed returns f with the difference between two states applied.
func (f shellFacts) changed(before, after shellFacts, moved bool) shellFacts {
	if moved && after.dir != before.dir {
		f.dir = after.dir
	}
	if !moved {
		after.variables["OLDPWD"] = before.variables["OLDPWD"]
	}
	f.variables = changedMap(f.variables, before.variables, after.variables)
	f.options = changedMap(f.options, before.options, after.options)
	if after.functions != before.functions {
		f.functions = after.functions
	}
	if after.aliases != before.aliases {
		f.aliases = after.aliases
	}
	return f
}

// changedMap applies the difference to a copy, as running calls use the map.
func changedMap[V comparable](all, before, after map[string]V) map[string]V {
	all = maps.Clone(all)
	for name := range before {
		if _, ok := after[name]; !ok {
			delete(all, name)
		}
	}
	for name, value := range after {
		if value != before[name] {
			all[name] = value
		}
	}
	return all
}

// setOptions returns the options of a report that are passed on.
func setOptions(text string) map[string]bool {
	on := map[string]bool{}
	for name := range strings.SplitSeq(text, ":") {
		if slices.Contains(handedOn, name) {
			on[name] = true
		}
	}
	return on
}

var (
	declaration = regexp.MustCompile(`(?m)^declare -[A-Za-z-]+ ([A-Za-z_][A-Za-z0-9_]*)(=|$)`)
	// Variables that every shell sets itself, or gets from its environment. The last one is the mark of a command in a local
	// sandbox.
	ownVariables = []string{"PWD", "SHLVL", "_", "SHELLOPTS", "BASHOPTS", "TERM", "TRAJGEN_SANDBOX"}
)

// declarations splits the output of declare -px, by name. A value with several lines is kept whole.
func declarations(text string) map[string]string {
	all := map[string]string{}
	starts := declaration.FindAllStringSubmatchIndex(text, -1)
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name := text[start[2]:start[3]]
		if !slices.Contains(ownVariables, name) && !strings.HasPrefix(name, "__trajgen") {
			all[name] = strings.TrimSuffix(text[start[0]:end], "\n")
		}
	}
	return all
}
