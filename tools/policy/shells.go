package policy

import (
	"regexp"
	"slices"
	"strings"
)

// shell is a shell that is started: with code, with a script, or to read its input.
func (c *call) shell() stream {
	code, input := false, false
	rest := c.args
	for len(rest) > 0 && len(rest[0]) > 1 && (rest[0][0] == '-' || rest[0][0] == '+') {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			break
		}
		if strings.HasPrefix(arg, "--") {
			switch {
			case arg == "--rcfile" || arg == "--init-file":
				rest = rest[min(1, len(rest)):]
			case strings.HasPrefix(arg, "--command"): // fish
				if text, ok := strings.CutPrefix(arg, "--command="); ok {
					rest = append([]string{text}, rest...)
				}
				code = true
			case arg == "--version" || arg == "--help":
				return stream{text: unknown, set: true}
			}
			continue
		}
		for _, letter := range arg[1:] {
			switch letter {
			case 'c':
				code = true
			case 's':
				input = true
			case 'o', 'O':
				rest = rest[min(1, len(rest)):]
			}
		}
	}
	switch {
	case code && len(rest) > 0:
		out := c.j.scope(func() stream {
			zero := c.j.zero
			defer func() { c.j.zero = zero }()
			if c.j.params = rest[min(2, len(rest)):]; len(rest) > 1 {
				c.j.zero = rest[1]
			}
			return c.j.code(rest[0], c.in)
		})
		c.reportSource(c.taint, shellCode)
		return out
	case len(rest) > 0 && !input && !isStdin(rest[0]):
		c.script(rest[0], rest[1:])
		return stream{text: unknown, set: true}
	}
	if !input && len(rest) > 0 {
		rest = rest[1:]
	}
	params := c.j.params
	c.j.params = rest
	defer func() { c.j.params = params }()
	return c.piped()
}

func isStdin(name string) bool {
	return name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0"
}

// piped is a shell that reads commands from its input.
func (c *call) piped() stream {
	if !c.in.set {
		return stream{text: unknown, set: true, taint: c.in.taint}
	}
	return c.codeFrom(c.in, nil, true)
}

// codeFrom judges code that comes out of a stream. What is known of it counts, and where it comes from.
func (c *call) codeFrom(content stream, params []string, ask bool) stream {
	text := content.text
	if strings.HasPrefix(text, "#!") {
		line, _, _ := strings.Cut(text, "\n")
		if !strings.Contains(line, "sh") {
			text = ""
		}
	}
	out := stream{text: unknown, set: true, taint: content.taint}
	if strings.Trim(text, unknown+" \t\n") != "" {
		out = c.j.scope(func() stream {
			if params != nil {
				c.j.params = params
			}
			return c.j.code(text, stream{})
		})
	}
	switch {
	case ask:
		c.reportSource(content.taint, pipedCode)
	case content.taint != 0:
		c.reportSource(content.taint, remoteCode)
	}
	return out
}

// reportSource reports code by where it comes from, or else by the rule.
func (c *call) reportSource(from taint, otherwise string) {
	switch {
	case from&remote != 0:
		c.j.report(remoteCode)
	case from&decoded != 0:
		c.j.report(decodedCode)
	default:
		c.j.report(otherwise)
	}
}

func (c *call) eval(code string) stream {
	out := stream{text: unknown, set: true}
	if strings.Trim(code, unknown+" ") != "" {
		out = c.j.code(code, c.in)
	}
	switch {
	case c.taint&(remote|decoded) != 0:
		c.reportSource(c.taint, evalUnknown)
	case strings.Contains(code, unknown):
		c.j.report(evalUnknown)
	}
	return out
}

func (c *call) source() stream {
	if len(c.args) == 0 {
		return stream{}
	}
	if isStdin(c.args[0]) {
		return c.piped()
	}
	if content, ok := c.j.files[c.j.canonical(c.args[0])]; ok {
		var out stream
		if strings.Trim(content.text, unknown+" \n") != "" {
			out = c.j.code(content.text, c.in)
		}
		if content.taint != 0 {
			c.reportSource(content.taint, evalUnknown)
		} else if strings.Contains(content.text, unknown) {
			c.j.report(evalUnknown)
		}
		return out
	}
	return stream{text: unknown, set: true}
}

// interpreter is a program that runs another language.
type interpreter struct {
	code   string   // letters of the options that are followed by code
	long   []string // long ones
	valued string   // letters of options that take the next argument
	module string   // the letter that names a module
	filter string   // letters that make a line filter of the code
	stdin  bool     // without a file the program is read from the input
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
				c.language(text, in.filter != "" && hasFlag(c.args, in.filter))
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

// program is an interpreter that reads its program from the input.
func (c *call) program() {
	if c.in.set {
		c.destroys(c.in.text)
		c.reportSource(c.in.taint, interpreterInput)
	}
}

// scriptFile is an interpreter with a file: one that this line got from elsewhere is code from elsewhere.
func (c *call) scriptFile(name string) {
	if content, ok := c.j.files[c.j.canonical(name)]; ok {
		c.destroys(content.text)
		if content.taint != 0 {
			c.reportSource(content.taint, remoteCode)
		}
	}
}

var (
	starts   = regexp.MustCompile("\\b(system|popen|exec\\w*|spawn\\w*|subprocess|check_output|check_call|unlink\\w*|rmtree|rm_rf|rmSync|rmdir\\w*|remove\\w*|eval|qx)\\b|`")
	removes  = regexp.MustCompile(`\b(rmtree|rm_rf|rmSync|remove_entire_dir|rimraf|remove_dir_all|deltree)\b`)
	literals = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`\n]*)`")
)

// language judges code of another language that stands on the command line. A filter of lines is harmless as long as
// it starts nothing.
func (c *call) language(code string, filter bool) {
	c.destroys(code)
	if filter && c.taint&(remote|decoded) == 0 && !strings.Contains(code, unknown) && !starts.MatchString(code) {
		return
	}
	c.reportSource(c.taint, interpreterCode)
}

// destroys looks for commands in the strings of another language.
func (c *call) destroys(code string) {
	if len(code) > 16<<10 || !starts.MatchString(code) {
		return
	}
	recursive := removes.MatchString(code)
	for _, m := range literals.FindAllStringSubmatch(code, 32) {
		text := m[1] + m[2] + m[3]
		if recursive && c.j.isVital(c.j.canonical(text)) {
			c.j.report(deleteSystem)
		}
		c.j.aside(text)
	}
}
