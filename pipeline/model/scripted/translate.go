package scripted

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// translate turns a reference solution into turns that use only the tools at hand. A file tool or a script that was
// not offered becomes a command of the terminal; a call for which nothing can be done is left out, and with its last
// call a step goes as well: as a message without calls it would end the episode. Its text moves to the next turn.
func translate(gold []episode.Step, tools map[string]bool) []turn {
	var turns []turn
	carried := ""
	for _, step := range gold {
		t := turn{content: step.Content, reasoning: step.Reasoning}
		for _, g := range step.Calls {
			if c, ok := translateCall(g, tools); ok {
				c.looks = g.Name == "read_file" || g.Name == "search_files"
				t.calls = append(t.calls, c)
			}
		}
		if len(step.Calls) > 0 && len(t.calls) == 0 {
			carried = join(carried, step.Content)
			continue
		}
		if len(t.calls) > 0 { // an answer stays as it is: it is judged
			t.content = join(carried, t.content)
			carried = ""
		}
		turns = append(turns, t)
	}
	return turns
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func translateCall(g episode.GoldCall, tools map[string]bool) (call, bool) {
	if tools[g.Name] {
		return call{name: g.Name, args: compact(g.Arguments)}, true
	}
	c, ok := command(g)
	switch {
	case !ok:
		return call{}, false
	case tools["terminal"]:
		return newCall("terminal", c), true
	case tools["execute_code"] && !c.Background:
		return newCall("execute_code", struct {
			Code string `json:"code"`
		}{c.python()}), true
	}
	return call{}, false
}

// The patch tool's modes as programs of Python, behind lines that set their variables.
var (
	//go:embed replace.py
	replaceProgram string // path, old, new, all
	//go:embed v4a.py
	v4aProgram string // patch
)

// shell are the arguments of the terminal tool.
type shell struct {
	Command    string  `json:"command"`
	Timeout    float64 `json:"timeout,omitempty"`
	Workdir    string  `json:"workdir,omitempty"`
	Background bool    `json:"background,omitempty"`
}

// python runs the command from a script, for episodes that have only execute_code.
func (c shell) python() string {
	var options string
	if c.Workdir != "" {
		options += ", cwd=" + literal(c.Workdir)
	}
	if c.Timeout > 0 {
		options += ", timeout=" + strconv.FormatFloat(c.Timeout, 'g', -1, 64)
	}
	return "import subprocess, sys\n\n" +
		"command = " + literal(c.Command) + "\n" +
		"run = subprocess.run([\"bash\", \"-c\", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,\n" +
		"                     stderr=subprocess.STDOUT" + options + ")\n" +
		"sys.stdout.buffer.write(run.stdout)\n" + // as bytes: they need not be text
		"if run.returncode:\n    print(\"exit code\", run.returncode)\n"
}

// command says in shell what a call does; false when it cannot be said.
func command(g episode.GoldCall) (shell, bool) {
	var a struct {
		shell
		Path       string `json:"path"`
		Offset     int    `json:"offset"`
		Limit      int    `json:"limit"`
		Content    string `json:"content"`
		Mode       string `json:"mode"`
		Old        string `json:"old_string"`
		New        string `json:"new_string"`
		ReplaceAll bool   `json:"replace_all"`
		Patch      string `json:"patch"`
		Code       string `json:"code"`
		Pattern    string `json:"pattern"`
		Target     string `json:"target"`
		FileGlob   string `json:"file_glob"`
		OutputMode string `json:"output_mode"`
		Context    int    `json:"context"`
	}
	if json.Unmarshal(g.Arguments, &a) != nil {
		return shell{}, false
	}
	switch g.Name {
	case "terminal":
		return a.shell, a.Command != ""
	case "read_file":
		text := "cat -n -- " + pathWord(a.Path)
		if a.Offset > 1 || a.Limit > 0 {
			first, last := max(a.Offset, 1), "$"
			if a.Limit > 0 {
				last = strconv.Itoa(first + a.Limit - 1)
			}
			text += fmt.Sprintf(" | sed -n '%d,%sp'", first, last)
		}
		return shell{Command: text}, a.Path != ""
	case "write_file":
		return shell{Command: writeCommand(a.Path, a.Content)}, a.Path != ""
	case "patch":
		if a.Mode == "patch" || a.Patch != "" && a.Old == "" {
			return shell{Command: pythonCommand("patch = " + literal(a.Patch) + "\n" + v4aProgram)}, true
		}
		all := "False"
		if a.ReplaceAll {
			all = "True"
		}
		values := fmt.Sprintf("path = %s\nold = %s\nnew = %s\nall = %s\n", literal(a.Path), literal(a.Old), literal(a.New), all)
		return shell{Command: pythonCommand(values + replaceProgram)}, a.Path != "" && a.Old != ""
	case "search_files":
		if a.Target == "files" {
			return shell{Command: findCommand(a.Path, a.Pattern, a.Limit)}, true
		}
		return shell{Command: grepCommand(a.Path, a.Pattern, a.FileGlob, a.OutputMode, a.Context, a.Limit)}, a.Pattern != ""
	case "execute_code":
		// A script that calls back into the tools cannot leave them behind.
		return shell{Command: pythonCommand(a.Code)}, a.Code != "" && !strings.Contains(a.Code, "trajgen_tools")
	}
	return shell{}, false // todo, process and what else has no counterpart
}

// pathWord quotes a path but leaves a leading ~/ to the shell, as the file tools understand it too.
func pathWord(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return "~/" + quote(rest)
	}
	return quote(p)
}

// writeCommand writes exactly content: a here-document as long as it is whole lines of text, else what is needed.
func writeCommand(p, content string) string {
	prefix := ""
	if dir := path.Dir(p); dir != "." && dir != "/" && dir != "~" {
		prefix = "mkdir -p -- " + pathWord(dir) + " && "
	}
	target := " > " + pathWord(p)
	switch {
	case content == "":
		return prefix + ":" + target
	case strings.ContainsRune(content, 0): // neither an argument nor a here-document can carry it
		return prefix + "base64 -d" + target + hereDoc(base64.StdEncoding.EncodeToString([]byte(content))+"\n")
	case !strings.HasSuffix(content, "\n"):
		return prefix + "printf %s '" + strings.ReplaceAll(content, "'", `'\''`) + "'" + target
	}
	return prefix + "cat" + target + hereDoc(content)
}

func pythonCommand(script string) string {
	if !strings.HasSuffix(script, "\n") {
		script += "\n"
	}
	return "python3 -" + hereDoc(script)
}

// hereDoc feeds whole lines to a command, under a delimiter that is none of them.
func hereDoc(lines string) string {
	delimiter := "EOF"
	for n := 2; strings.Contains("\n"+lines, "\n"+delimiter+"\n"); n++ {
		delimiter = "EOF" + strconv.Itoa(n)
	}
	return " <<'" + delimiter + "'\n" + lines + delimiter + "\n"
}

// grepCommand has the matches in the order of paths and lines; grep -r itself goes as the directory lies on disk.
func grepCommand(where, pattern, glob, mode string, context, limit int) string {
	dialect := "-E"
	for _, perl := range []string{`\d`, `\D`, "(?", "*?", "+?", `\t`, `\x`, `\pL`} {
		if strings.Contains(pattern, perl) {
			dialect = "-P"
		}
	}
	options := ""
	if glob != "" {
		options = " --include=" + quote(glob)
	}
	if where == "" {
		where = "."
	}
	// ".?*" and not ".*", which would leave out the working directory itself.
	common := dialect + options + " --exclude-dir='.?*' -e " + quote(pattern) + " -- " + pathWord(where)
	order := " | LC_ALL=C sort -t: -k1,1 -k2,2n"
	switch {
	case mode == "files_only":
		common, order = "grep -rIl "+common, " | LC_ALL=C sort"
	case mode == "count":
		common, order = "grep -rIHc "+common, " | grep -v ':0$' | LC_ALL=C sort"
	case context > 0:
		files := "grep -rIlZ " + common + " | LC_ALL=C sort -z"
		common, order = files+" | xargs -0 -r grep -Hn -C "+strconv.Itoa(context)+" "+dialect+" -e "+quote(pattern)+" --", ""
	default:
		common = "grep -rIHn " + common
	}
	return common + order + head(limit)
}

func findCommand(where, glob string, limit int) string {
	if where == "" {
		where = "."
	}
	test := ""
	if glob != "" && glob != "*" {
		test = " -name " + quote(glob)
		if strings.Contains(glob, "/") {
			test = " -path " + quote("*"+strings.TrimPrefix(glob, "*"))
		}
	}
	return "find " + pathWord(where) + " -type f" + test + " -not -path '*/.?*' | LC_ALL=C sort" + head(limit)
}

func head(limit int) string {
	if limit <= 0 {
		return ""
	}
	return " | head -n " + strconv.Itoa(limit)
}

// newCall makes a call of our own arguments.
func newCall(name string, args any) call {
	return call{name: name, args: literal(args)}
}

// literal is a value as JSON, and of a text thereby also as Python: no HTML escapes, no surrogate pairs.
func literal(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // our own structs of texts and numbers
	}
	return strings.TrimRight(b.String(), "\n")
}

// compact is a gold's arguments as a model would write them: an object in one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return "{}"
	}
	return b.String()
}
