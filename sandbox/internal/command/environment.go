package command

import (
	"maps"
	"slices"
	"strings"

	"trajgen/sandbox"
)

// Environment builds what a command finds in its environment, from nothing: beside what the layout says, the variables of its
// sandbox and its own, the last of a name winning. Characters are UTF-8, and
// all else is as in C's locale: for LANG=C.UTF-8, which means the same, every program opens a dozen files when it starts.
func Environment(layout sandbox.Layout, spec map[string]string, cmd *sandbox.Command, dir string) []string {
	values := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": layout.Home,
		"TERM": "dumb", "TZ": "UTC", "TMPDIR": layout.Tmp, "USER": "root", "PWD": dir,
	}
	if cmd.TTY != nil {
		values["TERM"] = "xterm"
	}
	maps.Copy(values, spec)
	for _, kv := range cmd.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			values[k] = v
		}
	}
	if values["LANG"] == "" && values["LC_CTYPE"] == "" {
		values["LC_CTYPE"] = "C.UTF-8"
	}
	env := make([]string, 0, len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		env = append(env, k+"="+values[k])
	}
	return env
}
