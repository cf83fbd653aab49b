package policy

import (
	"path"
	"slices"
	"strings"
)

var fileRules = []rule{
	{
		id: "secret-upload", verdict: Ask, reason: "sends a file of keys or credentials away", names: "curl wget http scp nc ncat netcat rclone ssh ftp sftp rsync",
		match: func(c *call) bool {
			if rest := c.operands("efTBM"); c.name == "rsync" {
				return len(rest) > 1 && strings.Contains(rest[len(rest)-1], ":") && c.anyPath(rest[:len(rest)-1], isSecret)
			}
			if (c.taint|c.in.taint)&secret != 0 {
				return true
			}
			all := c.name == "scp" || c.name == "rclone" || c.has("-T", "--upload-file", "--data-binary", "--post-file")
			for i, arg := range c.args {
				if i > 0 && c.args[i-1] == "-i" {
					continue // the key to log in with
				}
				_, file, at := strings.Cut(arg, "@")
				if at && c.name != "scp" && isSecret(c.j.canonical(file)) {
					return true
				}
				if _, file, ok := strings.Cut(arg, "--post-file="); ok && isSecret(c.j.canonical(file)) {
					return true
				}
				if all && isSecret(c.j.canonical(arg)) {
					return true
				}
			}
			return false
		},
	},
}

// destinations are the files that a command writes to.
func (c *call) destinations() []string {
	switch c.name {
	case "tee":
		return c.operands("")
	case "dd":
		var all []string
		for _, arg := range c.args {
			if name, ok := strings.CutPrefix(arg, "of="); ok {
				all = append(all, name)
			}
		}
		return all
	case "sed", "gsed":
		if c.flag("i", "in-place") {
			rest := c.operands("ef")
			if !c.flag("ef", "expression", "file") && len(rest) > 0 {
				rest = rest[1:]
			}
			return rest
		}
		return nil
	case "perl", "ruby":
		for _, arg := range c.args {
			if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, "i") && !strings.HasPrefix(arg, "-I") {
				return c.operands("eEIMm")
			}
		}
		return nil
	case "tar", "unzip", "cpio": // where to unpack
		option := map[string]string{"tar": "-C", "unzip": "-d", "cpio": "-D"}[c.name]
		if i := slices.Index(c.args, option); i >= 0 && i+1 < len(c.args) && (c.name != "tar" || c.flag("x", "extract", "get") || !strings.HasPrefix(c.args[0], "-") && strings.Contains(c.args[0], "x")) {
			return c.args[i+1 : i+2]
		}
		return nil
	case "truncate", "ed":
		return c.operands("sr")
	case "cp", "mv", "install", "ln", "rsync":
		for i, arg := range c.args {
			if dir, ok := strings.CutPrefix(arg, "--target-directory="); ok {
				return c.into(dir, c.operands("t"))
			}
			if (arg == "-t" || arg == "--target-directory") && c.name != "rsync" && i+1 < len(c.args) {
				return c.into(c.args[i+1], c.operands("t"))
			}
		}
		valued := map[string]string{"cp": "S", "mv": "S", "install": "gmoS", "ln": "S", "rsync": "efT"}[c.name]
		rest := c.operands(valued)
		if len(rest) < 2 {
			return nil
		}
		return c.into(rest[len(rest)-1], rest[:len(rest)-1])
	}
	return nil
}

// into adds the files that come to lie in a directory, as the destination may be one.
func (c *call) into(destination string, sources []string) []string {
	all := []string{destination}
	if strings.HasSuffix(destination, "/") || destination == "." || destination == "~" || len(sources) > 1 {
		for _, source := range sources {
			all = append(all, path.Join(destination, path.Base(source)))
		}
	}
	return all
}

// writesTo judges a redirection, or another way to write to a file.
func (j *judge) writesTo(name string) {
	target := j.behind(j.canonical(name), true)
	switch {
	case !strings.HasPrefix(target, "/"):
		if isSensitive(target) {
			j.report(writeSensitive)
		}
	case isDisk(target):
		j.report(writeDisk)
	case target == "/proc/sysrq-trigger":
		j.report(writePower)
	case isSystemConfig(target):
		j.report(writeSystem)
	case isSensitive(target):
		j.report(writeSensitive)
	}
}

var diskNames = []string{"sd", "nvme", "hd", "mmcblk", "vd", "xvd", "disk", "rdisk", "dm-", "md", "nbd"}

// isDisk says whether a path is a disk, and not a file on one.
func isDisk(name string) bool {
	rest, ok := strings.CutPrefix(name, "/dev/")
	if !ok {
		return false
	}
	if strings.HasPrefix(rest, "disk/") || strings.HasPrefix(rest, "mapper/") || strings.HasPrefix(rest, "block/") {
		return true
	}
	if rest == "mem" || rest == "kmem" || rest == "port" {
		return true
	}
	return slices.ContainsFunc(diskNames, func(prefix string) bool {
		tail, ok := strings.CutPrefix(rest, prefix)
		return ok && tail != "" && len(tail) < 12 && !strings.Contains(tail, "/")
	}) || strings.ContainsAny(rest, "*?[") && slices.ContainsFunc([]string{"sda", "nvme0n1", "vda"}, func(disk string) bool { return glob(rest, disk) })
}

func isSystemConfig(name string) bool {
	if strings.ContainsAny(name, "*?[") {
		// What the top directory may be.
		top, rest, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		for _, dir := range []string{"etc", "boot", "sys", "bin", "sbin", "lib"} {
			if top != "*" && glob(top, dir) && strings.HasPrefix(name, "/") && rest != "" {
				return true
			}
		}
	}
	for _, dir := range []string{"/etc", "/boot", "/proc/sys", "/sys", "/usr/lib/systemd", "/lib/systemd", "/private/etc", "/usr/bin", "/usr/sbin", "/bin", "/sbin", "/lib", "/usr/lib"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// startFiles are the files of a home directory that shells and tools read when they start.
var startFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout",
	".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".bash_history", ".zsh_history", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".my.cnf", ".git-credentials", ".vimrc",
}

// isSensitive says whether who writes a file can get at keys, change how programs start, or replace settings.
func isSensitive(name string) bool {
	base := path.Base(name)
	if slices.Contains(startFiles, base) || isSecret(name) {
		return true
	}
	if strings.Contains(name, "/.hermes/") || strings.Contains(name, "/.trajgen/") || strings.Contains(name, "/.config/fish/") || strings.Contains(name, "/.git/hooks/") {
		return true
	}
	return base == "config.yaml" || isDotEnv(base)
}

// isSecret says whether a file holds keys or credentials.
func isSecret(name string) bool {
	if slices.Contains([]string{".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"}, path.Base(name)) || isDotEnv(path.Base(name)) {
		return true
	}
	for _, dir := range []string{".ssh", ".gnupg", ".aws", ".kube"} {
		if strings.Contains(name, "/"+dir+"/") || strings.HasPrefix(name, dir+"/") || path.Base(name) == dir {
			return true
		}
	}
	return name == "/etc/shadow" || name == "/etc/gshadow"
}

// isDotEnv says whether a file is a project's .env, and not a copy or a pattern for one.
func isDotEnv(base string) bool {
	if base == ".env" || base == ".envrc" {
		return true
	}
	tail, ok := strings.CutPrefix(base, ".env.")
	return ok && !slices.Contains([]string{"bak", "backup", "old", "orig", "example", "sample", "template", "dist", "save", "tmpl"}, tail)
}
