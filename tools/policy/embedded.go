package policy

import (
	"regexp"
	"slices"
	"strings"
)

// commands judges the commands in the arguments of a program that can start them. Their effects count; starting a command at all
// is a matter of the rules.
func (c *call) commands() {
	pattern := table().commands[c.name]
	text := strings.Join(c.args, "\n")
	var files []string
	switch c.name {
	case "awk":
		for _, arg := range c.args {
			c.j.embedded(arg, starting.MatchString(arg) || strings.Contains(arg, "|"))
			if name, text, ok := strings.Cut(arg, "="); ok && assignment.MatchString(name+"=") {
				c.j.aside(text)
			}
		}
	case "emacs":
		c.j.embedded(text, starting.MatchString(text))
	case "ed", "crontab":
		files = append(slices.Clip(c.operands), "-")
	case "make":
		if files = c.given.values("f", "file", "makefile"); files == nil {
			files = []string{"GNUmakefile", "makefile", "Makefile"}
		}
	case "tmux", "screen":
		_, rest := getopt(c.name, c.args)
		if c.name == "tmux" && len(rest) > 0 {
			_, rest = getopt(c.name, rest[1:])
		}
		c.j.aside(strings.Join(rest, " "))
	}
	for _, name := range files {
		content, rule := c.j.file(name), ""
		if isStdin(name) {
			content, rule = c.in, "interpreter-input"
		}
		if c.name == "make" {
			c.foreign(content, rule)
		}
		text += "\n" + content.text
	}
	if pattern == nil {
		return
	}
	for _, m := range pattern.FindAllStringSubmatch(text, maxWords) {
		c.j.aside(strings.ReplaceAll(strings.Join(m[1:], ""), "$$", "$"))
	}
}

var (
	starting = regexp.MustCompile("\\b(system|popen|exec\\w*|spawn\\w*|shell_exec|passthru|proc_open|shell-command|call-process|subprocess|check_output|check_call|" +
		"unlink\\w*|rmtree|rm_rf|rmSync|rmdir\\w*|remove\\w*|eval|qx)\\b|%x[({\\[]|`")
	removes = regexp.MustCompile(`\b(rmtree|rm_rf|rmSync|remove_entire_dir|rimraf|remove_dir_all|deltree)\b`)
	literal = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`\n]*)`|(?:\\bq[qwx]|%x)\\s*[({\\[]([^)}\\]]*)[)}\\]]")
)

// embedded judges the commands in the strings of another language, if the code starts or removes anything.
func (j *judge) embedded(code string, starts bool) {
	if len(code) > 64<<10 || !starts {
		return
	}
	recursive := removes.MatchString(code)
	for _, text := range texts(code) {
		if recursive && j.is("vital", j.canonical(text)) {
			j.report("delete-system")
		}
		j.aside(text)
	}
}

// texts returns the strings of another language, their concatenation, and the words of ["rm", "-rf", "/"] as a command.
func texts(code string) (all []string) {
	var list []string
	listed := func() {
		if len(list) > 1 {
			all = append(all, quoteAll(list))
		}
	}
	end := 0
	for _, at := range literal.FindAllStringSubmatchIndex(code, 64) {
		text := strings.Join(literal.FindStringSubmatch(code[at[0]:at[1]])[1:], "")
		all = append(all, text)
		switch between := code[end:at[0]]; {
		case len(list) == 0 || strings.Trim(between, ",[( \n\t+.") != "":
			listed()
			list = []string{text}
		case strings.ContainsAny(between, ",["):
			list = append(list, text)
		default: // the string is assembled from parts
			list[len(list)-1] += text
			all = append(all, list[len(list)-1])
		}
		end = at[1]
	}
	listed()
	return all
}
