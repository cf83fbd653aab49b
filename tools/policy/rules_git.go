package policy

import (
	"slices"
	"strings"
)

var gitRules = []rule{
	gitRule("git-reset-hard", "throws away changes that are not committed", "reset", func(args []string) bool { return hasFlag(args, "", "hard") }),
	gitRule("git-push-force", "replaces or removes history that others have", "push", forcedPush),
	gitRule("git-clean", "removes files that are not under version control; look with git clean -n first", "clean", func(args []string) bool {
		return hasFlag(args, "f", "force") && !hasFlag(args, "n", "dry-run")
	}),
	gitRule("git-branch-delete", "removes a branch that may not be merged", "branch", func(args []string) bool {
		return hasFlag(args, "D") || hasFlag(args, "d", "delete") && hasFlag(args, "f", "force")
	}),
	gitRule("git-checkout-discard", "throws away changes that are not committed", "checkout", func(args []string) bool {
		return hasFlag(args, "f", "force") || slices.Contains(args, ".") || slices.Index(args, "--") >= 0 && slices.Index(args, "--") < len(args)-1
	}),
	gitRule("git-switch-discard", "throws away changes that are not committed", "switch", func(args []string) bool {
		return hasFlag(args, "f", "force", "discard-changes")
	}),
	gitRule("git-restore", "throws away changes that are not committed", "restore", func(args []string) bool {
		return !hasFlag(args, "S", "staged") || hasFlag(args, "W", "worktree")
	}),
	gitRule("git-stash-drop", "throws away changes that were put aside", "stash", func(args []string) bool {
		return len(args) > 0 && (args[0] == "drop" || args[0] == "clear")
	}),
	gitRule("git-history", "rewrites history, or removes what is left of old history", "filter-branch filter-repo reflog gc update-ref prune", func(args []string) bool {
		switch args[0] {
		case "reflog":
			return has(args, "expire", "delete")
		case "gc":
			return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--prune=") })
		case "update-ref":
			return hasFlag(args, "d", "delete")
		}
		return true
	}),
	gitRule("git-worktree-remove", "removes a working tree with the changes in it", "worktree", func(args []string) bool {
		return has(args, "remove") && hasFlag(args, "f", "force")
	}),
	{
		id: "git-command", verdict: Ask, reason: "makes git start a command that its settings name", names: "git",
		match: func(c *call) bool {
			for i, arg := range c.args {
				if arg == "-c" && i+1 < len(c.args) {
					name, text, _ := strings.Cut(strings.ToLower(c.args[i+1]), "=")
					if strings.HasPrefix(text, "!") || slices.Contains([]string{"core.sshcommand", "core.fsmonitor", "core.hookspath", "core.gitproxy", "diff.external", "core.askpass"}, name) {
						return true
					}
				}
				if strings.HasPrefix(arg, "--upload-pack=") || strings.HasPrefix(arg, "--receive-pack=") || strings.HasPrefix(arg, "ext::") {
					return true
				}
			}
			return false
		},
	},
}

// gitRule is a rule about subcommands of git. What match gets are the arguments behind the subcommand, or with it
// when the rule is about several.
func gitRule(id, reason, names string, match func(args []string) bool) rule {
	subs := strings.Fields(names)
	return rule{
		id: id, verdict: Ask, reason: reason, names: "git",
		match: func(c *call) bool {
			rest := gitArgs(c.args)
			if len(rest) == 0 || !slices.Contains(subs, rest[0]) {
				return false
			}
			if len(subs) == 1 {
				rest = rest[1:]
			}
			return match(rest)
		},
	}
}

// gitArgs skips git's own options.
func gitArgs(args []string) []string {
	return after(args, "Cc", []string{"git-dir", "work-tree", "namespace", "exec-path", "config-env", "super-prefix"}, 0)
}

func forcedPush(args []string) bool {
	for _, arg := range args {
		switch {
		case arg == "--force" || arg == "--mirror" || arg == "--delete" || arg == "--prune":
			return true
		case len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(arg, "fd"):
			return true
		case len(arg) > 1 && (arg[0] == '+' || arg[0] == ':'):
			return true
		}
	}
	return false
}

// git follows the commands that git is told to start.
func (c *call) git() {
	for i, arg := range c.args {
		code := ""
		switch {
		case arg == "-c" && i+1 < len(c.args):
			name, text, _ := strings.Cut(c.args[i+1], "=")
			if code, _ = strings.CutPrefix(text, "!"); code == text && !startsSetting(name) {
				code = ""
			}
		case strings.HasPrefix(arg, "!"):
			code = arg[1:]
		case arg == "--exec" || arg == "-x" || strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "-filter"):
			if i+1 < len(c.args) {
				code = c.args[i+1]
			}
		}
		c.j.aside(code)
	}
	rest := gitArgs(c.args)
	if len(rest) > 2 && rest[0] == "config" {
		if words := operands(rest[1:], "ft"); len(words) == 2 && startsSetting(words[0]) {
			c.j.aside(words[1])
		}
	}
	if len(rest) > 1 && rest[0] == "submodule" && rest[1] == "foreach" {
		c.j.code(strings.Join(after(rest[2:], "", nil, 0), " "), stream{})
	}
	if i := slices.Index(rest, "run"); i == 1 && rest[0] == "bisect" {
		c.j.invoke(rest[2:], stream{}, c.taint, false)
	}
}

// startsSetting says whether git starts what a setting holds.
func startsSetting(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pager", "editor", "command", "external", "program", "textconv", ".cmd", "askpass", "fsmonitor"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}
