package agent

import (
	"slices"
	"strings"

	"trajgen/sandbox"
)

// own are variables of a process itself, and those that a backend sets.
var own = []string{"HOME", "HOSTNAME", "LANG", "LC_CTYPE", "LOGNAME", "OLDPWD", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "TZ", "USER", "_"}

// Environment returns the variables of a process, as in /proc/PID/environ, that come from its image: without those of the process
// itself, and foreign ones.
func Environment(environ string, foreign func(name, value string) bool) map[string]string {
	env := map[string]string{}
	for kv := range strings.SplitSeq(environ, "\x00") {
		name, value, ok := strings.Cut(kv, "=")
		if ok && sandbox.IsVariable(name) && !slices.Contains(own, name) && !foreign(name, value) {
			env[name] = value
		}
	}
	return env
}
