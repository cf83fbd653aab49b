package command

import (
	"maps"
	"slices"
	"strings"

	"trajgen/sandbox"
)

// Environment builds the environment of a command from nothing: the layout's variables, those of its sandbox and its own; the
// last of a name wins. Characters are UTF-8, and the rest of the locale is C: LANG=C.UTF-8 means the same, but makes every
// program open a dozen files when it starts.
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
