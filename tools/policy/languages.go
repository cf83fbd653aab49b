package policy

import (
	"regexp"
	"strings"
)

// language describes the options of an interpreter.
type language struct {
	code   string // options that are followed by code
	module string // option that names a module
	filter string // options that make the code a line filter
	stdin  bool   // it reads the program from its input without a file
}

var languages = map[string]language{
	"python": {code: "c e", module: "m", stdin: true}, "perl": {code: "e E", filter: "n p", stdin: true}, "ruby": {code: "e", filter: "n p", stdin: true},
	"node": {code: "e p eval print", stdin: true}, "bun": {code: "e p eval print"}, "php": {code: "r", stdin: true}, "lua": {code: "e", stdin: true},
	"julia": {code: "e E eval", stdin: true}, "Rscript": {code: "e"}, "R": {code: "e", stdin: true}, "osascript": {code: "e", stdin: true},
	"elixir": {code: "e"}, "groovy": {code: "e"}, "scala": {code: "e"}, "tclsh": {stdin: true}, "expect": {code: "c", stdin: true},
	"pwsh": {code: "c C Command", stdin: true},
}

// interpreter follows the code of an interpreter's options.
func (c *call) interpreter(l language) stream {
	given, rest := getopt(c.name, c.args)
	_, filter := given.value(strings.Fields(l.filter)...)
	code, hasCode := given.value(strings.Fields(l.code)...)
	_, module := given.value(strings.Fields(l.module)...)
	_, explains := given.value("V", "h", "version", "help")
	switch {
	case module:
	case hasCode:
		c.destroys(code)
		// A line filter that starts nothing is harmless.
		if !filter || c.taint&(remote|decoded) != 0 || strings.Contains(code, unknown) || starting.MatchString(code) {
			c.reportSource(c.taint, interpreterCode)
		}
	case explains:
	case len(rest) > 0 && !isStdin(rest[0]):
		c.foreign(c.j.file(rest[0]), "")
	case len(rest) > 0 || l.stdin:
		c.foreign(c.in, interpreterInput)
	}
	return unknownStream(c.in.taint)
}

// foreign judges a program of another language in a stream: code from elsewhere has its own rules.
func (c *call) foreign(program stream, rule string) {
	if program.set {
		c.destroys(program.text)
	}
	if program.set && rule != "" || program.taint&(remote|decoded) != 0 {
		c.reportSource(program.taint, rule)
	}
}

var (
	starting = regexp.MustCompile("\\b(system|popen|exec\\w*|spawn\\w*|shell_exec|passthru|proc_open|shell-command|call-process|subprocess|check_output|check_call|" +
		"unlink\\w*|rmtree|rm_rf|rmSync|rmdir\\w*|remove\\w*|eval|qx)\\b|%x[({\\[]|`")
	removes  = regexp.MustCompile(`\b(rmtree|rm_rf|rmSync|remove_entire_dir|rimraf|remove_dir_all|deltree)\b`)
	literals = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`\n]*)`|(?:\\bq[qwx]|%x)\\s*[({\\[]([^)}\\]]*)[)}\\]]")
)

// destroys looks for commands in the strings of another language.
func (c *call) destroys(code string) {
	if len(code) <= 64<<10 && starting.MatchString(code) {
		c.literals(code)
	}
}

// literals judges the strings of another language, and their concatenation.
func (c *call) literals(code string) {
	recursive := removes.MatchString(code)
	var list []string // the words of ["rm", "-rf", "/"]
	end := 0
	for _, at := range literals.FindAllStringSubmatchIndex(code, 64) {
		text := ""
		for k := 2; k < len(at); k += 2 {
			if at[k] >= 0 {
				text = code[at[k]:at[k+1]]
			}
		}
		if recursive && c.j.isVital(c.j.canonical(text)) {
			c.j.report(deleteSystem)
		}
		c.j.aside(text)
		switch between := code[end:at[0]]; {
		case len(list) == 0 || strings.Trim(between, ",[( \n\t+.") != "":
			c.listed(list)
			list = []string{text}
		case strings.ContainsAny(between, ",["):
			list = append(list, text)
		default: // the string is assembled from parts
			list[len(list)-1] += text
			c.j.aside(list[len(list)-1])
		}
		end = at[1]
	}
	c.listed(list)
}

// listed judges a command that is given as a list of words.
func (c *call) listed(words []string) {
	if len(words) > 1 {
		c.j.aside(quoteAll(words))
	}
}
