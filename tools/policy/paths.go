package policy

import (
	"path"
	"regexp"
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
	case name == "" || strings.HasPrefix(name, unknown):
		return name
	case name[0] != '/':
		name = path.Join(j.directory(), name)
	}
	name = path.Clean(name)
	for ownRoot.MatchString(name) {
		name = path.Clean("/" + ownRoot.ReplaceAllString(name, ""))
	}
	return j.behind(name, false)
}

// ownRoot is the way to the root through a process's own view of the file system.
var ownRoot = regexp.MustCompile(`^/proc/[^/]+/root(/|$)`)

// behind follows the links that this line made: those on the way to a file, and the file itself if last is set.
func (j *judge) behind(name string, last bool) string {
	for range min(len(j.links), 4) {
		before := name
		for _, link := range j.links {
			if rest, ok := strings.CutPrefix(name, link[0]); ok && (rest == "" && last || strings.HasPrefix(rest, "/")) {
				name = path.Join(link[1], rest)
			}
		}
		if name == before {
			break
		}
	}
	return name
}

// link notes another name of a file.
func (j *judge) link(from, to string) {
	if len(j.links) < maxTurns {
		j.links = append(j.links, [2]string{j.canonical(to), j.canonical(from)})
	}
}

// homeOf is what ~user stands for.
func (j *judge) homeOf(user string) string {
	switch user {
	case "root":
		return "/root"
	case "+":
		return j.directory()
	}
	return "/home/" + user
}

// unknownHome is the home directory when none is known.
const unknownHome = "/home/\x01"

func (j *judge) home() string {
	if strings.HasPrefix(j.ctx.Home, "/") {
		return path.Clean(j.ctx.Home)
	}
	return unknownHome
}
