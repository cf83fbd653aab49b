package policy

import (
	"regexp"
	"slices"
	"strings"
)

// interpreter is a program that runs another language.
type interpreter struct {
	code   string   // letters of the options that are followed by code
	long   []string // long ones
	valued string   // letters of options that take the next argument
	module string   // the letter that names a module
	filter string   // letters that make a line filter of the code
	stdin  bool     // without a file the program is read from the input
}

// interpreter finds the code that an interpreter is given.
func (c *call) interpreter(in interpreter) stream {
	out := stream{text: unknown, set: true, taint: c.in.taint}
	if c.name == "deno" && len(c.args) > 0 && (c.args[0] == "eval" || c.args[0] == "repl") {
		c.j.report(interpreterCode)
		return out
	}
	for i := 0; i < len(c.args); i++ {
		arg := c.args[i]
		switch {
		case isStdin(arg):
			c.program()
			return out
		case len(arg) < 2 || arg[0] != '-':
			c.scriptFile(arg)
			return out
		case arg == "--":
			continue
		case strings.HasPrefix(arg, "--") || (c.name == "pwsh" || c.name == "powershell") && len(arg) > 2:
			name, text, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if slices.Contains(in.long, name) {
				if !given && i+1 < len(c.args) {
					text = c.args[i+1]
				}
				c.language(text, false)
				return out
			}
			continue
		}
		for k := 1; k < len(arg); k++ {
			letter := string(arg[k])
			switch {
			case strings.Contains(in.code, letter):
				text := arg[k+1:]
				if text == "" && i+1 < len(c.args) {
					text = c.args[i+1]
				}
				c.language(text, filters(in, c.args))
				return out
			case in.module != "" && in.module == letter:
				return out
			case strings.Contains(in.valued, letter):
				if k+1 == len(arg) {
					i++
				}
				k = len(arg)
			case letter == "i" && in.filter != "":
				k = len(arg) // the suffix of -i.bak
			case letter == "V" || letter == "h":
				return out
			}
		}
	}
	if in.stdin && !hasFlag(c.args, "", "version", "help") {
		c.program()
	}
	return out
}

var interpreters = map[string]interpreter{
	"python":  {code: "ce", valued: "WX", module: "m", stdin: true},
	"perl":    {code: "eE", valued: "IMm", filter: "np", stdin: true},
	"ruby":    {code: "e", valued: "Ir", filter: "np", stdin: true},
	"node":    {code: "ep", long: []string{"eval", "print"}, valued: "r", stdin: true},
	"nodejs":  {code: "ep", long: []string{"eval", "print"}, valued: "r", stdin: true},
	"bun":     {code: "ep", long: []string{"eval", "print"}},
	"deno":    {},
	"php":     {code: "r", valued: "dcf", stdin: true},
	"lua":     {code: "e", valued: "l", stdin: true},
	"julia":   {code: "eE", long: []string{"eval"}, stdin: true},
	"Rscript": {code: "e"}, "R": {code: "e", stdin: true}, "osascript": {code: "e", stdin: true},
	"elixir": {code: "e"}, "groovy": {code: "e"}, "scala": {code: "e"}, "tclsh": {stdin: true}, "expect": {code: "c", stdin: true},
	"pwsh": {code: "c", long: []string{"Command"}, stdin: true}, "powershell": {code: "c", long: []string{"Command"}, stdin: true},
}

var versioned = regexp.MustCompile(`^(python|perl|ruby|php|lua|node|pypy)[0-9.]*$`)

func interpreterOf(name string) (interpreter, bool) {
	if in, ok := interpreters[name]; ok {
		return in, true
	}
	switch name[0] {
	case 'p', 'r', 'l', 'n':
		if m := versioned.FindStringSubmatch(name); m != nil {
			if m[1] == "pypy" {
				m[1] = "python"
			}
			return interpreters[m[1]], true
		}
	}
	return interpreter{}, false
}

// filters says whether the code is run for every line of the input.
func filters(in interpreter, args []string) bool {
	return in.filter != "" && slices.ContainsFunc(args, func(arg string) bool {
		if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' {
			return false
		}
		letters := arg[1:]
		if end := strings.IndexAny(letters, in.code+in.valued); end >= 0 {
			letters = letters[:end] // what follows is code, or a value
		}
		return strings.ContainsAny(letters, in.filter)
	})
}

// program is an interpreter that reads its program from the input.
func (c *call) program() {
	if c.in.set {
		c.destroys(c.in.text)
		c.reportSource(c.in.taint, interpreterInput)
	}
}

// scriptFile is an interpreter with a file: one that this line got from elsewhere is code from elsewhere.
func (c *call) scriptFile(name string) {
	if content := c.j.file(name); content.set {
		c.destroys(content.text)
		if content.taint&(remote|decoded) != 0 {
			c.reportSource(content.taint, remoteCode)
		}
	}
}

var (
	starting = regexp.MustCompile("\\b(system|popen|exec\\w*|spawn\\w*|shell_exec|passthru|proc_open|shell-command|call-process|subprocess|check_output|check_call|unlink\\w*|rmtree|rm_rf|rmSync|rmdir\\w*|remove\\w*|eval|qx)\\b|%x[({\\[]|`")
	removes  = regexp.MustCompile(`\b(rmtree|rm_rf|rmSync|remove_entire_dir|rimraf|remove_dir_all|deltree)\b`)
	literals = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`\n]*)`|(?:\\bq[qwx]|%x)\\s*[({\\[]([^)}\\]]*)[)}\\]]")
)

// language judges code of another language that stands on the command line. A filter of lines is harmless as long as
// it starts nothing.
func (c *call) language(code string, filter bool) {
	c.destroys(code)
	if filter && c.taint&(remote|decoded) == 0 && !strings.Contains(code, unknown) && !starting.MatchString(code) {
		return
	}
	c.reportSource(c.taint, interpreterCode)
}

// destroys looks for commands in the strings of another language.
func (c *call) destroys(code string) {
	if len(code) > 64<<10 || !starting.MatchString(code) {
		return
	}
	recursive := removes.MatchString(code)
	var list []string // the words of ["rm", "-rf", "/"]
	end := -1
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
		switch between := code[max(end, 0):at[0]]; {
		case end < 0 || strings.Trim(between, ",[( \n\t+.") != "":
			c.listed(list)
			list = []string{text}
		case strings.ContainsAny(between, ",["):
			list = append(list, text)
		default: // put together from pieces
			list[len(list)-1] += text
			c.j.aside(list[len(list)-1])
		}
		end = at[1]
	}
	c.listed(list)
}

// listed judges a command that is given word by word.
func (c *call) listed(words []string) {
	if len(words) > 1 {
		c.j.aside(quoteAll(words))
	}
}
