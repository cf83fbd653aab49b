package harbor

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Services beside the agent's that all have its image are processes of its sandbox, with every backend: their commands find in the
// sandbox what they need. All have one file system, one loopback and one set of limits. As soon as one has an image of its own, all
// have containers of their own.

// companions are the services of a compose file, of which one is the agent's.
type companions struct {
	*task
	file, agent string
	services    map[string]service
	machine     environment               // the agent's
	builds      map[string]map[string]any // see built
}

// place finds out where the services run, and adds to the agent's machine what they need.
func (t *companions) place(e *environment) {
	order := t.order()
	t.network()
	if slices.ContainsFunc(order, func(name string) bool { return !t.same(name, t.services[name]) }) {
		e.beside, e.hosts = t.containers(order)
		return
	}
	var names []string
	for _, name := range order {
		e.services = append(e.services, t.script(t.file+": services."+name, name, t.services[name]))
		names = append(append(names, name), t.alias(name)...)
	}
	if len(e.services) > 0 {
		line := quote("127.0.0.1 " + strings.Join(append(names, t.agent), " "))
		e.services = append([]string{"grep -qxF " + line + " /etc/hosts || echo " + line + " >>/etc/hosts"}, e.services...) // a fork with docker lacks it
		e.setup = slices.Clone(e.services)
	}
}

// order returns the services beside the agent's, each after those that it depends on.
func (t *companions) order() (order []string) {
	const begun, done = 1, 2
	states := map[string]int{}
	var visit func(name, from string)
	visit = func(name, from string) {
		s, known := t.services[name]
		at := fmt.Sprintf("%s: services.%s", t.file, name)
		switch {
		case !known:
			t.wrongf("%s.depends_on: %s is not there", from, name)
			return
		case states[name] == begun && name != t.agent:
			t.wrongf("%s.depends_on: %s depends on it", from, name)
		}
		if states[name] != 0 {
			return
		}
		states[name] = begun
		for _, before := range sortedNames(t.dependsOn(at, s.DependsOn)) {
			visit(before, at)
		}
		states[name] = done
		if name != t.agent {
			order = append(order, name)
		}
	}
	for _, name := range sortedNames(t.services) {
		visit(name, t.file)
	}
	return order
}

// network refuses services that do not reach each other: all have one network here.
func (t *companions) network() {
	of := func(s service) []string {
		switch networks := s.Networks.(type) {
		case []any:
			names := make([]string, len(networks))
			for i, name := range networks {
				names[i] = fmt.Sprint(name)
			}
			return slices.Sorted(slices.Values(names))
		case nil:
			return []string{"default"}
		}
		return nil
	}
	agents := of(t.services[t.agent])
	for _, name := range sortedNames(t.services) {
		if have := of(t.services[name]); have == nil || !slices.Equal(have, agents) {
			t.wrongf("%s: services.%s.networks: all services have one network here: want a list of the same for each", t.file, name)
		}
	}
}

// same says whether a service has the agent's image.
func (t *companions) same(name string, s service) bool {
	if !s.Build.IsZero() && reflect.DeepEqual(t.built(name), t.machine.build) {
		return true
	}
	return s.Image != "" && s.Image == t.services[t.agent].Image
}

// built is how the image of a service is made.
func (t *companions) built(name string) map[string]any {
	if _, known := t.builds[name]; !known {
		s := t.services[name]
		t.builds[name] = s.build(t.task, fmt.Sprintf("%s: services.%s.build", t.file, name), path.Dir(t.file))
	}
	return t.builds[name]
}

// alias are the further names that a service may have.
func (t *companions) alias(name string) (names []string) {
	for _, own := range []string{t.services[name].Container, t.services[name].Hostname} {
		if own != "" && own != name && !strings.Contains(own, "${") && !slices.Contains(names, own) {
			names = append(names, own)
		}
	}
	return names
}

// script starts one of them.
func (t *companions) script(at, name string, s service) string {
	for _, key := range sortedNames(s.Rest) {
		if !slices.Contains(idle, key) && key != "expose" && key != "ports" {
			t.wrongf("%s.%s: a service beside the agent's is a process in its sandbox: want image or build, entrypoint, command, environment, working_dir, healthcheck and depends_on", at, key)
		}
	}
	if len(s.Volumes) > 0 {
		t.wrongf("%s.volumes: a service beside the agent's has the agent's files", at)
	}
	args := append(t.words(at+".entrypoint", s.Entrypoint), t.words(at+".command", s.Command)...)
	for before, is := range t.dependsOn(at, s.DependsOn) {
		if is == ends {
			t.wrongf("%s.depends_on.%s: condition %v, want service_started or service_healthy", at, before, is)
		}
	}
	if len(args) == 0 {
		t.wrongf("%s: want a command: what the image would start is not known here", at)
	}
	if s.Entrypoint == nil && t.hasEntrypoint() {
		t.wrongf("%s.entrypoint: it is missing, and that of the Dockerfile is not run here", at)
	}
	within := t.within(at, s)
	script := fmt.Sprintf("mkdir -p /var/log\n(%s %s) </dev/null >>%s 2>&1 &", within, Quoted(args), quote("/var/log/"+name+".log"))
	if command := t.test(at+".healthcheck", s.Health); command != nil {
		script += "\n" + t.health(at+".healthcheck", s.Health, within+" "+Quoted(command))
	}
	return script
}

// hasEntrypoint says whether the agent's Dockerfile has one.
func (t *companions) hasEntrypoint() bool {
	build := t.machine.build
	if build == nil {
		return false
	}
	dir, _ := strings.CutPrefix(build["dir"].(string), t.at)
	lines := strings.Split(t.text(path.Join(".", dir, build["dockerfile"].(string))), "\n")
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(line)), "ENTRYPOINT")
	})
}

// within is how a command begins that has a service's directory and variables, and not the agent's.
func (t *companions) within(at string, s service) string {
	env, ok := composeEnv(s.Environment)
	if !ok {
		t.wrongf("%s.environment: %v, want variables and their values", at, s.Environment)
	}
	text := "exec env"
	if dir := t.own(at+".working_dir", s.WorkingDir); dir != "" {
		text = "cd " + quote(dir) + " && " + text
	}
	for _, name := range sortedNames(t.machine.env) {
		if _, own := env[name]; !own {
			text += " -u " + name
		}
	}
	for _, name := range sortedNames(env) {
		text += " " + quote(name+"="+t.literal(at+".environment", env[name]))
	}
	return text
}

// literal is a text as compose reads it, in which two dollars stand for one.
func (t *companions) literal(at, text string) string {
	return strings.ReplaceAll(t.own(at, text), "$$", "$")
}

// words are a command: a list of words, or a text of which quotes and white space make one.
func (t *companions) words(at string, command any) (words []string) {
	switch command := command.(type) {
	case nil:
	case string:
		var err error
		if words, err = split(t.literal(at, command)); err != nil {
			t.wrongf("%s: %v", at, err)
		}
	case []any:
		for _, word := range command {
			words = append(words, t.literal(at, fmt.Sprint(word)))
		}
	default:
		t.wrongf("%s: %v, want a text or a list of words", at, command)
	}
	return words
}

// Quoted is a command for a shell.
func Quoted(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = quote(word)
	}
	return strings.Join(all, " ")
}

// Conditions of those that depend on a service.
const (
	starts = "service_started"
	isWell = "service_healthy"
	ends   = "service_completed_successfully"
)

// dependsOn reads a list of names, or a mapping from names to conditions.
func (t *companions) dependsOn(at string, value any) map[string]string {
	conditions := map[string]string{}
	switch value := value.(type) {
	case nil:
	case []any:
		for _, name := range value {
			conditions[fmt.Sprint(name)] = starts
		}
	case map[string]any:
		for _, name := range sortedNames(value) {
			how, _ := value[name].(map[string]any)
			is := starts
			if given, ok := how["condition"]; ok {
				is = fmt.Sprint(given)
			}
			if is != starts && is != isWell && is != ends {
				t.wrongf("%s.depends_on.%s: condition %v, want %s, %s or %s", at, name, is, starts, isWell, ends)
			}
			conditions[name] = is
		}
	default:
		t.wrongf("%s.depends_on: %v, want names of services", at, value)
	}
	return conditions
}

// serve starts the services again before the verifier: no process is left then. What starts them beforehand is in the setup.
func (e environment) serve(t *task, fields map[string]any) {
	if len(e.services) == 0 {
		return
	}
	check, one := fields["verify"].(map[string]any)
	if !one {
		t.wrongf("%s: services beside the agent's end with a step's processes: want a task without steps", e.from)
		return
	}
	check["command"] = "(\n" + strings.Join(e.services, "\n") + "\n)\n" + check["command"].(string)
}
