package policy

import (
	"slices"
	"strings"
)

// startsRm says whether a command begins with rm, behind a prefix perhaps.
func startsRm(words []string) bool {
	for _, word := range words[:min(len(words), 4)] {
		if word == "rm" || strings.HasSuffix(word, "/rm") || word == "shred" || word == "unlink" {
			return true
		}
	}
	return false
}

// xargs runs a command with what it reads as arguments.
func (c *call) xargs() stream {
	valued := []string{"max-args", "max-procs", "max-lines", "delimiter", "arg-file", "max-chars"}
	command := after(c.args, "InPLsdEaRJS", valued, 0)
	replace := ""
	for i, arg := range c.args[:len(c.args)-len(command)] {
		switch {
		case (arg == "-I" || arg == "--replace") && i+1 < len(c.args):
			replace = c.args[i+1]
		case strings.HasPrefix(arg, "-I"):
			replace = arg[2:]
		case strings.HasPrefix(arg, "--replace="):
			replace = arg[len("--replace="):]
		case arg == "-i":
			replace = "{}"
		}
	}
	if len(command) == 0 {
		return stream{text: c.in.text, set: c.in.set, taint: c.in.taint}
	}
	for i, arg := range c.args[:len(c.args)-len(command)] {
		if name, ok := strings.CutPrefix(arg, "--arg-file="); ok {
			c.in = c.j.file(name)
		} else if arg == "-a" || arg == "--arg-file" {
			c.in = c.j.file(c.args[i+1])
		}
	}
	items := c.items(replace != "" || hasFlag(c.args[:len(c.args)-len(command)], "d", "delimiter"))
	from := c.taint | c.in.taint
	if startsRm(command) {
		defer c.j.report(xargsRm)
	}
	if replace == "" {
		return c.j.invoke(append(slices.Clip(command), items...), stream{}, from, c.background)
	}
	return c.each(command, items, replace, from)
}

// items are the words on the input, or its lines.
func (c *call) items(lines bool) []string {
	if !c.in.set || strings.Contains(c.in.text, unknown) {
		return []string{unknown}
	}
	if lines {
		words := strings.Split(strings.TrimRight(c.in.text, "\n"), "\n")
		return words[:min(len(words), maxWords)]
	}
	words := strings.Fields(c.in.text)
	for i, word := range words {
		words[i] = strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(word)
	}
	return words[:min(len(words), maxWords)]
}

// each runs a command for every item, put in the place of a mark.
func (c *call) each(command, items []string, mark string, from taint) stream {
	out := stream{text: unknown, set: true}
	for i, item := range items {
		if i >= 8 {
			break
		}
		words := make([]string, len(command))
		for k, word := range command {
			words[k] = strings.ReplaceAll(word, mark, item)
			if len(words[k]) > maxValue {
				words[k] = unknown
			}
		}
		out = c.j.invoke(words, stream{}, from, c.background)
	}
	return out
}

// parallel runs a command for what it reads, or for what stands behind :::.
func (c *call) parallel() stream {
	command := after(c.args, "jNnIaSL", []string{"jobs", "max-args", "arg-file", "colsep", "delay", "timeout"}, 0)
	items := []string(nil)
	if i := slices.Index(command, ":::"); i >= 0 {
		items, command = command[i+1:], command[:i]
	} else {
		items = c.items(true)
	}
	if len(command) == 0 {
		if c.in.set {
			return c.piped()
		}
		for _, item := range items {
			c.j.aside(item)
		}
		return stream{text: unknown, set: true}
	}
	if startsRm(command) {
		defer c.j.report(xargsRm)
	}
	if !strings.Contains(strings.Join(command, " "), "{}") {
		command = append(slices.Clip(command), "{}")
	}
	// The command is handed to a shell.
	out := stream{text: unknown, set: true}
	for i, item := range items {
		if i < 8 {
			out = c.j.code(strings.ReplaceAll(strings.Join(command, " "), "{}", item), stream{})
		}
	}
	return out
}

// narrowing are the tests of find that leave things out.
var narrowing = []string{
	"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin",
	"-size", "-user", "-group", "-perm", "-empty", "-inum", "-links", "-samefile", "-lname", "-newermt", "-nouser", "-nogroup",
}

// find starts at some places, leaves things out, and does something with the rest.
func (c *call) find() stream {
	var starts []string
	i := 0
	for ; i < len(c.args); i++ {
		arg := c.args[i]
		if arg == "-L" || arg == "-H" || arg == "-P" || strings.HasPrefix(arg, "-O") {
			continue
		}
		if strings.HasPrefix(arg, "-") || arg == "(" || arg == "!" {
			break
		}
		starts = append(starts, arg)
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	narrowed := false
	for ; i < len(c.args); i++ {
		switch arg := c.args[i]; {
		case slices.Contains(narrowing, arg):
			if i > 0 && (c.args[i-1] == "!" || c.args[i-1] == "-not") {
				continue // all but that
			}
			narrowed = narrowed || arg == "-empty" || i+1 >= len(c.args) || strings.Trim(c.args[i+1], "*") != ""
		case arg == "-delete":
			if !narrowed && c.anyPath(starts, c.j.isVital) {
				c.j.report(deleteSystem)
			}
			c.j.report(findDelete)
		case arg == "-fprint" || arg == "-fprintf" || arg == "-fls" || arg == "-fprint0":
			if i+1 < len(c.args) {
				c.j.writesTo(c.args[i+1])
			}
		case arg == "-exec" || arg == "-execdir" || arg == "-ok" || arg == "-okdir":
			end := i + 1
			for end < len(c.args) && c.args[end] != ";" && c.args[end] != "+" {
				end++
			}
			c.findExec(c.args[i+1:end], starts, narrowed)
			i = end
		}
	}
	out := stream{text: unknown, set: true}
	if !narrowed && len(starts) == 1 {
		// The first line is the start itself, which is what matters when the list is removed.
		out.text = starts[0] + "\n" + starts[0] + "/" + unknown
		if strings.HasPrefix(c.j.canonical(starts[0]), "/") && c.j.isVital(c.j.canonical(starts[0])) {
			out.text = starts[0]
		}
	}
	return out
}

func (c *call) findExec(command, starts []string, narrowed bool) {
	for k, start := range starts {
		if k >= 8 {
			break
		}
		if narrowed {
			start += "/" + unknown
		}
		c.each(command, []string{start}, "{}", c.taint)
	}
	if startsRm(command) {
		c.j.report(findRm)
	}
}

// fd is a find with other words.
func (c *call) fd() stream {
	for i, arg := range c.args {
		if arg == "-x" || arg == "-X" || arg == "--exec" || arg == "--exec-batch" {
			command := append(slices.Clone(c.args[i+1:]), "{}")
			starts := []string{"./" + unknown}
			if rest := operands(c.args[:i], "eEtdcjS"); len(rest) > 1 {
				starts = rest[1:]
			}
			c.each(command, starts, "{}", c.taint)
			if startsRm(command) {
				c.j.report(findRm)
			}
			break
		}
	}
	return stream{text: unknown, set: true}
}
