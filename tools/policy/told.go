package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// told are the options by which programs of another trade are told what to start.
var told = map[string][]string{
	"tar":   {"--to-command", "--use-compress-program", "-I", "--info-script", "--new-volume-script", "-F", "--checkpoint-action", "--rsh-command"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"ssh":   {"-o"}, "scp": {"-o", "-S"}, "sftp": {"-o", "-S"},
	"make": {"--eval"}, "gmake": {"--eval"},
	"gdb": {"-ex", "--eval-command"},
	"vim": {"-c", "--cmd"}, "vi": {"-c"}, "nvim": {"-c", "--cmd"}, "ex": {"-c"},
}

// starts judges what a program is told to start. What it would do counts; that it is told so is for the rules to ask.
func (c *call) starts() {
	for i, arg := range c.args {
		for _, option := range told[c.name] {
			text, ok := strings.CutPrefix(arg, option)
			switch {
			case !ok && (len(option) > 2 || !strings.HasSuffix(arg, option[1:]) || !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--")):
				continue
			case !ok || text == "":
				if i+1 == len(c.args) {
					continue
				}
				text = c.args[i+1]
			}
			c.j.aside(toldCode(text))
		}
		if _, code, ok := strings.Cut(arg, "!"); ok && strings.HasPrefix(arg, "+") {
			c.j.aside(code)
		}
	}
	switch c.name {
	case "awk", "gawk", "mawk", "nawk":
		runs := slices.ContainsFunc(c.args, awkStarts)
		for _, arg := range c.args {
			c.destroys(arg)
			c.awkCommands(arg)
			if name, text, ok := strings.Cut(arg, "="); ok && runs && isAssignment(name+"=") {
				c.j.aside(text) // -v name=text
			}
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
	case "sed", "gsed":
		for _, arg := range c.args {
			if sedExecutes(arg) {
				c.j.aside(sedCode(arg))
			}
		}
	case "make", "gmake":
		c.makefiles()
	}
}

var commandKey = regexp.MustCompile(`^(?i)(\w*command|exec)[ =]+`)

// toldCode is the command in an option's value: behind ProxyCommand=, exec=, shell, ! or =.
func toldCode(text string) string {
	text = strings.TrimLeft(text, "=: ")
	if strings.HasPrefix(text, "!") {
		return text[1:]
	}
	text = commandKey.ReplaceAllString(text, "")
	if code, ok := strings.CutPrefix(text, "shell "); ok {
		return code
	}
	if _, recipe, ok := strings.Cut(text, ":;"); ok { // make --eval
		return recipe
	}
	return text
}

var (
	awkText     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	awkSystem   = regexp.MustCompile(`\bsystem\s*\(|\|&|\bprintf?\b[^;}\n/]*\|\s*[A-Za-z_(]|[\w)]\s*\|\s*getline|""\s*""\s*\|\s*getline|\|\s*""\s*[^\s;})]`)
	awkFromPipe = regexp.MustCompile(`^\s*\|&?\s*getline`)
	awkToPipe   = regexp.MustCompile(`[^|]\|&?\s*$`)
)

// awkPipes are the commands that an awk program has pipes from and to, as far as they are plain text.
func awkPipes(program string) []string {
	var all []string
	for _, at := range awkText.FindAllStringIndex(program, 64) {
		if awkFromPipe.MatchString(program[at[1]:]) || awkToPipe.MatchString(program[max(at[0]-16, 0):at[0]]) {
			all = append(all, unescape(program[at[0]+1:at[1]-1], true))
		}
	}
	return all
}

// awkStarts says whether an awk program starts what cannot be told, or a shell.
func awkStarts(program string) bool {
	if !strings.Contains(program, "|") && !strings.Contains(program, "system") {
		return false
	}
	return awkSystem.MatchString(awkText.ReplaceAllString(program, `""`)) || slices.ContainsFunc(awkPipes(program), startsShell)
}

func startsShell(code string) bool {
	words := strings.Fields(code)
	return len(words) > 0 && isShell(path.Base(words[0]))
}

// awkCommands judges what an awk program starts, and what it prints into a shell.
func (c *call) awkCommands(program string) {
	if !strings.Contains(program, "|") {
		return
	}
	pipes := awkPipes(program)
	for _, code := range pipes {
		c.j.aside(code)
	}
	if slices.ContainsFunc(pipes, startsShell) {
		for _, text := range awkText.FindAllString(program, 32) {
			c.j.aside(unescape(text[1:len(text)-1], true))
		}
	}
}

// sedCode is what a sed script with the e command, or the e flag, runs.
func sedCode(script string) string {
	if script[0] == 's' && len(script) > 3 {
		parts := strings.Split(strings.ReplaceAll(script[2:], `\`+script[1:2], "\x02"), script[1:2])
		if len(parts) > 1 {
			return strings.ReplaceAll(parts[1], "\x02", script[1:2])
		}
	}
	_, code, _ := strings.Cut(script, "e ")
	return code
}

// makefiles judges the recipes of makefiles that this line wrote.
func (c *call) makefiles() {
	names := []string{"GNUmakefile", "makefile", "Makefile"}
	for i, arg := range c.args {
		switch {
		case (arg == "-f" || arg == "--file" || arg == "--makefile") && i+1 < len(c.args):
			names = append(names, c.args[i+1])
		case strings.HasPrefix(arg, "-f") && len(arg) > 2:
			names = append(names, arg[2:])
		case strings.HasPrefix(arg, "--file="), strings.HasPrefix(arg, "--makefile="):
			_, name, _ := strings.Cut(arg, "=")
			names = append(names, name)
		}
	}
	for _, name := range names {
		content := c.j.file(name)
		if isStdin(name) {
			if content = c.in; content.set {
				c.reportSource(content.taint, interpreterInput)
			}
		} else if content.taint&(remote|decoded) != 0 {
			c.reportSource(content.taint, remoteCode)
		}
		for line := range strings.Lines(content.text) {
			recipe, ok := strings.CutPrefix(line, "\t")
			if !ok {
				_, recipe, ok = strings.Cut(line, ";")
			}
			if ok {
				c.j.aside(strings.ReplaceAll(strings.TrimLeft(recipe, "@-+ "), "$$", "$"))
			}
			if _, code, ok := strings.Cut(line, "$(shell "); ok {
				c.j.aside(code[:max(strings.LastIndexByte(code, ')'), 0)])
			}
		}
	}
}

var cronLine = regexp.MustCompile(`(?m)^\x00?[ \t]*(?:@\w+|(?:[^\s#]+[ \t]+){4}[^\s]+)[ \t]+(.*)$`)

// crontab judges what is planned to run.
func (c *call) crontab() {
	content := c.in
	for _, name := range c.operands("u") {
		if !isStdin(name) {
			content = c.j.file(name)
		}
	}
	for _, m := range cronLine.FindAllStringSubmatch(content.text, maxTurns) {
		c.j.aside(m[1])
	}
}

// toldByEnvironment says whether programs start what a variable holds.
func toldByEnvironment(name string) bool {
	switch name {
	case "PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF",
		"GIT_ASKPASS", "SSH_ASKPASS", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "TAR_OPTIONS", "BROWSER":
		return true
	}
	return false
}
