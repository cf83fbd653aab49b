package policy

import (
	"path"
	"regexp"
	"strings"
)

// starts judges what a program of another trade is told to start. What that would do counts; that it is told so is for
// the rules to ask.
func (c *call) starts() {
	switch c.name {
	case "awk":
		for _, arg := range c.args {
			c.awk(arg)
		}
	case "emacs":
		for _, arg := range c.args {
			c.destroys(arg)
		}
	case "ed":
		for line := range strings.Lines(c.in.text) {
			if code, ok := strings.CutPrefix(line, "!"); ok {
				c.j.aside(code)
			}
		}
	case "sed":
		for _, arg := range c.args {
			code, _ := sedCode(arg)
			c.j.aside(code)
		}
	case "git":
		for _, m := range gitStarts.FindAllStringSubmatch(strings.Join(c.args, "\n"), maxTurns) {
			c.j.aside(m[1])
		}
	case "tmux", "screen":
		_, rest := getopt(c.name, c.args)
		if c.name == "tmux" && len(rest) > 0 {
			_, rest = getopt(c.name, rest[1:])
		}
		c.j.aside(strings.Join(rest, " "))
		c.asides()
	case "crontab":
		c.crontab()
	case "make":
		c.makefiles()
		c.asides()
	default:
		c.asides()
	}
}

// toldHow is what stands before the command in an option's value: --option=, ProxyCommand=, exec=, shell, target:; or !.
var toldHow = regexp.MustCompile(`^(--[-\w]+=|-\w{0,2}[A-Z]\w*=|\+)?(\w*[Cc]ommand[= ]|\w+=|exec |shell |\w*:;)*(:?!)?`)

// asides judges the arguments that may be commands.
func (c *call) asides() {
	for _, arg := range c.args {
		if code := toldHow.ReplaceAllString(arg, ""); strings.Contains(code, " ") || strings.Contains(arg, "!") {
			c.j.aside(code)
		}
	}
}

// gitStarts finds what git is told to start: by settings, aliases, and options.
var gitStarts = regexp.MustCompile(`(?im)^(?:-c\n[\w.-]+=!|!|(?:-c\n)?[\w-]+\.[\w.-]*(?:pager|editor|command|external|program|textconv|\.cmd|askpass|fsmonitor)[=\n]|` +
	`(?:--exec|-x|--[\w-]+-filter)\n)(.*)$`)

var (
	awkText     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	awkSystem   = regexp.MustCompile(`\bsystem\s*\(|\|&|\bprintf?\b[^;}\n/]*\|\s*[A-Za-z_(]|[\w)]\s*\|\s*getline|""\s*""\s*\|\s*getline|\|\s*""\s*[^\s;})]`)
	awkFromPipe = regexp.MustCompile(`^\s*\|&?\s*getline`)
	awkToPipe   = regexp.MustCompile(`[^|]\|&?\s*$`)
)

// awkPipes are the commands that an awk program has pipes from and to, as far as they are plain text.
func awkPipes(program string) (all []string, shell bool) {
	for _, at := range awkText.FindAllStringIndex(program, 64) {
		if awkFromPipe.MatchString(program[at[1]:]) || awkToPipe.MatchString(program[max(at[0]-16, 0):at[0]]) {
			code := program[at[0]+1 : at[1]-1]
			all = append(all, code)
			words := strings.Fields(code)
			shell = shell || len(words) > 0 && names[path.Base(words[0])] == "sh"
		}
	}
	return all, shell
}

// awkStarts says whether an awk program starts what cannot be told, or a shell.
func awkStarts(program string) bool {
	_, shell := awkPipes(program)
	return shell || len(program) > 1 && !strings.HasPrefix(program, "-F") && awkSystem.MatchString(awkText.ReplaceAllString(program, `""`))
}

// awk judges what an awk program starts, and what it prints into a shell; or what its variable holds.
func (c *call) awk(arg string) {
	if assignment.MatchString(arg) {
		_, text, _ := strings.Cut(arg, "=")
		c.j.aside(text)
	}
	c.destroys(arg)
	all, shell := awkPipes(arg)
	if shell {
		for _, text := range awkText.FindAllString(arg, 32) {
			all = append(all, text[1:len(text)-1])
		}
	}
	for _, code := range all {
		c.j.aside(strings.ReplaceAll(code, `\"`, `"`))
	}
}

var (
	sedExecutes = regexp.MustCompile(`^[0-9$ ]*e( |$)`)
	sedFlags    = regexp.MustCompile(`^[gpiImM0-9]*e[gpiImMe0-9]*$`)
)

// sedCode is what a sed script with the e command, or the e flag, runs.
func sedCode(script string) (code string, runs bool) {
	if at := sedExecutes.FindStringIndex(script); at != nil && len(script) > 2 {
		return script[at[1]:], true
	}
	if len(script) < 4 || script[0] != 's' {
		return "", false
	}
	parts := strings.Split(strings.ReplaceAll(script[2:], `\`+script[1:2], "\x02"), script[1:2])
	if len(parts) != 3 || !sedFlags.MatchString(parts[2]) {
		return "", false
	}
	return strings.ReplaceAll(parts[1], "\x02", script[1:2]), true
}

func sedStarts(script string) bool {
	_, runs := sedCode(script)
	return runs
}

var recipe = regexp.MustCompile(`(?m)^(?:\t|[^\n;]*;)[-@+ ]*(.*)$|\$\(shell (.*)\)`)

// makefiles judges the recipes of makefiles that this line wrote.
func (c *call) makefiles() {
	given, _ := c.parse()
	named, _ := given.value("f", "file", "makefile")
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile", named} {
		content, rule := c.j.file(name), ""
		if isStdin(name) {
			content, rule = c.in, interpreterInput
		}
		if content.set && rule != "" || content.taint&(remote|decoded) != 0 {
			c.reportSource(content.taint, rule)
		}
		for _, m := range recipe.FindAllStringSubmatch(content.text, maxWords) {
			c.j.aside(strings.ReplaceAll(m[1]+m[2], "$$", "$"))
		}
	}
}

var cronLine = regexp.MustCompile(`(?m)^` + unknown + `?[ \t]*(?:@\w+|(?:[^\s#]+[ \t]+){4}[^\s]+)[ \t]+(.*)$`)

// crontab judges what is planned to run.
func (c *call) crontab() {
	content := c.in
	for _, name := range c.operands() {
		if !isStdin(name) {
			content = c.j.file(name)
		}
	}
	for _, m := range cronLine.FindAllStringSubmatch(content.text, maxTurns) {
		c.j.aside(m[1])
	}
}
