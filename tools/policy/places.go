package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// The kinds of files that rules name, by canonical path. They are methods so that rules can refer to all of them in the same
// way.

// vital are the top-level directories that the machine needs.
var vital = []string{
	"home", "root", "etc", "usr", "var", "bin", "sbin", "boot", "lib", "lib32", "lib64", "libx32", "dev", "proc", "sys", "run",
	"Users", "System", "Library", "Applications", "private",
}

// everything matches a path element that expands to all entries of a directory.
var everything = regexp.MustCompile(`^([*?.]|\[[!^]?\.?\])*\*([*?.]|\[[!^]?\.?\])*$`)

// isVital reports whether removing a file removes the system or a user's files.
func (j *judge) isVital(name string) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}
	for name != "/" && everything.MatchString(path.Base(name)) {
		name = path.Dir(name)
	}
	home := j.home()
	if name == "/" || (name == home || strings.HasPrefix(home, name+"/")) && home != j.ctx.Dir {
		return true
	}
	return slices.ContainsFunc(vital, func(dir string) bool { return glob(name[1:], dir) })
}

// glob reports whether a pattern without slashes matches a name.
func glob(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == name
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok && err == nil
}

var disk = regexp.MustCompile(`^/dev/((disk|mapper|block)/.*|k?mem|port|(sd|nvme|hd|mmcblk|x?vd|r?disk|dm-|md|nbd)[^/]{1,11})$`)

// isDisk reports whether a file is a disk device.
func (j *judge) isDisk(name string) bool {
	return disk.MatchString(name) || strings.HasPrefix(name, "/dev/") && slices.ContainsFunc([]string{"sda", "nvme0n1", "vda"}, func(disk string) bool {
		return glob(name[len("/dev/"):], disk)
	})
}

func (j *judge) isNull(name string) bool { return name == "/dev/null" }

var systemConfig = regexp.MustCompile(`^/(etc|boot|proc/sys|sys|private/etc|s?bin|lib|usr/(lib|s?bin))(/|$)`)

func (j *judge) isSystemConfig(name string) bool {
	top, rest, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return systemConfig.MatchString(name) || top != "*" && strings.HasPrefix(name, "/") && rest != "" &&
		slices.ContainsFunc([]string{"etc", "boot", "sys", "bin", "sbin", "lib"}, func(dir string) bool { return glob(top, dir) })
}

var (
	// secretFiles matches files with keys or credentials, but not templates of an .env.
	secretFiles = regexp.MustCompile(`(^|/)(\.(ssh|gnupg|aws|kube)(/.*)?|\.(netrc|pgpass|npmrc|pypirc|git-credentials|env|envrc|env\.[^/]*))$|^/etc/g?shadow$`)
	envCopies   = regexp.MustCompile(`/?\.env\.(bak|backup|old|orig|example|sample|template|dist|save|tmpl)$`)
	// startFiles matches files that shells and tools read at start.
	startFiles = regexp.MustCompile(`(^|/)(\.(bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zprofile|zshenv|zlogin|zlogout|kshrc|cshrc|tcshrc|login|` +
		`inputrc|bash_history|zsh_history|my\.cnf|vimrc)|config\.yaml)$|/\.(hermes|trajgen|config/fish|git/hooks)/`)
)

// isSecret reports whether a file holds keys or credentials.
func (j *judge) isSecret(name string) bool {
	return secretFiles.MatchString(name) && !envCopies.MatchString(name)
}

// isSensitive reports whether writing a file can expose keys, change how programs start, or replace settings.
func (j *judge) isSensitive(name string) bool {
	return startFiles.MatchString(name) || j.isSecret(name)
}
