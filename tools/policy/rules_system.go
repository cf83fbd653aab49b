package policy

import (
	"slices"
	"strings"
)

// The rules that the code reports while it follows a line.
const (
	forkBomb         = "fork-bomb"
	deleteSystem     = "delete-system"
	writeDisk        = "write-disk"
	writePower       = "power-trigger"
	writeSystem      = "write-system"
	writeSensitive   = "write-sensitive"
	shellCode        = "shell-code"
	pipedCode        = "piped-code"
	remoteCode       = "remote-code"
	decodedCode      = "decoded-code"
	evalUnknown      = "eval-unknown"
	interpreterCode  = "interpreter-code"
	interpreterInput = "interpreter-input"
	xargsRm          = "xargs-rm"
	findRm           = "find-exec-rm"
	findDelete       = "find-delete"
	madeRunnable     = "run-made-executable"
	reverseShell     = "reverse-shell"
	unknownCommand   = "unknown-command"
	typedKeys        = "typed-keys"
	unparsable       = "unparsable"
	tooComplex       = "too-complex"
	tooLong          = "too-long"
)

// rules has all rules.
var rules = slices.Concat(readingRules, deletionRules, systemRules, processRules, fileRules, gitRules, serviceRules, dataRules)

var readingRules = []rule{
	{id: forkBomb, verdict: Block, reason: "fills the machine with processes: a function starts itself again and again"},
	{id: deleteSystem, verdict: Block, reason: "removes the system, or everything in a home directory"},
	{id: writeDisk, verdict: Block, reason: "writes to a disk past its file system"},
	{id: writePower, verdict: Block, reason: "makes the kernel restart or stop"},
	{id: writeSystem, verdict: Ask, reason: "writes to the configuration of the system"},
	{id: writeSensitive, verdict: Ask, reason: "writes to a file of keys, credentials, settings, or of what shells read when they start"},
	{id: shellCode, verdict: Ask, reason: "hands code to a shell on its command line; give the commands themselves, or a script file"},
	{id: pipedCode, verdict: Ask, reason: "hands code to a shell on its standard input; give the commands themselves, or a script file"},
	{id: remoteCode, verdict: Ask, reason: "runs code that comes from the network; download it, look at it, then run the file in a command of its own"},
	{id: decodedCode, verdict: Ask, reason: "runs code that was encoded"},
	{id: evalUnknown, verdict: Ask, reason: "runs code as a command that cannot be told beforehand"},
	{interpreterCode, Ask, "hands code to an interpreter on its command line; write it to a file and run that", []condition{
		{"deno", "eval repl", always{}},
	}},
	{id: interpreterInput, verdict: Ask, reason: "hands code to an interpreter on its standard input; write it to a file and run that"},
	{id: xargsRm, verdict: Ask, reason: "removes whatever is listed on the standard input"},
	{id: findRm, verdict: Ask, reason: "removes whatever is found; list it first"},
	{id: findDelete, verdict: Ask, reason: "removes whatever is found; list it first"},
	{id: madeRunnable, verdict: Ask, reason: "makes a file executable and runs it"},
	{id: reverseShell, verdict: Ask, reason: "connects a shell to the network"},
	{id: unknownCommand, verdict: Ask, reason: "runs a program that cannot be told beforehand; name it"},
	{id: typedKeys, verdict: Ask, reason: "types keys that edit a line, so that what runs cannot be told; type the whole line"},
	{id: unparsable, verdict: Ask, reason: "is no bash that can be read"},
	{id: tooComplex, verdict: Ask, reason: "does too much to be told beforehand; make several commands of it, or a script file"},
	{id: tooLong, verdict: Ask, reason: "is over 128 KiB long; put its data into a file"},
}

var deletionRules = []rule{
	{"rm-system", Block, "removes the system, or everything in a home directory", []condition{
		{"rm unlink shred srm trash rmdir rimraf", "", file((*judge).isVital)},
	}},
	// Whether the variable is empty is known to the shell only, and perhaps to the approver.
	{"rm-unset", Ask, "removes everything from the root on if the variable is empty; write ${NAME:?} so that the shell stops then", []condition{
		{"rm srm rimraf", "", does(removesUnset)},
	}},
	{"rm-recursive", Ask, "removes whole directories; name the files, or let somebody agree", []condition{
		{"rm srm", "", flag{"rR", "recursive"}},
		{"rimraf", "", always{}},
	}},
	{"rm-absolute", Ask, "removes by an absolute path; use one that is relative to the working directory", []condition{
		{"rm unlink srm", "", does(func(c *call) bool {
			return slices.ContainsFunc(c.operands(), func(name string) bool { return strings.HasPrefix(name, "/") })
		})},
	}},
	{"shred", Ask, "destroys what files hold beyond recovery", []condition{{"shred wipe", "", always{}}}},
	{"move-system", Block, "moves the system, or a home directory, away", []condition{
		{"mv", "", does(func(c *call) bool {
			rest := c.operands()
			return len(rest) > 0 && c.any(rest[:max(len(rest)-1, 1)], (*judge).isVital)
		})},
	}},
	{"truncate", Ask, "empties files", []condition{
		{"truncate", "", line(`^(-[a-z]*s\n?|--size[=\n])(0+$|[-</%` + unknown + `])`)},
	}},
	{"rsync-system", Block, "removes the system, or everything in a home directory", []condition{
		{"rsync", "", all{line(`^--del`), not{flag{"n", "dry-run"}}, does(func(c *call) bool {
			rest := c.operands()
			return len(rest) > 1 && c.any(rest[len(rest)-1:], (*judge).isVital)
		})}},
	}},
	{"rsync-delete", Ask, "removes at the destination what the source does not have", []condition{
		{"rsync", "", all{line(`^(--del|--remove-source-files$)`), not{flag{"n", "dry-run"}}}},
	}},
}

// removesUnset reports whether a path that begins with unknown text, or has unknown text right below the root, is the root or
// another vital directory when that text is empty.
func removesUnset(c *call) bool {
	return hasFlag(c.args, "rR", "recursive") && slices.ContainsFunc(c.operands(), func(name string) bool {
		rest := strings.ReplaceAll(name, unknown, "")
		return rest != name && strings.HasPrefix(rest, "/") && c.j.isVital(c.j.canonical(rest))
	})
}

var systemRules = []rule{
	{"mkfs", Block, "makes a new file system over what is there", []condition{
		{"mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.exfat mkfs.f2fs mkfs.minix mkfs.msdos mkfs.cramfs mkfs.bfs " +
			"mke2fs mkswap newfs mkdosfs mkntfs", "", always{}},
	}},
	{"dd-disk", Block, "writes to a disk past its file system", []condition{{"dd", "", writes((*judge).isDisk)}}},
	{"dd", Ask, "copies raw data", []condition{
		{"dd dcfldd", "", all{line(`^[io]f=`), not{all{writes((*judge).isNull), not{writes(func(j *judge, name string) bool { return !j.isNull(name) })}}}}},
	}},
	{"disk-tools", Block, "changes or clears a disk", []condition{
		{"fdisk sfdisk parted gdisk sgdisk", "", all{file((*judge).isDisk), not{either{flag{"lp", "list", "print"}, word{"print"}}}}},
		{"blkdiscard cfdisk shred pvcreate", "", file((*judge).isDisk)},
		{"hdparm", "", flag{"", "security-erase", "trim-sector-ranges", "make-bad-sector"}},
		{"badblocks", "", flag{"w"}},
		{"cryptsetup", "", word{"luksFormat", "erase", "luksErase"}},
		{"mdadm", "", flag{"C", "create", "zero-superblock"}},
		{"wipefs", "", flag{"aof", "all", "offset", "force"}},
	}},
	{"power", Block, "turns the machine off or restarts it", []condition{
		{"shutdown reboot halt poweroff", "", all{always{}, not{word{"-c", "--show"}}}},
	}},
	{"power-init", Block, "turns the machine off or restarts it", []condition{{"init telinit", "", word{"0", "6"}}}},
	{"power-systemctl", Block, "turns the machine off or restarts it", []condition{
		{"systemctl loginctl", "poweroff reboot halt kexec soft-reboot suspend hibernate hybrid-sleep emergency rescue", all{}},
		{"systemctl loginctl", "start restart isolate", word{"poweroff.target", "reboot.target", "halt.target", "kexec.target", "runlevel0.target", "runlevel6.target"}},
	}},
	{"sudo-password", Block, "reads a password for sudo, and there is none to give", []condition{{"sudo", "", flag{"S", "stdin"}}}},
	{"sudo-options", Ask, "asks for a password or opens a shell of the superuser", []condition{
		{"sudo", "", flag{"sSAai", "shell", "askpass", "login"}},
	}},
	{"chmod-writable", Ask, "lets everybody write", []condition{
		{"chmod", "", first(`^[0-7]*[2367]$|(^|,)[ug]*[oa][ugoa]*[+=][^,+=-]*w`)},
	}},
	{"chmod-setuid", Ask, "makes a program run as its owner", []condition{
		{"chmod", "", first(`^[0-7]*[2-7][0-7]{3}$|(^|,)[ugoa]*[+=][^,+=-]*s`)},
	}},
	{"chmod-system", Ask, "changes who may use the system's files", []condition{
		{"chmod chown chgrp setfacl", "", either{all{flag{"R", "recursive"}, file((*judge).isVital)}, others((*judge).isSystemConfig)}},
	}},
	{"chown-root", Ask, "gives whole directories to the superuser", []condition{{"chown", "", all{flag{"R", "recursive"}, first(`^(root|0)([:.]|$)`)}}}},
	{"firewall", Ask, "takes the rules of the firewall away", []condition{
		{"iptables ip6tables ufw firewall-cmd", "", flag{"FXPZ", "flush", "delete-chain", "policy"}},
		{"ufw", "", word{"disable", "reset"}},
		{"nft", "", word{"flush", "delete"}},
	}},
	{"accounts", Ask, "changes who may use the machine", []condition{
		{"userdel groupdel deluser delgroup usermod passwd chpasswd visudo useradd adduser", "", always{}},
	}},
	{"kernel", Ask, "changes the running kernel", []condition{
		{"insmod rmmod modprobe kexec swapoff", "", always{}},
		{"sysctl", "", either{flag{"wp", "write", "load"}, line(`=`)}},
	}},
}

var processRules = []rule{
	{"kill-all", Block, "ends every process", []condition{
		{"killall5", "", always{}},
		{"kill", "", line(`\Akill\n-1\z|\n.*\n-1$`)},
	}},
	{"kill-init", Ask, "ends the first process", []condition{{"kill", "", all{word{"1"}, not{word{"-l", "-L", "-s", "-n", "-0"}}}}}},
	{"kill-found", Ask, "ends whatever a search for processes finds", []condition{{"kill", "", all{from(pids), not{word{"-0"}}}}}},
	{"pkill-force", Ask, "ends by name, without giving processes the time to tidy up", []condition{
		{"pkill killall", "", line(`^(-9|-(SIG)?KILL|(-s\n?|--signal[=\n])(9|(SIG)?KILL))$`)},
		{"killall", "", flag{"r", "regexp"}},
	}},
	{"kill-agent", Ask, "ends the program that runs this agent", []condition{{"pkill killall", "", line(agents)}}},
	{"agent-lifecycle", Ask, "stops, updates or detaches the program that runs this agent", []condition{
		{"systemctl launchctl", "", all{word{"stop", "restart", "kill", "unload", "bootout"}, line(agents)}},
		{"hermes trajgen gateway python", "", either{line(`^gateway\n(stop|restart)$`), all{line(`^gateway\nrun$`), does(func(c *call) bool { return c.background })}}},
		{"hermes trajgen", "update", always{}},
		{"trajgen", "sandbox", first(`^sweep$`)},
	}},
	{"netcat-shell", Ask, "connects a program to the network", []condition{
		{"nc", "", flag{"ec", "exec", "sh-exec", "lua-exec"}},
		{"socat", "", line(`(?i)^(exec|system|shell)`)},
	}},
	{"crontab", Ask, "replaces or removes what is planned to run", []condition{
		{"crontab", "", either{flag{"r"}, first(``), all{does(reads), line(`\Acrontab\n\z`)}}},
	}},
	{"planned-code", Ask, "plans code to run later", []condition{{"at batch", "", either{does(reads), flag{"f"}}}}},
	{"history", Ask, "removes the traces of what was done", []condition{{"history", "", flag{"cdw"}}}},
	{"program-starts-code", Ask, "starts commands out of another program's options", []condition{
		{"awk", "", does(awkRuns)},
		{"sed", "", line(sedStarts)},
		{"tar", "", line("checkpoint-action=exec|^--to-command|^--use-compress-program=.*[;|&$`]")},
		{"vim", "", line(`^(-c|--cmd)\n.*!|^\+.*!`)},
		{"emacs", "", line(`^(--eval|--execute$)`)},
		{"gdb", "", line(`^(-ex|--eval-command)\n(shell|!|python)`)},
		{"make", "", line(`^(--eval|SHELL=)`)},
	}},
}

// agents matches programs that run agents: ending one's own runner ends the work of others.
const agents = `(?i)\n.*\b(trajgen|hermes|gateway|cli\.py)\b`
