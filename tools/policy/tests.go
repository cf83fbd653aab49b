package policy

import (
	"regexp"
	"slices"
	"strings"
)

// tests are the conditions of rules that are code.
var tests = map[string]func(*call) bool{
	"detached":     func(c *call) bool { return c.j.detached > 0 },
	"reads":        func(c *call) bool { return c.in.set },
	"restricted":   func(c *call) bool { return sqlWhere.MatchString(c.j.source) },
	"removesUnset": removesUnset,
	"awkStarts":    awkStarts,
	"sendsSecret":  sendsSecret,
	"givesMachine": givesMachine,
	"destroysData": func(c *call) bool {
		return destroysSQL(c.in.text) || slices.ContainsFunc(c.args, func(arg string) bool {
			return destroysSQL(arg) || destroysSQL(c.j.file(strings.TrimPrefix(arg, "--file=")).text)
		})
	},
}

// removesUnset reports whether a path that begins with unknown text, or has unknown text right below the root, is the root or
// another vital directory when that text is empty.
func removesUnset(c *call) bool {
	return slices.ContainsFunc(c.operands, func(name string) bool {
		rest := clean(name)
		return rest != name && strings.HasPrefix(rest, "/") && c.j.is("vital", c.j.canonical(rest))
	})
}

var (
	awkText  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	awkCalls = regexp.MustCompile(`\bsystem\s*\(|\|&|\bprintf?\b[^;}\n/]*\|\s*[A-Za-z_(]|[\w)]\s*\|\s*getline|""\s*""\s*\|\s*getline|\|\s*""\s*[^\s;})]`)
	awkShell = regexp.MustCompile(`\|&?\s*"\s*(\S*/)?(ba|da|z|k)?sh\b`)
)

// awkStarts reports whether an awk program starts a shell, or a command that is not known.
func awkStarts(c *call) bool {
	return awkShell.MatchString(c.line) || awkCalls.MatchString(awkText.ReplaceAllString(c.line, `""`))
}

// sendsSecret reports whether an option sends a file of keys: -d @file, -F name=@file, -T file. A key for logging in is not
// sent.
func sendsSecret(c *call) bool {
	sent := slices.Clone(c.operands)
	for _, o := range c.given {
		if slices.Contains([]string{"T", "upload-file", "post-file"}, o.name) {
			sent = append(sent, "@"+o.value)
		}
		sent = append(sent, o.value)
	}
	return slices.ContainsFunc(sent, func(text string) bool {
		_, name, at := strings.Cut(text, "@")
		return at && c.j.is("secret", c.j.canonical(strings.TrimPrefix(name, "@")))
	})
}

// machineOption matches the options of docker run that give a container access to the machine, with the file that they mount.
var machineOption = regexp.MustCompile(`^(privileged=(?:[^f].*)?|pid=host|cap-add=(?:ALL|(?:CAP_)?SYS_ADMIN|SYS_MODULE|SYS_RAWIO))$|` +
	`^device=([^:]*)|^(?:v|volume)==?([^:]*):|^mount=(?:.*,)?(?:source|src)=([^,]*)`)

// givesMachine reports whether the options of docker run give a container access to the machine.
func givesMachine(c *call) bool {
	return slices.ContainsFunc(newCommand("docker-run", c.args).given, func(o option) bool {
		m := machineOption.FindStringSubmatch(o.name + "=" + o.value)
		if m == nil || m[1] != "" {
			return m != nil
		}
		file := c.j.canonical(m[2] + m[3] + m[4])
		return c.j.is("disk", file) || o.name != "device" && (c.j.is("vital", file) || controlSocket.MatchString(file))
	})
}

// controlSocket matches the sockets through which a program can start any container.
var controlSocket = regexp.MustCompile(`/(docker|containerd)\.sock$`)

var (
	sqlDestroys = regexp.MustCompile(`(?i)\bdrop\s+(table|database|schema|tablespace)\b|\bdropDatabase\(|\.drop\(\)|(^|;)\s*truncate\s+(table\s+)?[\w"` + "`" + `\[.]`)
	sqlDelete   = regexp.MustCompile(`(?i)\bdelete\s+from\b[^;]*`)
	sqlWhere    = regexp.MustCompile(`(?i)\bwhere\b`)
	sqlIgnored  = regexp.MustCompile(`^--[\w-]+=|--[^\n]*|/\*(?s:.*?)\*/`) // the option before a statement, and comments
)

// destroysSQL reports whether SQL text removes a table, a database, or all rows of a table.
func destroysSQL(text string) bool {
	text = sqlIgnored.ReplaceAllString(text, " ")
	return sqlDestroys.MatchString(text) ||
		slices.ContainsFunc(sqlDelete.FindAllString(text, -1), func(statement string) bool { return !sqlWhere.MatchString(statement) })
}
