package policy

import (
	"regexp"
	"slices"
	"strings"
)

var serviceRules = []rule{
	{
		id: "service-stop", verdict: Ask, reason: "stops or restarts a service", names: "systemctl service rc-service initctl launchctl",
		match: func(c *call) bool {
			return c.has("stop", "restart", "disable", "mask", "try-restart", "reload-or-restart", "kill", "unload", "bootout", "isolate", "--full-restart")
		},
	},
	{
		id: "container-stop", verdict: Ask, reason: "stops, restarts or removes containers", names: "docker podman nerdctl docker-compose",
		match: func(c *call) bool {
			rest := containerWords(c)
			if len(rest) == 0 || c.asksForHelp() {
				return false
			}
			switch rest[0] {
			case "stop", "restart", "kill", "down", "pause":
				return true
			case "rm", "remove":
				return c.name == "docker-compose" || c.has("compose", "container") || c.flag("fvs", "force", "volumes")
			}
			return false
		},
	},
	{
		id: "container-prune", verdict: Ask, reason: "removes images, volumes or what else containers keep", names: "docker podman nerdctl",
		match: func(c *call) bool {
			rest := after(c.args, "Hcl", []string{"context", "host", "config", "log-level"}, 0)
			switch {
			case c.asksForHelp():
				return false
			case len(rest) > 1 && rest[1] == "prune":
				return true
			case len(rest) > 1 && (rest[0] == "volume" || rest[0] == "network" || rest[0] == "image" && c.flag("f", "force")):
				return rest[1] == "rm" || rest[1] == "remove"
			case len(rest) > 0 && rest[0] == "rmi":
				return c.flag("f", "force")
			case len(rest) > 1 && (rest[0] == "swarm" || rest[0] == "stack" || rest[0] == "service"):
				return rest[1] == "leave" || rest[1] == "rm"
			}
			return false
		},
	},
	{
		id: "container-host", verdict: Ask, reason: "gives a container the machine", names: "docker podman nerdctl",
		match: func(c *call) bool {
			rest := containerWords(c)
			return len(rest) > 0 && (rest[0] == "run" || rest[0] == "create") && c.givesMachine(rest[1:])
		},
	},
	{
		id: "cluster-delete", verdict: Ask, reason: "removes or stops what runs in a cluster", names: "kubectl oc helm",
		match: func(c *call) bool {
			rest := after(c.args, "ns", []string{"namespace", "context", "kubeconfig", "cluster", "user", "server", "token", "kube-context"}, 0)
			if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "--dry-run") && arg != "--dry-run=none" }) || len(rest) == 0 || c.has("--help") {
				return false
			}
			switch rest[0] {
			case "delete", "drain", "uninstall", "cordon":
				return true
			case "replace":
				return c.flag("", "force")
			case "scale":
				return c.has("--replicas=0", "0")
			}
			return false
		},
	},
	{
		id: "infrastructure-destroy", verdict: Ask, reason: "removes infrastructure", names: "terraform tofu terragrunt pulumi cdk vagrant",
		match: func(c *call) bool {
			rest := c.operands("")
			return len(rest) > 0 && !c.asksForHelp() && (rest[0] == "destroy" || rest[0] == "apply" && c.has("-destroy", "--destroy", "-auto-approve", "--auto-approve") ||
				rest[0] == "state" && has(rest, "rm") || rest[0] == "run-all" && has(rest, "destroy"))
		},
	},
}

// givesMachine says whether the options of docker run let a container at the machine that it runs on.
func (c *call) givesMachine(args []string) bool {
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case name == "--privileged" && value != "false", name == "--pid" && value == "host":
			return true
		case name == "--cap-add" && slices.Contains([]string{"ALL", "SYS_ADMIN", "CAP_SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"}, value):
			return true
		case name == "--device" && isDisk(strings.Split(value, ":")[0]):
			return true
		case name == "-v" || name == "--volume":
			if from, _, mounts := strings.Cut(value, ":"); mounts && c.isMachine(from) {
				return true
			}
		case strings.HasPrefix(arg, "-v") && len(arg) > 2:
			if from, _, mounts := strings.Cut(arg[2:], ":"); mounts && c.isMachine(from) {
				return true
			}
		case name == "--mount":
			if from := mountSource(value); from != "" && c.isMachine(from) {
				return true
			}
		}
	}
	return false
}

// mountSource is the directory that docker run --mount names.
func mountSource(text string) string {
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		if name == "source" || name == "src" {
			return value
		}
	}
	return ""
}

// isMachine says whether who has a file has the machine.
func (c *call) isMachine(name string) bool {
	file := c.j.canonical(name)
	return c.j.isVital(file) || strings.HasSuffix(file, "/docker.sock") || strings.HasSuffix(file, "/containerd.sock")
}

// containerWords are the words behind docker, or behind docker compose and docker container.
func containerWords(c *call) []string {
	rest := after(c.args, "Hcfp", []string{"context", "host", "config", "file", "project-name", "env-file", "profile"}, 0)
	if len(rest) > 0 && (rest[0] == "compose" || rest[0] == "container") {
		rest = after(rest[1:], "fp", []string{"file", "project-name", "env-file", "profile"}, 0)
	}
	return rest
}

var dataRules = []rule{
	{
		id: "sql-destroy", verdict: Ask, reason: "removes tables, databases or all rows of a table",
		names: "mysql mariadb psql pgcli sqlite3 sqlite sqlcmd clickhouse-client clickhouse duckdb cockroach bq snowsql isql osql usql mycli litecli wrangler turso heroku mongosh mongo influx cqlsh",
		match: func(c *call) bool {
			return destroysSQL(c.in.text) || slices.ContainsFunc(c.args, func(arg string) bool {
				return destroysSQL(arg) || len(c.j.files) > 0 && destroysSQL(c.j.file(strings.TrimPrefix(arg, "--file=")).text)
			})
		},
	},
	{
		id: "sql-statement", verdict: Ask, reason: "removes tables, databases or all rows of a table",
		names: "DROP drop Drop DELETE delete Delete TRUNCATE truncate Truncate",
		match: func(c *call) bool {
			if len(c.args) == 0 {
				return false
			}
			second := strings.ToLower(c.args[0])
			switch strings.ToLower(c.name) {
			case "drop":
				return second == "table" || second == "database" || second == "schema"
			case "delete":
				return second == "from" && !sqlWhere.MatchString(c.j.source)
			}
			return second == "table" || c.name == "TRUNCATE"
		},
	},
	{
		id: "redis-flush", verdict: Ask, reason: "removes everything that a database holds", names: "redis-cli valkey-cli dropdb mysqladmin",
		match: func(c *call) bool {
			switch c.name {
			case "dropdb":
				return true
			case "mysqladmin":
				return c.has("drop")
			}
			return slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(strings.ToLower(arg), "flush") })
		},
	},
}

var (
	sqlDrop     = regexp.MustCompile(`(?i)\bdrop\s+(table|database|schema|tablespace)\b|\bdropDatabase\(|\.drop\(\)`)
	sqlTruncate = regexp.MustCompile(`(?i)(^|;)\s*truncate\s+(table\s+)?[\w"` + "`" + `\[.]`)
	sqlDelete   = regexp.MustCompile(`(?i)\bdelete\s+from\b`)
	sqlWhere    = regexp.MustCompile(`(?i)\bwhere\b`)
	sqlComment  = regexp.MustCompile(`--[^\n]*|/\*(?s:.*?)\*/`)
)

// destroysSQL says whether SQL text removes a table, a database, or all rows of a table.
func destroysSQL(text string) bool {
	if len(text) < 8 {
		return false
	}
	if name, rest, ok := strings.Cut(text, "="); ok && strings.HasPrefix(name, "--") && !strings.ContainsAny(name, " \n") {
		text = rest // --command=
	}
	lower := strings.ToLower(text)
	if !strings.Contains(lower, "drop") && !strings.Contains(lower, "truncate") && !strings.Contains(lower, "delete") {
		return false
	}
	if strings.Contains(text, "--") || strings.Contains(text, "/*") {
		text = sqlComment.ReplaceAllString(text, " ")
	}
	if sqlDrop.MatchString(text) || sqlTruncate.MatchString(text) {
		return true
	}
	for _, statement := range strings.Split(text, ";") {
		if sqlDelete.MatchString(statement) && !sqlWhere.MatchString(statement) {
			return true
		}
	}
	return false
}
