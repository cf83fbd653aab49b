package scripted

import (
	"bytes"
	"cmp"
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
	case ok && tools["terminal"]:
		return call{name: "terminal", args: literal(c)}, true
	case ok && tools["execute_code"] && !c.Background:
		return call{name: "execute_code", args: literal(map[string]string{"code": c.python()})}, true
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

// arguments are those of all tools for which a command can stand.
type arguments struct {
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

// command says in shell what a call does; false for calls without a command in shell, such as todo and process.
func command(g episode.GoldCall) (shell, bool) {
	var a arguments
	if json.Unmarshal(g.Arguments, &a) != nil {
		return shell{}, false
	}
	text := ""
	switch {
	case g.Name == "terminal":
		return a.shell, a.Command != ""
	case g.Name == "read_file" && a.Path != "":
		text = "cat -n -- " + pathWord(a.Path)
		if a.Offset > 1 || a.Limit > 0 {
			first, last := max(a.Offset, 1), "$"
			if a.Limit > 0 {
				last = strconv.Itoa(first + a.Limit - 1)
			}
			text += fmt.Sprintf(" | sed -n '%d,%sp'", first, last)
		}
	case g.Name == "write_file" && a.Path != "":
		text = writeCommand(a.Path, a.Content)
	case g.Name == "patch" && (a.Mode == "patch" || a.Patch != "" && a.Old == ""):
		text = pythonCommand("patch = " + literal(a.Patch) + "\n" + v4aProgram)
	case g.Name == "patch" && a.Path != "" && a.Old != "":
		all := map[bool]string{false: "False", true: "True"}[a.ReplaceAll]
		values := fmt.Sprintf("path = %s\nold = %s\nnew = %s\nall = %s\n", literal(a.Path), literal(a.Old), literal(a.New), all)
		text = pythonCommand(values + replaceProgram)
	case g.Name == "search_files" && (a.Target == "files" || a.Pattern != ""):
		text = a.search()
	case g.Name == "execute_code" && a.Code != "" && !strings.Contains(a.Code, "trajgen_tools"): // which leads back to the tools
		text = pythonCommand(a.Code)
	}
	return shell{Command: text}, text != ""
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

// search has the matches in the order of paths and lines; find and grep -r go as the directory lies on disk.
func (a *arguments) search() string {
	where, order, limit := pathWord(cmp.Or(a.Path, ".")), " | LC_ALL=C sort", ""
	if a.Limit > 0 {
		limit = " | head -n " + strconv.Itoa(a.Limit)
	}
	if a.Target == "files" {
		test := ""
		switch {
		case strings.Contains(a.Pattern, "/"):
			test = " -path " + quote("*"+strings.TrimPrefix(a.Pattern, "*"))
		case a.Pattern != "" && a.Pattern != "*":
			test = " -name " + quote(a.Pattern)
		}
		return "find " + where + " -type f" + test + " -not -path '*/.?*'" + order + limit
	}
	what := "-E"
	for _, perl := range []string{`\d`, `\D`, "(?", "*?", "+?", `\t`, `\x`, `\pL`} {
		if strings.Contains(a.Pattern, perl) {
			what = "-P"
		}
	}
	include, pattern := "", " -e "+quote(a.Pattern)+" --"
	if a.FileGlob != "" {
		include = " --include=" + quote(a.FileGlob)
	}
	// ".?*" and not ".*", which would leave out the working directory itself.
	common := " " + what + include + " --exclude-dir='.?*'" + pattern + " " + where
	switch {
	case a.OutputMode == "files_only":
		return "grep -rIl" + common + order + limit
	case a.OutputMode == "count":
		return "grep -rIHc" + common + " | grep -v ':0$'" + order + limit
	case a.Context > 0:
		return "grep -rIlZ" + common + order + " -z | xargs -0 -r grep -Hn -C " + strconv.Itoa(a.Context) + " " + what + pattern + limit
	}
	return "grep -rIHn" + common + order + " -t: -k1,1 -k2,2n" + limit
}

// quote makes one shell word of a text.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// literal is a value as JSON, and of a text thereby also as Python: no HTML escapes, no surrogate pairs.
func literal(value any) string { return string(episode.MustJSON(value)) }

// compact is a gold's arguments as a model would write them: an object in one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return "{}"
	}
	return b.String()
}
