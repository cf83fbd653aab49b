package tools

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Variables that scripts inherit from the terminal: paths and locale. Other variables that its commands exported are not
// inherited. Scripts also get the task's own environment of the sandbox.
var (
	codeVariables = regexp.MustCompile(`^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|PYTHONPATH|` +
		`VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV|LC_.*|XDG_.*)$`)
	secretWords = regexp.MustCompile(`KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|DSN|WEBHOOK`)
)

// codeEnv is the environment of a script beside the sandbox's own. The module comes from dir; scripts can also import from the
// working directory.
func codeEnv(exported map[string]string, dir, cwd string) []string {
	var env []string
	search := dir + ":" + cwd
	for name, value := range exported {
		switch {
		case !codeVariables.MatchString(name), secretWords.MatchString(name):
		case name == "PYTHONPATH":
			search += ":" + value
		case name == "PATH":
			// The terminal need not have its active environment first in PATH.
			for _, variable := range []string{"CONDA_PREFIX", "VIRTUAL_ENV"} {
				if root := exported[variable]; path.IsAbs(root) {
					value = path.Join(root, "bin") + ":" + value
				}
			}
			env = append(env, "PATH="+value)
		default:
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return append(env, "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8", "PYTHONUTF8=1", "PYTHONPATH="+search)
}

// exported returns the variables that commands exported; none before the first command.
func (s *shellState) exported() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := map[string]string{}
	for name, each := range s.now.variables {
		_, quoted, ok := strings.Cut(each, "=")
		if value, plain := unquoteShell(quoted); ok && plain {
			values[name] = value
		}
	}
	return values
}

var shellEscape = regexp.MustCompile("\\\\([$`\"\\\\])")

// unquoteShell parses a value in the format of declare. It refuses the format for control characters.
func unquoteShell(quoted string) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	return shellEscape.ReplaceAllString(quoted[1:len(quoted)-1], "$1"), true
}
