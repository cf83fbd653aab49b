package suspects

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// startups are read by every program, or by shells.
var startups = []string{"/etc/ld.so.preload", "/etc/environment", "/etc/profile", "/etc/profile.d/*", "/etc/bash.bashrc", "/etc/bashrc"}

// pythons are the places where installations of Python are, beside those of PATH.
var pythons = []string{"/usr", "/usr/local", "/opt/*", "/opt/*/envs/*"}

// find looks everywhere.
func (l *look) find() {
	for dir := l.Workdir; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		l.report(filepath.Join(filepath.Dir(dir), conftest))
	}
	l.walk(l.Workdir, l.Workdir)
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dirs[i] = filepath.Join(l.Workdir, dir)
		}
	}
	l.shadows(dirs)
	if !l.System {
		return
	}
	for _, pattern := range startups {
		l.glob(pattern)
	}
	roots := slices.Clone(pythons)
	for _, dir := range dirs {
		roots = append(roots, filepath.Dir(dir))
	}
	for _, root := range roots {
		l.glob(root + "/lib/python*/*customize*")
		for _, site := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(root + "/lib/python*/" + site)
			for _, dir := range found {
				l.site(dir)
			}
		}
	}
}

const conftest = "conftest.py"

// customize are the names of what Python imports as it starts.
var customize = regexp.MustCompile(`^(site|user)customize(\..*)?$`)

// site looks at a directory of installed modules.
func (l *look) site(dir string) {
	entries, _ := os.ReadDir(dir) // one that cannot be read has nothing for a verifier either
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if customize.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".pth") && runs(path) {
			l.report(path)
		}
	}
}

// runs reports whether a .pth file has a line of code. Its other lines only name directories.
func runs(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if info.Size() > mostData {
		return true
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("import ")) || bytes.HasPrefix(line, []byte("import\t")) {
			return true
		}
	}
	return false
}

// elsewhere are directories of the system. Where the working directory is the root, a walk leaves them out.
var elsewhere = strings.Fields("/bin /boot /dev /lib /lib64 /proc /run /sbin /sys /usr /var")

// walk looks at a directory, which is real without its links, and at all below it, as pytest does: through links, too.
func (l *look) walk(dir, real string) {
	if l.seen[real] || slices.Contains(elsewhere, real) {
		return
	}
	l.seen[real] = true
	if base := filepath.Base(dir); base == "site-packages" || base == "dist-packages" {
		l.site(dir)
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.Name() == conftest:
			l.report(path)
		case entry.IsDir() && entry.Name() != ".git":
			l.walk(path, filepath.Join(real, entry.Name()))
		case entry.Type()&fs.ModeSymlink != 0:
			l.follow(path)
		}
	}
}

// follow walks through a link to a directory, unless it leads to the working directory, or above it.
func (l *look) follow(link string) {
	info, err := os.Stat(link)
	if err != nil || !info.IsDir() {
		return
	}
	if real, err := filepath.EvalSymlinks(link); err == nil && !within(l.Workdir, real) {
		l.walk(link, real)
	}
}

func within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// shadows looks for programs in directories of the agent that are found before others of the same name.
func (l *look) shadows(dirs []string) {
	for i, dir := range dirs {
		if !slices.ContainsFunc(l.Own, func(own string) bool { return own != "/" && within(dir, own) }) {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if slices.ContainsFunc(dirs[i+1:], func(later string) bool {
				_, err := os.Stat(filepath.Join(later, entry.Name()))
				return err == nil && later != dir
			}) {
				l.report(filepath.Join(dir, entry.Name()))
			}
		}
	}
}
