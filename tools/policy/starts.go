package policy

import (
	"regexp"
	"strings"
)

// codeIn matches the commands in the arguments of programs that are not shells but can start commands: one argument a line, and
// the files that ed, crontab and make read. The entry "" is for all other programs: an argument of several words, after
// --option=, ProxyCommand=, exec= or the like, or after a !.
var codeIn = map[string]*regexp.Regexp{
	"ed":      regexp.MustCompile(`(?m)^!(.*)$`),
	"crontab": regexp.MustCompile(`(?m)^` + unknown + `?[ \t]*(?:@\w+|(?:[^\s#]+[ \t]+){4}[^\s]+)[ \t]+(.*)$`),
	"make":    regexp.MustCompile(`(?m)^(?:\t|[^\n;]*;)[-@+ ]*(.*)$|\$\(shell (.*)\)`),
	"sed":     regexp.MustCompile(sedStarts),
	"git": regexp.MustCompile(`(?im)^(?:-c\n[\w.-]+=!|!|(?:-c\n)?[\w-]+\.[\w.-]*(?:pager|editor|command|external|program|textconv|\.cmd|askpass|fsmonitor)[=\n]|` +
		`(?:--exec|-x|--[\w-]+-filter)\n)(.*)$`),
	"": regexp.MustCompile(`(?m)^(?:--[-\w]+=|-\w{0,2}[A-Z]\w*=|-[ceI]|\+)?(?:\w*[Cc]ommand[= ]|\w+=|exec |shell )*(?::?!(.*)|(.* .*))$`),
}

// sedStarts matches the e command of sed, and the e flag of its s command.
const sedStarts = `(?m)^[0-9$ ]*e (.*)$|^s(?:/(?:[^/\\\n]|\\.)*/((?:[^/\\\n]|\\.)*)/|[|][^|\n]*[|]([^|\n]*)[|]|#[^#\n]*#([^#\n]*)#)[gpiImM0-9]*e[gpiImMe0-9]*$`

// starts judges the commands that such a program is told to start. Their effects count; starting a command at all is a matter
// of the rules.
func (c *call) starts() {
	given, operands := c.parse()
	texts := []string{strings.Join(c.args, "\n")}
	var files []string
	switch c.name {
	case "ed", "crontab":
		files = append(operands, "-")
	case "make":
		files = []string{"GNUmakefile", "makefile", "Makefile"}
		if name, ok := given.value("f", "file", "makefile"); ok {
			files = []string{name}
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
			content, rule = c.in, interpreterInput
		}
		if c.name == "make" {
			c.foreign(content, rule)
		}
		texts = append(texts, content.text)
	}
	pattern, ok := codeIn[c.name]
	if !ok {
		pattern = codeIn[""]
	}
	for _, m := range pattern.FindAllStringSubmatch(strings.Join(texts, "\n"), maxWords) {
		c.j.aside(strings.ReplaceAll(strings.Join(m[1:], ""), "$$", "$"))
	}
}

var (
	awkText   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	awkStarts = regexp.MustCompile(`\bsystem\s*\(|\|&|\bprintf?\b[^;}\n/]*\|\s*[A-Za-z_(]|[\w)]\s*\|\s*getline|""\s*""\s*\|\s*getline|\|\s*""\s*[^\s;})]`)
	awkShell  = regexp.MustCompile(`\|&?\s*"\s*(\S*/)?(ba|da|z|k)?sh\b`)
)

// awkRuns reports whether an awk program starts a shell, or a command that is not known.
func awkRuns(c *call) bool {
	return awkShell.MatchString(c.line) || awkStarts.MatchString(awkText.ReplaceAllString(c.line, `""`))
}

// awk judges the strings of an awk program that starts commands, and the values of its variables.
func (c *call) awk() {
	for _, arg := range c.args {
		if strings.Contains(arg, "|") {
			c.literals(arg)
		}
		c.destroys(arg)
		if assignment.MatchString(arg) {
			_, text, _ := strings.Cut(arg, "=")
			c.j.aside(text)
		}
	}
}
