package search

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The files with ignore rules, strongest first. Those of .gitignore and exclude apply within a repository only, and not in
// another one inside of it.
const (
	rgIgnore = iota
	plainIgnore
	gitIgnore
	gitExclude
	ignoreFiles
)

var ignoreNames = [ignoreFiles]string{".rgignore", ".ignore", ".gitignore", ".git/info/exclude"}

// level has the ignore rules of one directory; directories without any share that of their parent.
type level struct {
	parent *level
	dir    string
	rules  [ignoreFiles][]rule
	git    bool // a repository begins here
	inGit  bool
}

// rule is a line of an ignore file.
type rule struct {
	glob
	negate, dirOnly bool
}

// verdict is the result of the rules for a path.
type verdict int

const (
	undecided verdict = iota
	ignored
	wanted
)

// below returns the level of a directory with these entries.
func (l *level) below(dir string, names func(name string) bool) *level {
	n := &level{parent: l, dir: dir, git: names(".git")}
	n.inGit = n.git || l != nil && l.inGit
	any := n.git
	for kind, name := range ignoreNames {
		if kind == gitExclude && !n.git || kind != gitExclude && !names(name) {
			continue
		}
		n.rules[kind] = readRules(filepath.Join(dir, name))
		any = any || n.rules[kind] != nil
	}
	if !any {
		return l
	}
	return n
}

// maxRules bounds an ignore file, in bytes.
const maxRules = 1 << 20

func readRules(name string) []rule {
	data, err := readSmall(name, maxRules)
	if err != nil {
		return nil
	}
	var rules []rule
	for line := range strings.SplitSeq(string(data), "\n") {
		if r, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseRule(line string) (r rule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negate, line = true, line[1:]
	}
	if strings.HasPrefix(line, `\!`) || strings.HasPrefix(line, `\#`) {
		line = line[1:]
	}
	if rest, dir := strings.CutSuffix(line, "/"); dir {
		r.dirOnly, line = true, rest
	}
	if line == "" {
		return r, false
	}
	r.glob = newGlob(line)
	return r, true
}

// decide applies the rules, those of the nearest directory first.
func (l *level) decide(name string, dir bool) verdict {
	if l == nil {
		return undecided
	}
	for kind := range ignoreNames {
		git := kind == gitIgnore || kind == gitExclude
		if git && !l.inGit {
			continue
		}
		for at := l; at != nil; at = at.parent {
			if v := at.ask(kind, name, dir); v != undecided {
				return v
			}
			if git && at.git {
				break
			}
		}
	}
	return undecided
}

// ask applies one file of rules, whose last match counts.
func (l *level) ask(kind int, name string, dir bool) verdict {
	rules := l.rules[kind]
	if len(rules) == 0 {
		return undecided
	}
	inner := strings.TrimPrefix(name[len(l.dir):], "/")
	base := inner[strings.LastIndexByte(inner, '/')+1:]
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		if r.dirOnly && !dir || !r.matches(base, inner) {
			continue
		}
		if r.negate {
			return wanted
		}
		return ignored
	}
	return undecided
}

// glob is a pattern of paths. Without a slash inside, it matches names at any depth.
type glob struct {
	text   string
	how    byte // '=' equal, '.' suffix, '*' glob
	byPath bool
}

func newGlob(text string) glob {
	g := glob{how: '*'}
	rest, rooted := strings.CutPrefix(text, "/")
	g.byPath = rooted || strings.Contains(text, "/")
	if strings.HasSuffix(rest, "/**") {
		rest += "/*" // matches the entries, not the directory itself
	}
	g.text = rest
	const special = `*?[]{}\`
	switch {
	case !strings.ContainsAny(rest, special):
		g.how = '='
	case !g.byPath && rest[0] == '*' && !strings.ContainsAny(rest[1:], special):
		g.how, g.text = '.', rest[1:]
	}
	return g
}

func (g *glob) matches(base, inner string) bool {
	if g.byPath {
		base = inner
	}
	switch g.how {
	case '=':
		return base == g.text
	case '.':
		return strings.HasSuffix(base, g.text)
	}
	matched, err := doublestar.Match(g.text, base)
	return err == nil && matched
}

// above returns the level of dir's parent: the ignore files of the directories above count as well, up to the working directory
// if dir is in it, else up to the root of the repository.
func above(dir string) *level {
	cwd, err := os.Getwd()
	if err == nil {
		cwd, err = filepath.EvalSymlinks(cwd)
	}
	within := err == nil && (cwd == "/" || strings.HasPrefix(dir+"/", cwd+"/"))
	var dirs []string
	for at := dir; at != "/" && (!within || at != cwd); {
		at = filepath.Dir(at)
		dirs = append(dirs, at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil && !within {
			break
		}
	}
	var l *level
	for i := len(dirs) - 1; i >= 0; i-- {
		l = l.below(dirs[i], func(name string) bool {
			_, err := os.Lstat(filepath.Join(dirs[i], name))
			return err == nil
		})
	}
	return l
}
