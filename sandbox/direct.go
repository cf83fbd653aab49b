package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// Direct takes apart a command line that has bash run one program, all of whose arguments are in plain sight. Started
// with them, it does what it does under `bash -c`, and the time that bash takes to start is saved, which is longer than most
// programs take. ok is false where bash has anything to expand, to redirect, to assign or to run by itself, and where a
// variable of the sandbox or of env, which is Command.Env, may have it do something else. A program that is then not
// found is one for bash, which has words for it.
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

// plainVariable tells whether a variable leaves what a bash runs as it is.
func plainVariable(name, value string) bool {
	switch {
	case strings.HasPrefix(name, "BASH"), name == "SHELLOPTS", name == "EXECIGNORE":
		return false
	case name == "PYTHONPATH":
		return false // a verifier adds to it, which takes a shell
	case name == "PATH":
		return !strings.Contains(value, "~") // which bash expands
	}
	return true
}

// PlainEnv tells whether variables are what Layout.Plain says of those that commands find.
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
	// reserved are the words and commands that are bash's own.
	reserved = strings.Fields("alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs " +
		"disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs " +
		"kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend " +
		"test then time times trap true type typeset ulimit umask unalias unset until wait while")
)

// words cuts a line into words that bash takes as they are: of letters, digits and a few signs, and of quotes with nothing
// to expand between them.
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
