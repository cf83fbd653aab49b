package tools

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"trajgen/tools/internal/chars"
)

// checkForeground refuses a command that would outlive a foreground call or never end: it belongs in the background, where the
// process tool can watch it. checkForeground parses the command as a shell does, so it does not mistake quoted text, comments
// or here-documents for commands.
func checkForeground(command string) error {
	const advice = "Start it with background=true, then use the process tool (poll, log, wait, kill)"
	script := parseShell(command)
	for _, words := range script.commands {
		name, args, bounded := program(words)
		switch {
		case name == "nohup" || name == "disown" || name == "setsid":
			return notRun("background_required",
				"%s detaches a command from a foreground call. %s; give the command without %s.", name, advice, name)
		case !bounded && isServer(name, args):
			return notRun("background_required",
				"%q looks like a server or watcher that does not end by itself. %s.", chars.First(strings.Join(words, " "), 200, "..."), advice)
		}
	}
	if script.background {
		return notRun("background_required",
			"'&' leaves a command in the background of a foreground call. %s; give the command without '&'. "+
				"(An '&' that is meant literally, as in a URL, must be quoted.)", advice)
	}
	return nil
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
	python     = regexp.MustCompile(`^python[0-9.]*$`)
	// Words before a command.
	prefixes = []string{"exec", "command", "builtin"}
	// Programs that run the command that follows their options.
	wrappers = []string{"sudo", "env", "nice", "stdbuf", "npx", "bunx", "timeout"}
)

// Options of these programs that take a value.
var wrapperValues = map[string]string{"sudo": "CDghprRtTuU", "env": "CSu", "nice": "n", "stdbuf": "ioe", "timeout": "ks", "npx": "p"}

// program returns the program that a simple command runs. bounded means that timeout(1) will end it.
func program(words []string) (name string, args []string, bounded bool) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if assignment.MatchString(word) || slices.Contains(prefixes, word) {
			continue
		}
		name := path.Base(word)
		if !slices.Contains(wrappers, name) {
			return name, words[i+1:], bounded
		}
		for i+1 < len(words) && strings.HasPrefix(words[i+1], "-") {
			i++
			if option := words[i]; len(option) == 2 && strings.Contains(wrapperValues[name], option[1:]) {
				i++
			}
		}
		if name == "timeout" {
			bounded = true
			i++ // the duration
		}
	}
	return "", nil, bounded
}

func isServer(name string, args []string) bool {
	for _, arg := range args {
		if slices.Contains([]string{"--help", "-h", "--version", "-v", "-V"}, arg) {
			return false
		}
	}
	first := func(n int) string {
		if n < len(args) {
			return args[n]
		}
		return ""
	}
	switch name {
	case "npm", "pnpm", "yarn", "bun":
		script := first(0)
		if script == "run" {
			script = first(1)
		}
		return slices.Contains([]string{"dev", "start", "serve", "watch"}, script)
	case "docker":
		return first(0) == "compose" && slices.Contains(args, "up") && !detached(args)
	case "docker-compose":
		return slices.Contains(args, "up") && !detached(args)
	case "next":
		return first(0) == "dev"
	case "vite":
		return !slices.Contains([]string{"build", "optimize"}, first(0))
	case "flask":
		return slices.Contains(args, "run")
	case "streamlit":
		return first(0) == "run"
	case "php":
		return first(0) == "-S"
	case "gunicorn":
		return !slices.Contains(args, "-D") && !slices.Contains(args, "--daemon")
	case "nodemon", "uvicorn", "http-server":
		return true
	}
	if !python.MatchString(name) {
		return false
	}
	if path.Base(first(0)) == "manage.py" {
		return first(1) == "runserver"
	}
	i := slices.Index(args, "-m")
	return i >= 0 && slices.Contains([]string{"http.server", "uvicorn", "gunicorn", "SimpleHTTPServer"}, first(i+1))
}

func detached(args []string) bool {
	return slices.Contains(args, "-d") || slices.Contains(args, "--detach")
}

// exitMeaning explains exit codes of a command line's last command that are not failures, or that few people know.
func exitMeaning(command string, code int) string {
	if code == 0 {
		return ""
	}
	name, _, _ := program(parseShell(command).last)
	return exitMeanings[cmp.Or(alike[name], name)][code]
}

// alike are programs that end as another one does.
var alike = map[string]string{
	"egrep": "grep", "fgrep": "grep", "rg": "grep", "ag": "grep", "ack": "grep", "colordiff": "diff", "[": "test",
}

var exitMeanings = map[string]map[int]string{
	"grep": {1: "no match (not an error)"},
	"diff": {1: "the files differ (not an error)"},
	"cmp":  {1: "the files differ (not an error)"},
	"find": {1: "some directories could not be read"},
	"test": {1: "the condition is false (not an error)"},
	"git":  {1: "often not an error, e.g. git diff --exit-code found differences"},
	"curl": {
		6: "the host could not be resolved", 7: "the connection was refused or failed",
		22: "the server answered with an HTTP error status", 28: "the operation timed out",
	},
}
