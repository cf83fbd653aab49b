package policy

import "strings"

// flag says whether an option was given: one of the letters, alone or with others behind one dash, or one of the long
// names, which may be cut short.
func (c *call) flag(letters string, long ...string) bool { return hasFlag(c.args, letters, long...) }

func hasFlag(args []string, letters string, long ...string) bool {
	for _, arg := range args {
		if len(arg) < 2 || arg[0] != '-' {
			continue
		}
		if arg[1] != '-' {
			if strings.ContainsAny(arg[1:], letters) {
				return true
			}
			continue
		}
		if arg == "--" {
			return false
		}
		name, _, _ := strings.Cut(arg[2:], "=")
		for _, l := range long {
			if name == l || len(name) >= 3 && strings.HasPrefix(l, name) {
				return true
			}
		}
	}
	return false
}

// operands are the arguments that are no options. valued are the letters of options that take the next argument.
func (c *call) operands(valued string) []string { return operands(c.args, valued) }

func operands(args []string, valued string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return append(rest, args[i+1:]...)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		case arg[1] != '-' && strings.IndexByte(valued, arg[len(arg)-1]) >= 0:
			i++
		}
	}
	return rest
}

// after skips options, and n operands, and returns what comes then.
func after(args []string, valued string, long []string, n int) []string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			i++
			return args[min(i+n, len(args)):]
		case len(arg) < 2 || arg[0] != '-':
			if n == 0 {
				return args[i:]
			}
			n--
		case arg[1] == '-':
			for _, name := range long {
				if arg == "--"+name {
					i++
					break
				}
			}
		case strings.IndexByte(valued, arg[len(arg)-1]) >= 0 && (len(arg) == 2 || strings.IndexByte(valued, arg[1]) < 0):
			i++
		}
	}
	return nil
}

// has says whether an argument is one of the words.
func (c *call) has(words ...string) bool { return has(c.args, words...) }

func has(args []string, words ...string) bool {
	for _, arg := range args {
		for _, word := range words {
			if arg == word {
				return true
			}
		}
	}
	return false
}

// anyPath says whether one of the names leads to a path that test is true of.
func (c *call) anyPath(names []string, test func(string) bool) bool {
	for _, name := range names {
		if test(c.j.canonical(name)) {
			return true
		}
	}
	return false
}
