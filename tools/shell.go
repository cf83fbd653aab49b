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

// Programs with their arguments, one a line, that do not end by themselves, and those among them that do.
var (
	servers = regexp.MustCompile(`^(` +
		`(npm|pnpm|yarn|bun)\n(run\n)?(dev|start|serve|watch)|` +
		`(docker\ncompose|docker-compose)\n(.*\n)*up|` +
		`next\ndev|streamlit\nrun|flask\n(.*\n)*run|php\n-S|vite|gunicorn|nodemon|uvicorn|http-server|` +
		`python[0-9.]*\n(.*/)?manage\.py\nrunserver|` +
		`python[0-9.]*\n(.*\n)*-m\n(http\.server|uvicorn|gunicorn|SimpleHTTPServer)` +
		`)\n`)
	ending = regexp.MustCompile(`\n(--help|-h|--version|-v|-V)\n|^vite\n(build|optimize)\n|` +
		`^gunicorn\n(.*\n)*(-D|--daemon)\n|^docker.*\n(.*\n)*(-d|--detach)\n`)
)

func isServer(name string, args []string) bool {
	line := name + "\n"
	for _, arg := range args {
		line += strings.ReplaceAll(arg, "\n", " ") + "\n"
	}
	return servers.MatchString(line) && !ending.MatchString(line)
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
