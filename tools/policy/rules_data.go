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
			return c.has("stop", "restart", "disable", "mask", "try-restart", "reload-or-restart", "kill", "unload", "bootout", "isolate")
		},
	},
	{
		id: "container-stop", verdict: Ask, reason: "stops, restarts or removes containers", names: "docker podman nerdctl docker-compose",
		match: func(c *call) bool {
			rest := containerWords(c)
			if len(rest) == 0 {
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
			rest := c.operands("")
			switch {
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
			rest := c.operands("")
			if len(rest) == 0 || rest[0] != "run" && rest[0] != "create" {
				return false
			}
			for i, arg := range c.args {
				if arg == "--privileged" || arg == "--pid=host" {
					return true
				}
				volume, ok := strings.CutPrefix(arg, "--volume=")
				if (arg == "-v" || arg == "--volume") && i+1 < len(c.args) {
					volume, ok = c.args[i+1], true
				}
				if from, _, mount := strings.Cut(volume, ":"); ok && mount && c.j.isVital(c.j.canonical(from)) {
					return true
				}
			}
			return false
		},
	},
	{
		id: "cluster-delete", verdict: Ask, reason: "removes or stops what runs in a cluster", names: "kubectl oc helm",
		match: func(c *call) bool {
			rest := c.operands("n")
			if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "--dry-run") && arg != "--dry-run=none" }) || len(rest) == 0 {
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
			return len(rest) > 0 && (rest[0] == "destroy" || rest[0] == "apply" && c.has("-destroy", "--destroy", "-auto-approve", "--auto-approve") ||
				rest[0] == "state" && has(rest, "rm") || rest[0] == "run-all" && has(rest, "destroy"))
		},
	},
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
			return destroysSQL(c.in.text) || slices.ContainsFunc(c.args, destroysSQL)
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
