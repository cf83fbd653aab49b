package policy

import (
	"regexp"
	"slices"
	"strings"
)

var fileRules = []rule{
	{"secret-upload", Ask, "sends a file of keys or credentials away", []condition{
		{"curl wget http nc rclone ssh ftp sftp", "", either{from(secret), does(sendsSecret)}},
		{"scp rclone", "", either{from(secret), file((*judge).isSecret)}},
		{"rsync", "", does(func(c *call) bool {
			rest := c.operands()
			return len(rest) > 1 && strings.Contains(rest[len(rest)-1], ":") && c.any(rest[:len(rest)-1], (*judge).isSecret)
		})},
	}},
}

// sendsSecret reports whether an option sends a file of keys: -d @file, -F name=@file, -T file. A key for logging in is not
// sent.
func sendsSecret(c *call) bool {
	given, rest := c.parse()
	for _, o := range given {
		_, named, at := strings.Cut(o.value, "@")
		if at || slices.Contains([]string{"T", "upload-file", "data-binary", "post-file"}, o.name) {
			rest = append(rest, "@"+strings.TrimPrefix(named, "@"), "@"+o.value)
		}
	}
	return slices.ContainsFunc(rest, func(arg string) bool {
		_, name, at := strings.Cut(arg, "@")
		return at && c.j.isSecret(c.j.canonical(name))
	})
}

var committed = "throws away changes that are not committed"

var gitRules = []rule{
	{"git-reset-hard", Ask, committed, []condition{{"git", "reset", flag{"", "hard"}}}},
	{"git-push-force", Ask, "replaces or removes history that others have", []condition{
		{"git", "push", line(`^(--(force|mirror|delete|prune)$|-\w*[fd]|\+|:)`)},
	}},
	{"git-clean", Ask, "removes files that are not under version control; look with git clean -n first", []condition{
		{"git", "clean", all{flag{"f", "force"}, not{flag{"n", "dry-run"}}}},
	}},
	{"git-branch-delete", Ask, "removes a branch that may not be merged", []condition{
		{"git", "branch", either{flag{"D"}, all{flag{"d", "delete"}, flag{"f", "force"}}}},
	}},
	{"git-checkout-discard", Ask, committed, []condition{{"git", "checkout", either{flag{"f", "force"}, word{"."}, line(`^--\n`)}}}},
	{"git-switch-discard", Ask, committed, []condition{{"git", "switch", flag{"f", "force", "discard-changes"}}}},
	{"git-restore", Ask, committed, []condition{{"git", "restore", either{not{flag{"S", "staged"}}, flag{"W", "worktree"}}}}},
	{"git-stash-drop", Ask, "throws away changes that were put aside", []condition{{"git", "stash", first(`^(drop|clear)$`)}}},
	{"git-history", Ask, "rewrites history, or removes what is left of old history", []condition{
		{"git", "filter-branch filter-repo prune", all{}},
		{"git", "reflog", word{"expire", "delete"}},
		{"git", "gc", line(`^--prune=`)},
		{"git", "update-ref", flag{"d", "delete"}},
	}},
	{"git-worktree-remove", Ask, "removes a working tree with the changes in it", []condition{
		{"git", "worktree", all{word{"remove"}, flag{"f", "force"}}},
	}},
	{"git-command", Ask, "makes git start a command that its settings name", []condition{
		{"git", "", line(`(?i)^(-c\n([^=\n]*=!|(core\.(sshcommand|fsmonitor|hookspath|gitproxy|askpass)|diff\.external)(=|$))|--(upload|receive)-pack=|ext::)`)},
	}},
}

var serviceRules = []rule{
	{"service-stop", Ask, "stops or restarts a service", []condition{
		{"systemctl service rc-service initctl launchctl", "", word{"stop", "restart", "disable", "mask", "try-restart", "reload-or-restart", "kill", "unload",
			"bootout", "isolate", "--full-restart"}},
	}},
	{"container-stop", Ask, "stops, restarts or removes containers", []condition{
		{"docker", "stop restart kill down pause", always{}},
		{"docker", "rm remove", all{always{}, either{line(`^(compose|container)$`), flag{"fvs", "force", "volumes"}}}},
	}},
	{"container-prune", Ask, "removes images, volumes or what else containers keep", []condition{
		{"docker", "", all{always{}, line(`\Adocker\n(-.*\n)*\w+\nprune$`)}},
		{"docker", "volume network", all{always{}, first(`^(rm|remove)$`)}},
		{"docker", "image", all{always{}, first(`^(rm|remove)$`), flag{"f", "force"}}},
		{"docker", "rmi", all{always{}, flag{"f", "force"}}},
		{"docker", "swarm stack service", all{always{}, first(`^(rm|leave)$`)}},
	}},
	{"container-host", Ask, "gives a container the machine", []condition{{"docker", "run create", does(givesMachine)}}},
	{"cluster-delete", Ask, "removes or stops what runs in a cluster", []condition{
		{"kubectl helm", "delete drain uninstall cordon", real},
		{"kubectl helm", "replace", all{real, flag{"", "force"}}},
		{"kubectl helm", "scale", all{real, word{"--replicas=0", "0"}}},
	}},
	{"infrastructure-destroy", Ask, "removes infrastructure", []condition{
		{"terraform tofu terragrunt pulumi cdk vagrant", "destroy", always{}},
		{"terraform tofu terragrunt pulumi cdk vagrant", "apply", all{always{}, word{"-destroy", "--destroy", "-auto-approve", "--auto-approve"}}},
		{"terraform tofu terragrunt pulumi cdk vagrant", "state", all{always{}, word{"rm"}}},
		{"terraform tofu terragrunt pulumi cdk vagrant", "run-all", all{always{}, word{"destroy"}}},
	}},
}

var real = not{line(`^(--dry-run($|=client$|=server$)|--help$)`)}

// givesMachine reports whether the options of docker run give a container access to the machine.
func givesMachine(c *call) bool {
	run := *c
	run.name = "docker-run"
	given, _ := run.parse()
	return slices.ContainsFunc(given, func(o option) bool {
		from, _, mounts := strings.Cut(strings.TrimPrefix(o.value, "="), ":")
		switch o.name {
		case "privileged":
			return o.value != "false"
		case "pid":
			return o.value == "host"
		case "cap-add":
			return slices.Contains([]string{"ALL", "SYS_ADMIN", "CAP_SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"}, o.value)
		case "device":
			return c.j.isDisk(from)
		case "v", "volume":
			return mounts && c.isMachine(from)
		case "mount":
			m := mountSource.FindStringSubmatch(o.value)
			return m != nil && c.isMachine(m[1])
		}
		return false
	})
}

var mountSource = regexp.MustCompile(`(?:^|,)(?:source|src)=([^,]*)`)

// isMachine reports whether access to a file gives control of the machine.
func (c *call) isMachine(name string) bool {
	file := c.j.canonical(name)
	return c.j.isVital(file) || strings.HasSuffix(file, "/docker.sock") || strings.HasSuffix(file, "/containerd.sock")
}

var dataRules = []rule{
	{"sql-destroy", Ask, "removes tables, databases or all rows of a table", []condition{
		{"mysql mariadb psql pgcli sqlite3 sqlite sqlcmd clickhouse-client clickhouse duckdb cockroach bq snowsql isql osql usql mycli litecli wrangler turso " +
			"heroku mongosh mongo influx cqlsh", "", does(func(c *call) bool {
			return destroysSQL(c.in.text) || slices.ContainsFunc(c.args, func(arg string) bool {
				return destroysSQL(arg) || destroysSQL(c.j.file(strings.TrimPrefix(arg, "--file=")).text)
			})
		})},
	}},
	{"sql-statement", Ask, "removes tables, databases or all rows of a table", []condition{
		{"DROP drop Drop", "", line(`(?i)\Adrop\n(table|database|schema)$`)},
		{"DELETE delete Delete", "", all{line(`(?i)\Adelete\nfrom$`), does(func(c *call) bool { return !sqlWhere.MatchString(c.j.source) })}},
		{"TRUNCATE truncate Truncate", "", line(`\ATRUNCATE\n.|(?i)\Atruncate\ntable$`)},
	}},
	{"redis-flush", Ask, "removes everything that a database holds", []condition{
		{"redis-cli valkey-cli", "", line(`(?i)^flush`)},
		{"mysqladmin", "", word{"drop"}},
		{"dropdb", "", all{}},
	}},
}

var (
	sqlDestroys = regexp.MustCompile(`(?i)\bdrop\s+(table|database|schema|tablespace)\b|\bdropDatabase\(|\.drop\(\)|(^|;)\s*truncate\s+(table\s+)?[\w"` + "`" + `\[.]`)
	sqlDelete   = regexp.MustCompile(`(?i)\bdelete\s+from\b[^;]*`)
	sqlWhere    = regexp.MustCompile(`(?i)\bwhere\b`)
	sqlComment  = regexp.MustCompile(`--[^\n]*|/\*(?s:.*?)\*/`)
	sqlOption   = regexp.MustCompile(`^--[\w-]+=`)
)

// destroysSQL reports whether SQL text removes a table, a database, or all rows of a table.
func destroysSQL(text string) bool {
	text = sqlComment.ReplaceAllString(sqlOption.ReplaceAllString(text, ""), " ")
	return sqlDestroys.MatchString(text) ||
		slices.ContainsFunc(sqlDelete.FindAllString(text, -1), func(statement string) bool { return !sqlWhere.MatchString(statement) })
}
