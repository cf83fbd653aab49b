package policy

import (
	"regexp"
	"slices"
	"strings"
)

// removing reports whether a command is rm, perhaps after prefixes.
func removing(words []string) bool {
	return slices.ContainsFunc(words[:min(len(words), 4)], func(word string) bool {
		return word == "rm" || strings.HasSuffix(word, "/rm") || word == "shred" || word == "unlink"
	})
}

// each runs a command for some items, which replace a mark. With shell, a shell parses it.
func (c *call) each(command, items []string, mark, rule string, shell bool) (out stream) {
	for _, item := range items[:min(len(items), 8)] {
		words := make([]string, len(command))
		for i, word := range command {
			if words[i] = strings.ReplaceAll(word, mark, item); len(words[i]) > maxValue {
				words[i] = unknown
			}
		}
		if shell {
			out = c.j.code(strings.Join(words, " "), stream{})
		} else {
			out = c.j.invoke(words, stream{})
		}
	}
	if removing(command) {
		c.j.report(rule)
	}
	return out
}

// xargs runs a command with the words of its input as arguments.
func (c *call) xargs() stream {
	given, command := getopt("xargs", c.args)
	if len(command) == 0 {
		return c.in
	}
	if name, ok := given.value("a", "arg-file"); ok {
		c.in = c.j.file(name)
	}
	items := c.in.lines()
	if mark, ok := given.value("I", "replace", "i"); ok {
		if mark == "" {
			mark = "{}"
		}
		return c.each(command, items, mark, "xargs-rm", false)
	}
	if !given.has("d", "delimiter") {
		items = strings.Fields(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(strings.Join(items, "\n")))
	}
	return c.each(append(slices.Clip(command), items[:min(len(items), maxWords)]...), []string{""}, "\x00", "xargs-rm", false)
}

// parallel makes a shell run a command for the lines of its input, or for the words after :::.
func (c *call) parallel() stream {
	_, command := getopt("parallel", c.args)
	items := c.in.lines()
	if i := slices.Index(command, ":::"); i >= 0 {
		command, items = command[:i], command[i+1:]
	}
	switch {
	case len(command) == 0 && c.in.set:
		return c.piped()
	case !strings.Contains(strings.Join(command, " "), "{}"):
		command = append(slices.Clip(command), "{}")
	}
	return c.each(command, items, "{}", "xargs-rm", true)
}

// narrowing matches the tests of find that exclude files.
var narrowing = regexp.MustCompile(`^-(i?name|i?path|wholename|i?regex|newer|newermt|[amc]time|[amc]min|size|user|group|perm|empty|inum|links|samefile|lname|nouser|nogroup)$`)

// find starts in some directories, excludes files, and acts on the others.
func (c *call) find(args []string) stream {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "-L" || arg == "-H" || arg == "-P" })
	end := slices.IndexFunc(append(args, "-"), func(arg string) bool { return strings.HasPrefix(arg, "-") || arg == "(" || arg == "!" })
	starts, narrowed := args[:end:end], false
	if end == 0 {
		starts = []string{"."}
	}
	vital := c.j.any(starts, "vital")
	for i := end; i < len(args); i++ {
		next := first(args[i+1:])
		switch args[i] {
		case "-delete":
			if !narrowed && vital {
				c.j.report("delete-system")
			}
			c.j.report("find-delete")
		case "-fprint", "-fprintf", "-fls", "-fprint0":
			c.j.report(c.j.writeRule(next))
		case "-exec", "-execdir", "-ok", "-okdir":
			command := args[i+1:]
			command = command[:slices.IndexFunc(append(slices.Clip(command), ";"), func(arg string) bool { return arg == ";" || arg == "+" })]
			i += len(command)
			found := slices.Clone(starts)
			for k := range found {
				if narrowed {
					found[k] += "/" + unknown
				}
			}
			c.each(command, found, "{}", "find-exec-rm", false)
		default:
			others := i > 0 && (args[i-1] == "!" || args[i-1] == "-not")
			narrowed = narrowed || narrowing.MatchString(args[i]) && !others && (args[i] == "-empty" || next == "" || strings.Trim(next, "*") != "")
		}
	}
	switch {
	case narrowed || len(starts) > 1:
		return stream{unknown, true}
	case vital: // the list may go to a command that removes the files
		return stream{starts[0], true}
	}
	return stream{starts[0] + "\n" + starts[0] + "/" + unknown, true}
}

// findArgs are the arguments with which find does what fd does: fd PATTERN DIRECTORIES -x COMMAND.
func (c *command) findArgs() []string {
	i := slices.IndexFunc(c.args, func(arg string) bool { return arg == "-x" || arg == "-X" || arg == "--exec" || arg == "--exec-batch" })
	if i < 0 {
		return []string{"./" + unknown}
	}
	starts := newCommand("fd", c.args[:i]).operands
	if starts = starts[min(1, len(starts)):]; len(starts) == 0 {
		starts = []string{"./" + unknown}
	}
	return slices.Concat(starts, []string{"-exec"}, c.args[i+1:], []string{"{}"})
}
