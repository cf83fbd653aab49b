package policy

import (
	"path"
	"regexp"
	"strings"
)

// directory is the base of relative paths; "" is unknown.
func (j *judge) directory() string {
	v, _ := j.get("PWD")
	if len(v.words) == 0 || strings.Contains(v.words[0], unknown) {
		return ""
	}
	return v.words[0]
}

// canonical returns the path that the system would find, as far as it is known. A path from an unknown directory stays
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

// ownRoot matches paths to the root through /proc/PID/root.
var ownRoot = regexp.MustCompile(`^/proc/[^/]+/root(/|$)`)

// behind follows links that this line made: in the directories of a path, and the file itself if last is set.
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

// link records another name of a file.
func (j *judge) link(from, to string) {
	if len(j.links) < maxTurns {
		j.links = append(j.links, [2]string{j.canonical(to), j.canonical(from)})
	}
}

// homeOf returns the directory for ~user.
func (j *judge) homeOf(user string) string {
	switch user {
	case "root":
		return "/root"
	case "+":
		return j.directory()
	}
	return "/home/" + user
}

// unknownHome is the home directory when it is not known.
const unknownHome = "/home/\x01"

func (j *judge) home() string {
	if strings.HasPrefix(j.ctx.Home, "/") {
		return path.Clean(j.ctx.Home)
	}
	return unknownHome
}
