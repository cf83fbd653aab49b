package setup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/run"
	"trajgen/sandbox"
)

// assignment is one of a file of keys: NAME=value, of which everything is as it stands, NAME='value', or NAME="value", in which \n
// is a new line and \ goes before ", $, ` and itself. Values in quotes may have several lines. Nothing is expanded, as keys have
// dollar signs in them: that is why no library reads these files.
var assignment = regexp.MustCompile(`(?m)^(?:\x{FEFF})?[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*(=)[ \t]*` +
	`(?:('[^']*'|"(?:[^"\\]|\\(?s:.))*")[ \t]*(?:#[^\r\n]*)?|([^\r\n]*))\r?$`)

// value is one of an assignment, which stands from one byte of the file to another, with the spaces before it.
type value struct {
	name, text string
	from, to   int
}

var (
	escaped  = regexp.MustCompile(`(?s)\\.`)
	escapes  = map[string]string{`\n`: "\n", `\r`: "\r", `\t`: "\t", `\"`: `"`, `\$`: `$`, "\\`": "`", `\\`: `\`}
	comment  = regexp.MustCompile(`(?:^|[ \t])#.*`)
	harmless = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)
)

func scan(file string) (all []value) {
	for _, at := range assignment.FindAllStringSubmatchIndex(file, -1) {
		v := value{name: file[at[2]:at[3]], from: at[5]}
		if begin, end := at[6], at[7]; begin >= 0 {
			v.to, v.text = end, file[begin+1:end-1]
			if file[begin] == '"' {
				v.text = escaped.ReplaceAllStringFunc(v.text, func(two string) string {
					if one, ok := escapes[two]; ok {
						return one
					}
					return two
				})
			}
		} else {
			v.text = strings.TrimRight(comment.ReplaceAllString(file[at[8]:at[9]], ""), " \t")
			v.to = at[8] + len(v.text)
		}
		all = append(all, v)
	}
	return all
}

// values are those of a file, by name. The last of a name counts.
func values(file string) map[string]string {
	all := map[string]string{}
	for _, v := range scan(file) {
		all[v.name] = v.text
	}
	return all
}

// quote writes a value as scan, and a shell, read it.
func quote(text string) string {
	switch {
	case harmless.MatchString(text):
		return text
	case !strings.Contains(text, "'"):
		return "'" + text + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// change sets values in the text of a file, and leaves everything else as it is.
func change(file string, set map[string]string) string {
	missing := maps.Clone(set)
	for _, v := range slices.Backward(scan(file)) {
		if text, ok := set[v.name]; ok {
			text = quote(text)
			if strings.HasPrefix(file[v.to:], "#") { // the value was empty
				text += " "
			}
			file = file[:v.from] + text + file[v.to:]
			delete(missing, v.name)
		}
	}
	if file != "" && !strings.HasSuffix(file, "\n") {
		file += "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		file += name + "=" + quote(missing[name]) + "\n"
	}
	return file
}

const maxFile = 1 << 20 // bytes

// read returns the text of a file of keys.
func read(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes: is it a file of keys?", path, maxFile)
	}
	return string(data), err
}

// Load sets the variables of a file of keys that the environment does not have, and has their values masked. It returns their
// names, and a warning about a file that others can read. Unless must is set, a file that is not there, or a directory in its
// place, is none.
func Load(path string, must bool) (names []string, warning string, err error) {
	about, err := os.Stat(path)
	if !must && (errors.Is(err, fs.ErrNotExist) || err == nil && !about.Mode().IsRegular()) {
		return nil, "", nil
	}
	text := ""
	if err == nil {
		text, err = read(path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read keys: %w", err)
	}
	values := values(text)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, given := os.LookupEnv(name); !given {
			if err := os.Setenv(name, values[name]); err != nil {
				return nil, "", fmt.Errorf("%s: %s: %w", path, name, err)
			}
			names = append(names, name)
		}
	}
	masked := slices.AppendSeq(strings.Split(os.Getenv(run.MaskVariable), ","), maps.Keys(values))
	if err := os.Setenv(run.MaskVariable, strings.Join(masked, ",")); err != nil {
		return nil, "", err
	}
	if about.Mode().IsRegular() && about.Mode()&0o077 != 0 {
		warning = fmt.Sprintf("%s has keys, and others can read it (mode %04o): chmod 600 %[1]s", path, about.Mode().Perm())
	}
	return names, warning, nil
}

// save writes values into a file of keys, which is there whole or not at all and which its owner alone can read.
func save(path string, set map[string]string) error {
	for name, text := range set {
		if !sandbox.IsVariable(name) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q: a variable has a name of letters, digits and _, and a value without zero bytes", name)
		}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // and the link stays
	}
	text, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed, want := change(text, set), values(text)
	maps.Copy(want, set)
	if !maps.Equal(values(changed), want) {
		return fmt.Errorf("%s has a quote that is not closed, so no value can follow it: close it", path)
	}
	return disk.WriteFile(disk.Private{}, path, disk.Bytes([]byte(changed)))
}
