package policy

import (
	"regexp"
	"slices"
	"strings"
)

// agents are the programs that run agents: one that ends its own runner ends the work of others.
var agents = regexp.MustCompile(`(?i)\b(trajgen|hermes|gateway|cli\.py)\b`)

var processRules = []rule{
	{
		id: "kill-all", verdict: Block, reason: "ends every process", names: "kill killall5",
		match: func(c *call) bool {
			if c.name == "killall5" {
				return !c.asksForHelp()
			}
			args := c.args
			if len(args) > 0 && args[0] == "-1" && len(args) > 1 {
				args = args[1:] // the signal
			}
			if len(args) > 1 && (args[0] == "-s" || args[0] == "-n") {
				args = args[2:]
			}
			return has(args, "-1")
		},
	},
	{
		id: "kill-init", verdict: Ask, reason: "ends the first process", names: "kill",
		match: func(c *call) bool { return c.has("1") && !c.has("-l", "-L", "-s", "-n", "-0") },
	},
	{
		id: "kill-found", verdict: Ask, reason: "ends whatever a search for processes finds", names: "kill",
		match: func(c *call) bool { return (c.taint|c.in.taint)&pids != 0 && !c.has("-0") },
	},
	{
		id: "pkill-force", verdict: Ask, reason: "ends by name, without giving processes the time to tidy up", names: "pkill killall",
		match: func(c *call) bool {
			for i, arg := range c.args {
				switch {
				case arg == "-sKILL" || arg == "-s9" || arg == "-sSIGKILL" || arg == "-9" || arg == "-KILL" || arg == "-SIGKILL" || arg == "--signal=KILL" || arg == "--signal=9" || arg == "--signal=SIGKILL":
					return true
				case (arg == "-s" || arg == "--signal") && i+1 < len(c.args) && slices.Contains([]string{"KILL", "9", "SIGKILL"}, c.args[i+1]):
					return true
				}
			}
			return c.name == "killall" && c.flag("r", "regexp")
		},
	},
	{
		id: "kill-agent", verdict: Ask, reason: "ends the program that runs this agent", names: "pkill killall",
		match: func(c *call) bool { return slices.ContainsFunc(c.args, agents.MatchString) },
	},
	{
		id: "agent-lifecycle", verdict: Ask, reason: "stops, updates or detaches the program that runs this agent", names: "hermes trajgen gateway python python3 systemctl launchctl",
		match: func(c *call) bool {
			if c.name == "systemctl" || c.name == "launchctl" {
				return c.has("stop", "restart", "kill", "unload", "bootout") && slices.ContainsFunc(c.args, agents.MatchString)
			}
			words := append([]string{c.name}, c.args...)
			if i := slices.Index(words, "gateway"); i >= 0 && i+1 < len(words) {
				verb := words[i+1]
				return verb == "stop" || verb == "restart" || verb == "run" && c.background
			}
			rest := c.operands("")
			if len(rest) > 0 && rest[0] == "update" && (c.name == "hermes" || c.name == "trajgen") {
				return true
			}
			return c.name == "trajgen" && len(rest) > 1 && rest[0] == "sandbox" && rest[1] == "sweep"
		},
	},
	{
		id: "netcat-shell", verdict: Ask, reason: "connects a program to the network", names: "nc ncat netcat socat",
		match: func(c *call) bool {
			if c.name == "socat" {
				return slices.ContainsFunc(c.args, func(arg string) bool {
					upper := strings.ToUpper(arg)
					return strings.HasPrefix(upper, "EXEC") || strings.HasPrefix(upper, "SYSTEM") || strings.HasPrefix(upper, "SHELL")
				})
			}
			return c.flag("ec", "exec", "sh-exec", "lua-exec")
		},
	},
	{
		id: "crontab", verdict: Ask, reason: "replaces or removes what is planned to run", names: "crontab",
		match: func(c *call) bool {
			return c.flag("r") || c.has("-") || len(c.operands("u")) > 0 || c.in.set && len(c.args) == 0
		},
	},
	{
		id: "planned-code", verdict: Ask, reason: "plans code to run later", names: "at batch",
		match: func(c *call) bool { return c.in.set || c.flag("f") },
	},
	{
		id: "history", verdict: Ask, reason: "removes the traces of what was done", names: "history",
		match: func(c *call) bool { return c.flag("cdw") },
	},
	{
		id: "program-starts-code", verdict: Ask, reason: "starts commands out of another program's options", names: "awk gawk mawk nawk sed gsed tar vim vi nvim ex emacs gdb make",
		match: startsCode,
	},
}

var (
	sedStarts = regexp.MustCompile(`(^|[;{}\n]|[0-9$]|/)\s*e(\s|$)|^s(.).*?e[a-z]*$`)
)

// startsCode finds the commands that programs of another trade are told to start.
func startsCode(c *call) bool {
	for i, arg := range c.args {
		switch c.name {
		case "awk", "gawk", "mawk", "nawk":
			if arg != "|" && !strings.HasPrefix(arg, "-F") && awkStarts(arg) {
				return true
			}
		case "sed", "gsed":
			if len(arg) > 2 && !strings.HasPrefix(arg, "-") && sedExecutes(arg) {
				return true
			}
		case "tar":
			if strings.Contains(arg, "checkpoint-action=exec") || strings.HasPrefix(arg, "--to-command") || strings.HasPrefix(arg, "--use-compress-program=") && strings.ContainsAny(arg, ";|&$`") {
				return true
			}
		case "vim", "vi", "nvim", "ex":
			if (arg == "-c" || arg == "--cmd") && i+1 < len(c.args) && strings.Contains(c.args[i+1], "!") || strings.HasPrefix(arg, "+") && strings.Contains(arg, "!") {
				return true
			}
		case "emacs":
			if strings.HasPrefix(arg, "--eval") || arg == "--execute" {
				return true
			}
		case "gdb":
			if (arg == "-ex" || arg == "--eval-command") && i+1 < len(c.args) && (strings.HasPrefix(c.args[i+1], "shell") || strings.HasPrefix(c.args[i+1], "!") || strings.HasPrefix(c.args[i+1], "python")) {
				return true
			}
		case "make":
			if strings.HasPrefix(arg, "--eval") || strings.HasPrefix(arg, "SHELL=") {
				return true
			}
		}
	}
	return false
}

// sedExecutes says whether a sed script has the e command, or the e flag of s.
func sedExecutes(script string) bool {
	if sedStarts.MatchString(script) && !strings.HasPrefix(script, "s") {
		return strings.HasPrefix(strings.TrimLeft(script, "0123456789$ "), "e ") || strings.TrimLeft(script, "0123456789$ ") == "e"
	}
	if len(script) < 4 || script[0] != 's' {
		return false
	}
	parts := strings.Split(script, script[1:2])
	flags := parts[len(parts)-1]
	return len(parts) >= 4 && flags != "" && strings.Trim(flags, "gpiImMe0123456789") == "" && strings.Contains(flags, "e")
}
