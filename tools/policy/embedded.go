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
		c.awk()
	case "emacs":
		c.j.embedded(text)
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
			c.j.foreign(content, rule)
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

// awk judges the strings of an awk program that starts commands, and the values of its variables.
func (c *call) awk() {
	for _, arg := range c.args {
		if strings.Contains(arg, "|") {
			c.j.literals(arg)
		} else {
			c.j.embedded(arg)
		}
		if assignment.MatchString(arg) {
			_, text, _ := strings.Cut(arg, "=")
			c.j.aside(text)
		}
	}
}

var (
	starting = regexp.MustCompile("\\b(system|popen|exec\\w*|spawn\\w*|shell_exec|passthru|proc_open|shell-command|call-process|subprocess|check_output|check_call|" +
		"unlink\\w*|rmtree|rm_rf|rmSync|rmdir\\w*|remove\\w*|eval|qx)\\b|%x[({\\[]|`")
	removes = regexp.MustCompile(`\b(rmtree|rm_rf|rmSync|remove_entire_dir|rimraf|remove_dir_all|deltree)\b`)
	literal = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`\n]*)`|(?:\\bq[qwx]|%x)\\s*[({\\[]([^)}\\]]*)[)}\\]]")
)

// embedded judges the commands in the strings of another language, if the code starts or removes anything.
func (j *judge) embedded(code string) {
	if len(code) <= 64<<10 && starting.MatchString(code) {
		j.literals(code)
	}
}

// literals judges the strings of another language, their concatenation, and the words of ["rm", "-rf", "/"].
func (j *judge) literals(code string) {
	recursive := removes.MatchString(code)
	var list []string
	end := 0
	for _, at := range literal.FindAllStringSubmatchIndex(code, 64) {
		text := strings.Join(literal.FindStringSubmatch(code[at[0]:at[1]])[1:], "")
		if recursive && j.is("vital", j.canonical(text)) {
			j.report("delete-system")
		}
		j.aside(text)
		switch between := code[end:at[0]]; {
		case len(list) == 0 || strings.Trim(between, ",[( \n\t+.") != "":
			j.listed(list)
			list = []string{text}
		case strings.ContainsAny(between, ",["):
			list = append(list, text)
		default: // the string is assembled from parts
			list[len(list)-1] += text
			j.aside(list[len(list)-1])
		}
		end = at[1]
	}
	j.listed(list)
}

// listed judges a command that is given as a list of words.
func (j *judge) listed(words []string) {
	if len(words) > 1 {
		j.aside(quoteAll(words))
	}
}
