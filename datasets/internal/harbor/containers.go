package harbor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// containers are the services as a row has them, in this order, and the further names of the machine whose network all have.
func (t *companions) containers(order []string) (services []any, hosts []string) {
	hosts = []string{t.agent}
	conditions := map[string][]string{} // service → what is waited for
	after := map[string][]string{}
	for _, name := range sortedNames(t.services) {
		for before, is := range t.dependsOn(t.file, t.services[name].DependsOn) {
			conditions[before] = append(conditions[before], is)
			if is != starts {
				after[name] = append(after[name], before)
			}
		}
	}
	volumes := map[string]mounted{}
	for _, name := range order {
		at := fmt.Sprintf("%s: services.%s", t.file, name)
		once := slices.Contains(conditions[name], ends)
		fields := t.container(at, name, once)
		if _, checked := fields["health"]; !checked && slices.Contains(conditions[name], isWell) {
			t.wrongf("%s.healthcheck: it is missing, and others wait until %s is healthy: that of its image is not known here", at, name)
		}
		slices.Sort(after[name])
		fields["after"] = after[name]
		files := episode.Files{}
		for _, v := range t.services[name].Volumes {
			if text := fmt.Sprint(v); !harness.MatchString(text) {
				maps.Copy(files, t.volume(at, name, text, volumes))
			}
		}
		if len(files) > 0 {
			fields["files"] = files
		}
		for _, key := range sortedNames(fields) {
			if list, ok := fields[key].([]string); ok && len(list) == 0 || fields[key] == "" || fields[key] == false {
				delete(fields, key)
			}
		}
		services = append(services, fields)
		hosts = append(hosts, t.alias(name)...)
	}
	return services, hosts
}

// container are the fields of one service.
func (t *companions) container(at, name string, once bool) map[string]any {
	s := t.services[name]
	for _, key := range sortedNames(s.Rest) {
		if !slices.Contains(idle, key) && key != "expose" && key != "ports" && key != "user" && key != "restart" {
			t.wrongf("%s.%s: want image or build, entrypoint, command, environment, working_dir, user, volumes of its own, restart, healthcheck and depends_on", at, key)
		}
	}
	env, ok := composeEnv(s.Environment)
	if !ok {
		t.wrongf("%s.environment: %v, want variables and their values", at, s.Environment)
	}
	for _, key := range sortedNames(env) {
		env[key] = t.literal(at+".environment", env[key])
	}
	fields := map[string]any{
		"name": name, "entrypoint": t.words(at+".entrypoint", s.Entrypoint), "command": t.words(at+".command", s.Command), "once": once,
		"cwd": t.own(at+".working_dir", s.WorkingDir),
	}
	if len(env) > 0 {
		fields["env"] = env
	}
	if user, given := s.Rest["user"]; given {
		fields["user"] = t.own(at+".user", fmt.Sprint(user))
	}
	switch policy, _, _ := strings.Cut(fmt.Sprint(s.Rest["restart"]), ":"); policy {
	case "<nil>", "no", "false": // which YAML makes of no
	case "always", "unless-stopped":
		fields["restart"] = sandbox.RestartAlways
	case "on-failure":
		fields["restart"] = sandbox.RestartFailed
	default:
		t.wrongf("%s.restart: %v, want no, always, unless-stopped or on-failure", at, s.Rest["restart"])
	}
	switch {
	case !s.Build.IsZero():
		fields["build"] = t.built(name)
	case t.same(name, s) && t.machine.build != nil: // a name that the harness gives what it builds
		fields["build"] = t.machine.build
	case s.Image != "":
		fields["image"] = t.own(at+".image", s.Image)
	default:
		t.wrongf("%s: want image or build", at)
	}
	if command := t.test(at+".healthcheck", s.Health); command != nil {
		health := map[string]any{"command": command}
		h, at := s.Health, at+".healthcheck"
		maps.Copy(health, map[string]any{
			"interval": t.seconds(at+".interval", h.Interval, 30), "timeout": t.seconds(at+".timeout", h.Timeout, 30), "retries": cmp.Or(h.Retries, 3),
		})
		if start := t.seconds(at+".start_period", h.Start, 0); start > 0 {
			health["start"] = start
		}
		fields["health"] = health
	}
	return fields
}

// mounted is a volume or a part of the task that a service has.
type mounted struct {
	by    string
	fixed bool // read-only
}

// volume takes one that a service has for itself, for which its container's own files are the place, and returns what a folder or a
// file of the task brings there.
func (t *companions) volume(at, name, text string, before map[string]mounted) episode.Files {
	parts := strings.Split(text, ":")
	source, target := parts[0], parts[len(parts)-1]
	fixed := len(parts) == 3 && target == "ro"
	if len(parts) == 3 && (fixed || target == "rw") {
		target = parts[1]
	}
	of, local := strings.HasPrefix(source, "./"), !strings.ContainsAny(source, "./~$")
	if len(parts) == 1 && path.IsAbs(source) {
		return nil // without a name
	}
	if len(parts) > 3 || !of && !local || !path.IsAbs(target) {
		t.wrongf("%s.volumes: %s: want NAME:/PATH, or ./PATH:/PATH with a file or a folder of the task", at, text)
		return nil
	}
	other, taken := before[source]
	if taken && other.by != name && !(fixed && other.fixed) {
		t.wrongf("%s.volumes: %s is of %s, too: containers here have no files in common", at, source, other.by)
	}
	before[source] = mounted{by: name, fixed: fixed && (other.fixed || !taken)}
	if local {
		return nil
	}
	source = path.Join(path.Dir(t.file), source)
	if !t.has(source) {
		t.wrongf("%s.volumes: %s is not there", at, source)
		return nil
	}
	files := episode.Files{}
	for below, f := range t.tree(source) {
		files[path.Join(target, below)] = f.data
	}
	return files
}

// split takes a text apart as compose does: white space separates words, and quotes and backslashes hold them together. Nothing else
// means something.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	escaped, begun := false, false
	for _, c := range text {
		switch {
		case escaped:
			if quote == '"' && c != '"' && c != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case unicode.IsSpace(c):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if escaped || quote != 0 {
		return nil, errors.New("a quote or a backslash has no end")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
