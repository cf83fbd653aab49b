package policy

import (
	"slices"
	"strings"
)

type option struct{ name, value string } // a letter, or a long name

type options []option

// values returns the values of some options.
func (o options) values(names ...string) (all []string) {
	for _, given := range o {
		if slices.Contains(names, given.name) {
			all = append(all, given.value)
		}
	}
	return all
}

// value returns the first value of some options.
func (o options) value(names ...string) (value string, given bool) {
	all := o.values(names...)
	return append(all, "")[0], len(all) > 0
}

// has reports whether one of some options was given. Long names may be abbreviated.
func (o options) has(names ...string) bool {
	return slices.ContainsFunc(o, func(given option) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return name == given.name || len(given.name) > 2 && strings.HasPrefix(name, given.name)
		})
	})
}

// getopt parses a program's options up to its first operand.
func getopt(program string, args []string) (given options, rest []string) {
	takes := table().options[program]
	next := func() (value string) {
		if len(args) > 0 {
			value, args = args[0], args[1:]
		}
		return value
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := next()
		if arg == "--" {
			break
		}
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, attached := strings.Cut(long, "=")
			if !attached && slices.Contains(takes.long, name) {
				value = next()
			}
			given = append(given, option{name, value})
			continue
		}
		for k := 1; k < len(arg); k++ {
			o := option{name: arg[k : k+1]}
			valued := strings.Contains(takes.letters, o.name)
			if valued || strings.Contains(takes.attached, o.name) {
				o.value, k = arg[k+1:], len(arg)
			}
			if valued && o.value == "" {
				o.value = next()
			}
			given = append(given, o)
		}
	}
	return given, args
}

// getopts parses all options of a program, and its operands.
func getopts(program string, args []string) (given options, operands []string) {
	var after []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, after = args[:i], args[i+1:]
	}
	for len(args) > 0 {
		var some options
		if some, args = getopt(program, args); len(args) > 0 {
			operands, args = append(operands, args[0]), args[1:]
		}
		given = append(given, some...)
	}
	return given, append(operands, after...)
}

// verb returns the subcommand of a program, and the arguments after it.
func (c *command) verb() (verb string, rest []string) {
	_, rest = getopt(c.name, c.args)
	if c.name == "docker" && len(rest) > 0 && (rest[0] == "compose" || rest[0] == "container") {
		_, rest = getopt(c.name, rest[1:])
	}
	if len(rest) == 0 {
		return "", nil
	}
	return rest[0], rest[1:]
}
