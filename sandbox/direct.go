package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// Direct splits a command line in which bash would only run one program with literal arguments. Running that program without
// bash gives the same result and saves the start of bash, which takes longer than most programs. ok is false where bash would
// expand, redirect, assign or run a builtin, and where a variable of the sandbox or of env, which is Command.Env, could change
// what the line does. When the program is not found, the caller should run the line with bash, which has an error message for
// that.
func (l Layout) Direct(line string, env []string) (args []string, ok bool) {
	if !l.Plain {
		return nil, false
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); !plainVariable(name, value) {
			return nil, false
		}
	}
	args, ok = words(line)
	return args, ok && programName.MatchString(args[0]) && !slices.Contains(reserved, args[0])
}

// plainVariable reports whether a variable leaves the behaviour of a bash as it is.
func plainVariable(name, value string) bool {
	switch {
	case strings.HasPrefix(name, "BASH"), name == "SHELLOPTS", name == "EXECIGNORE":
		return false
	case name == "PYTHONPATH":
		return false // a shell is needed to add to it
	case name == "PATH":
		return !strings.Contains(value, "~") // bash expands it
	}
	return true
}

// PlainEnv reports whether variables fit what Layout.Plain says of a command's environment.
func PlainEnv(env map[string]string) bool {
	for name, value := range env {
		if !plainVariable(name, value) {
			return false
		}
	}
	return true
}

var (
	programName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
	// reserved are bash's own words and builtin commands.
	reserved = strings.Fields("alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs " +
		"disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs " +
		"kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend " +
		"test then time times trap true type typeset ulimit umask unalias unset until wait while")
)

// words splits a line into words that bash takes literally: of letters, digits and a few signs, and of quotes without
// expansions.
func words(line string) (all []string, ok bool) {
	const blank, quotes, special = " \t", `'"`, "$`\\"
	line = strings.Trim(line, blank+"\n")
	for line != "" {
		var word strings.Builder
		for line != "" && !strings.ContainsRune(blank, rune(line[0])) {
			if at := strings.IndexByte(quotes, line[0]); at >= 0 {
				inner, rest, closed := strings.Cut(line[1:], quotes[at:at+1])
				if !closed || strings.ContainsRune(inner, 0) || quotes[at] == '"' && strings.ContainsAny(inner, special) {
					return nil, false
				}
				word.WriteString(inner)
				line = rest
				continue
			}
			if !plainByte(line[0]) {
				return nil, false
			}
			word.WriteByte(line[0])
			line = line[1:]
		}
		all = append(all, word.String())
		line = strings.TrimLeft(line, blank)
	}
	return all, len(all) > 0
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./,:@%+=-", c) >= 0
}
