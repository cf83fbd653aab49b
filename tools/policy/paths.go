package policy

import (
	"path"
	"slices"
	"strings"
)

// directory is where relative paths begin; "" is unknown.
func (j *judge) directory() string {
	v, _ := j.get("PWD")
	if len(v.words) == 0 || strings.Contains(v.words[0], unknown) {
		return ""
	}
	return v.words[0]
}

// canonical is the path that the system would find, as far as the text tells. A path from an unknown directory stays
// relative.
func (j *judge) canonical(name string) string {
	switch {
	case name == "":
		return ""
	case name[0] == '~':
		user, rest, _ := strings.Cut(name[1:], "/")
		switch user {
		case "":
			name = j.home() + "/" + rest
		case "root":
			name = "/root/" + rest
		case "+":
			name = j.directory() + "/" + rest
		default:
			name = "/home/" + user + "/" + rest
		}
	case name[0] != '/':
		if strings.HasPrefix(name, unknown) {
			return name
		}
		name = path.Join(j.directory(), name)
	}
	name = path.Clean(name)
	// A process's own view of the file system.
	for strings.HasPrefix(name, "/proc/") {
		parts := strings.SplitN(name, "/", 5)
		if len(parts) < 4 || parts[3] != "root" {
			break
		}
		name = "/" + strings.Join(parts[4:], "/")
	}
	return j.behind(name, false)
}

// vital are the directories at the top without which a machine is lost.
var vital = []string{
	"home", "root", "etc", "usr", "var", "bin", "sbin", "boot", "lib", "lib32", "lib64", "libx32", "dev", "proc", "sys", "run",
	"Users", "System", "Library", "Applications", "private",
}

// isVital says whether removing a canonical path removes the system or a person's files.
func (j *judge) isVital(name string) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}
	for name != "/" && matchesAll(path.Base(name)) {
		name = path.Dir(name)
	}
	if name == "/" {
		return true
	}
	home := j.home()
	if (name == home || strings.HasPrefix(home, name+"/")) && home != j.ctx.Dir {
		return true
	}
	top := name[1:]
	if strings.Contains(top, "/") {
		return false
	}
	return slices.ContainsFunc(vital, func(dir string) bool { return glob(top, dir) })
}

// matchesAll says whether a path element stands for everything in a directory.
func matchesAll(element string) bool {
	if !strings.Contains(element, "*") {
		return false
	}
	for _, part := range []string{"[!.]", "[^.]", "*", "?", "."} {
		element = strings.ReplaceAll(element, part, "")
	}
	return element == ""
}

// glob says whether a pattern without slashes matches a name.
func glob(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == name
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok && err == nil
}

// somebody is the home directory when none is known.
const somebody = "/home/\x01"

func (j *judge) home() string {
	if strings.HasPrefix(j.ctx.Home, "/") {
		return path.Clean(j.ctx.Home)
	}
	return somebody
}
