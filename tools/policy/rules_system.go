package policy

import (
	"slices"
	"strings"
)

var deletionRules = []rule{
	{
		id: "rm-system", verdict: Block, reason: "removes the system, or everything in a home directory", names: "rm unlink shred srm trash rmdir rimraf",
		match: func(c *call) bool { return c.anyPath(c.operands("n"), c.j.isVital) },
	},
	{
		// Whether the variable is empty only the shell knows, and somebody who is asked may know, too.
		id: "rm-unset", verdict: Ask, names: "rm srm rimraf", match: removesUnset,
		reason: "removes everything from the root on if the variable is empty; write ${NAME:?} so that the shell stops then",
	},
	{
		id: "rm-recursive", verdict: Ask, reason: "removes whole directories; name the files, or let somebody agree", names: "rm srm rimraf",
		match: func(c *call) bool { return c.name == "rimraf" || c.flag("rR", "recursive") },
	},
	{
		id: "rm-absolute", verdict: Ask, reason: "removes by an absolute path; use one that is relative to the working directory", names: "rm unlink srm",
		match: func(c *call) bool {
			for _, name := range c.operands("") {
				if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.HasPrefix(c.j.canonical(name), "/proc/") {
					return true
				}
			}
			return false
		},
	},
	{
		id: "shred", verdict: Ask, reason: "destroys what files hold beyond recovery", names: "shred wipe",
		match: func(c *call) bool { return !c.asksForHelp() },
	},
	{
		id: "move-system", verdict: Block, reason: "moves the system, or a home directory, away", names: "mv",
		match: func(c *call) bool {
			rest := c.operands("tS")
			return len(rest) > 0 && c.anyPath(rest[:max(len(rest)-1, 1)], c.j.isVital)
		},
	},
	{
		id: "truncate", verdict: Ask, reason: "empties files", names: "truncate",
		match: func(c *call) bool {
			for i, arg := range c.args {
				size, long := strings.CutPrefix(arg, "--size=")
				switch {
				case long:
				case (arg == "-s" || arg == "-cs" || arg == "-os" || arg == "--size") && i+1 < len(c.args):
					size = c.args[i+1]
				case strings.HasPrefix(arg, "-s"):
					size = arg[2:]
				default:
					continue
				}
				if strings.Trim(size, "0") == "" || strings.ContainsAny(size[:1], "-</%"+unknown) {
					return true
				}
			}
			return false
		},
	},
	{
		id: "rsync-system", verdict: Block, reason: "removes the system, or everything in a home directory", names: "rsync",
		match: func(c *call) bool {
			rest := c.operands("efTBM")
			return len(rest) > 1 && slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "--del") }) &&
				!c.flag("n", "dry-run") && c.anyPath(rest[len(rest)-1:], c.j.isVital)
		},
	},
	{
		id: "rsync-delete", verdict: Ask, reason: "removes at the destination what the source does not have", names: "rsync",
		match: func(c *call) bool {
			return slices.ContainsFunc(c.args, func(arg string) bool {
				return strings.HasPrefix(arg, "--del") || arg == "--remove-source-files"
			}) && !c.flag("n", "dry-run")
		},
	},
}

// removesUnset says whether a path that begins with unknown text, or has it right below the root, is the root or
// another vital directory without that text.
func removesUnset(c *call) bool {
	return c.flag("rR", "recursive") && slices.ContainsFunc(c.operands(""), func(name string) bool {
		rest := strings.ReplaceAll(name, unknown, "")
		return rest != name && strings.HasPrefix(rest, "/") && c.j.isVital(c.j.canonical(rest))
	})
}

var systemRules = []rule{
	{
		id: "mkfs", verdict: Block, reason: "makes a new file system over what is there",
		names: "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.exfat mkfs.f2fs mkfs.minix mkfs.msdos mkfs.cramfs mkfs.bfs mke2fs mkswap newfs mkdosfs mkntfs",
		match: func(c *call) bool { return !c.asksForHelp() },
	},
	{
		id: "dd-disk", verdict: Block, reason: "writes to a disk past its file system", names: "dd",
		match: func(c *call) bool { return c.ddTo(isDisk) },
	},
	{
		id: "dd", verdict: Ask, reason: "copies raw data", names: "dd dcfldd",
		match: func(c *call) bool {
			raw := slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "if=") || strings.HasPrefix(arg, "of=") })
			nowhere := c.ddTo(isNull) && !c.ddTo(func(name string) bool { return !isNull(name) })
			return raw && !nowhere
		},
	},
	{
		id: "disk-tools", verdict: Block, reason: "changes or clears a disk", names: "wipefs blkdiscard fdisk sfdisk cfdisk gdisk sgdisk parted hdparm badblocks shred cryptsetup pvcreate mdadm",
		match: func(c *call) bool {
			switch c.name {
			case "fdisk", "sfdisk", "parted", "gdisk", "sgdisk":
				if c.flag("lp", "list", "print") || c.has("print") {
					return false
				}
			case "hdparm":
				return c.flag("", "security-erase", "trim-sector-ranges", "make-bad-sector")
			case "badblocks":
				return c.flag("w")
			case "cryptsetup":
				return c.has("luksFormat", "erase", "luksErase")
			case "mdadm":
				return c.flag("C", "create", "zero-superblock")
			case "wipefs":
				return c.flag("aof", "all", "offset", "force")
			}
			return c.anyPath(c.operands(""), isDisk)
		},
	},
	{
		id: "power", verdict: Block, reason: "turns the machine off or restarts it", names: "shutdown reboot halt poweroff",
		match: func(c *call) bool { return !c.asksForHelp() && !c.has("-c", "--show") },
	},
	{
		id: "power-init", verdict: Block, reason: "turns the machine off or restarts it", names: "init telinit",
		match: func(c *call) bool { return c.has("0", "6") },
	},
	{
		id: "power-systemctl", verdict: Block, reason: "turns the machine off or restarts it", names: "systemctl loginctl",
		match: func(c *call) bool {
			rest := c.operands("HMnopsPtj")
			if len(rest) == 0 {
				return false
			}
			switch rest[0] {
			case "poweroff", "reboot", "halt", "kexec", "soft-reboot", "suspend", "hibernate", "hybrid-sleep", "emergency", "rescue":
				return true
			case "start", "restart", "isolate":
				return has(rest[1:], "poweroff.target", "reboot.target", "halt.target", "kexec.target", "runlevel0.target", "runlevel6.target")
			}
			return false
		},
	},
	{
		id: "sudo-password", verdict: Block, reason: "reads a password for sudo, and there is none to give", names: "sudo",
		match: func(c *call) bool { return hasFlag(c.ownOptions("sudo"), "S", "stdin") },
	},
	{
		id: "sudo-options", verdict: Ask, reason: "asks for a password or opens a shell of the superuser", names: "sudo",
		match: func(c *call) bool { return hasFlag(c.ownOptions("sudo"), "sSAai", "shell", "askpass", "login") },
	},
	{
		id: "chmod-writable", verdict: Ask, reason: "lets everybody write", names: "chmod",
		match: func(c *call) bool { return c.mode(worldWritable) },
	},
	{
		id: "chmod-setuid", verdict: Ask, reason: "makes a program run as its owner", names: "chmod",
		match: func(c *call) bool { return c.mode(setsID) },
	},
	{
		id: "chmod-system", verdict: Ask, reason: "changes who may use the system's files", names: "chmod chown chgrp setfacl",
		match: func(c *call) bool {
			rest := c.operands("")
			return c.flag("R", "recursive") && c.anyPath(rest, c.j.isVital) || len(rest) > 1 && c.anyPath(rest[1:], isSystemConfig)
		},
	},
	{
		id: "chown-root", verdict: Ask, reason: "gives whole directories to the superuser", names: "chown",
		match: func(c *call) bool {
			rest := c.operands("")
			if len(rest) == 0 || !c.flag("R", "recursive") {
				return false
			}
			owner, _, _ := strings.Cut(strings.ReplaceAll(rest[0], ".", ":"), ":")
			return owner == "root" || owner == "0"
		},
	},
	{
		id: "firewall", verdict: Ask, reason: "takes the rules of the firewall away", names: "iptables ip6tables nft ufw firewall-cmd",
		match: func(c *call) bool {
			if c.name == "nft" {
				return c.has("flush", "delete")
			}
			return c.flag("FXPZ", "flush", "delete-chain", "policy") || c.name == "ufw" && c.has("disable", "reset")
		},
	},
	{
		id: "accounts", verdict: Ask, reason: "changes who may use the machine", names: "userdel groupdel deluser delgroup usermod passwd chpasswd visudo useradd adduser",
		match: func(c *call) bool { return !c.asksForHelp() },
	},
	{
		id: "kernel", verdict: Ask, reason: "changes the running kernel", names: "insmod rmmod modprobe sysctl kexec swapoff",
		match: func(c *call) bool {
			if c.name == "sysctl" {
				return c.flag("wp", "write", "load") || slices.ContainsFunc(c.args, func(arg string) bool { return strings.Contains(arg, "=") })
			}
			return !c.asksForHelp()
		},
	},
}

// ownOptions are the options of a prefix itself, and not of the command that it starts.
func (c *call) ownOptions(name string) []string {
	p := prefixes[name]
	rest := after(c.args, p.valued, p.long, p.operands)
	return c.args[:len(c.args)-len(rest)]
}

func isNull(name string) bool { return name == "/dev/null" }

// ddTo says whether dd writes to such a path.
func (c *call) ddTo(test func(string) bool) bool {
	return slices.ContainsFunc(c.args, func(arg string) bool {
		name, ok := strings.CutPrefix(arg, "of=")
		return ok && test(c.j.canonical(name))
	})
}

// mode says whether chmod sets such a mode.
func (c *call) mode(test func(string) bool) bool {
	for _, arg := range c.args {
		if len(arg) > 1 && arg[0] == '-' && strings.Trim(arg[1:], "RvcfHLP") == "" || strings.HasPrefix(arg, "--") {
			continue
		}
		return slices.ContainsFunc(strings.Split(arg, ","), test)
	}
	return false
}

func octal(mode string) string {
	if mode == "" || strings.Trim(mode, "01234567") != "" {
		return ""
	}
	return "0000" + mode
}

func worldWritable(mode string) bool {
	if digits := octal(mode); digits != "" {
		return strings.ContainsAny(digits[len(digits)-1:], "2367")
	}
	who, what, ok := cutMode(mode)
	return ok && what[0] != '-' && strings.ContainsAny(who, "oa") && strings.Contains(what, "w")
}

func setsID(mode string) bool {
	if digits := octal(mode); digits != "" {
		return strings.ContainsAny(digits[len(digits)-4:len(digits)-3], "234567")
	}
	_, what, ok := cutMode(mode)
	return ok && what[0] != '-' && strings.Contains(what, "s")
}

// cutMode cuts u+x into who and what.
func cutMode(mode string) (who, what string, ok bool) {
	at := strings.IndexAny(mode, "+=-")
	if at < 0 {
		return "", "", false
	}
	return mode[:at], mode[at:], strings.Trim(mode[:at], "ugoa") == ""
}
