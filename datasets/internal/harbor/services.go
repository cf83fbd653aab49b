package harbor

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Services beside the agent's are processes of its sandbox. They must have the agent's image: then their commands find in the
// sandbox what they need. All have one file system, one loopback and one set of limits.

// companions are the services of a compose file, of which one is the agent's.
type companions struct {
	*task
	file, agent string
	services    map[string]service
	machine     environment // the agent's
}

// start returns scripts that start these services, each after those that it depends on, and wait until they are well. names are
// those that lead to them.
func (t *companions) start() (scripts, names []string) {
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
		for _, before := range t.dependsOn(at, s.DependsOn) {
			visit(before, at)
		}
		states[name] = done
		names = append(names, name)
		if name == t.agent {
			return
		}
		if s.Container != "" && !strings.Contains(s.Container, "${") {
			names = append(names, s.Container)
		}
		scripts = append(scripts, t.script(at, name, s))
	}
	for _, name := range sortedNames(t.services) {
		visit(name, t.file)
	}
	return scripts, names
}

// script starts one of them.
func (t *companions) script(at, name string, s service) string {
	agent := t.services[t.agent]
	for _, key := range sortedNames(s.Rest) {
		if !slices.Contains(idle, key) && key != "expose" && key != "ports" {
			t.wrongf("%s.%s: a service beside the agent's is a process in its sandbox: want image or build, entrypoint, command, environment, working_dir, healthcheck and depends_on", at, key)
		}
	}
	if len(s.Volumes) > 0 {
		t.wrongf("%s.volumes: a service beside the agent's has the agent's files", at)
	}
	same := s.Image != "" && s.Image == agent.Image
	if !s.Build.IsZero() {
		same = same || reflect.DeepEqual(s.build(t.task, at+".build", path.Dir(t.file)), t.machine.build)
	}
	if !same {
		t.wrongf("%s: its image is not the agent's, and a task here is one machine, with every sandbox: only services of the agent's image run in it", at)
	}
	args := append(t.words(at+".entrypoint", s.Entrypoint), t.words(at+".command", s.Command)...)
	if len(args) == 0 {
		t.wrongf("%s: want a command: what the image would start is not known here", at)
	}
	if s.Entrypoint == nil && t.hasEntrypoint() {
		t.wrongf("%s.entrypoint: it is missing, and that of the Dockerfile is not run here", at)
	}
	within := t.within(at, s)
	script := fmt.Sprintf("mkdir -p /var/log\n(%s %s) </dev/null >>%s 2>&1 &", within, strings.Join(args, " "), quote("/var/log/"+name+".log"))
	if h := s.Health; h != nil && !h.Disable {
		script += "\n" + t.health(at+".healthcheck", h, within)
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

// words are a command for a shell: a list of words, or a text that a shell takes apart.
func (t *companions) words(at string, command any) (words []string) {
	switch command := command.(type) {
	case nil:
	case string:
		words = []string{"sh", "-c", quote("exec " + t.literal(at, command))}
	case []any:
		for _, word := range command {
			words = append(words, quote(t.literal(at, fmt.Sprint(word))))
		}
	default:
		t.wrongf("%s: %v, want a text or a list of words", at, command)
	}
	return words
}

// dependsOn reads a list of names, or a mapping from names to conditions.
func (t *companions) dependsOn(at string, value any) (names []string) {
	switch value := value.(type) {
	case nil:
	case []any:
		for _, name := range value {
			names = append(names, fmt.Sprint(name))
		}
	case map[string]any:
		for _, name := range sortedNames(value) {
			how, _ := value[name].(map[string]any)
			if is, given := how["condition"]; given && is != "service_started" && is != "service_healthy" {
				t.wrongf("%s.depends_on.%s: condition %v, want service_started or service_healthy", at, name, is)
			}
		}
		names = slices.Sorted(maps.Keys(value))
	default:
		t.wrongf("%s.depends_on: %v, want names of services", at, value)
	}
	return names
}

// composeHealth is a health check of a compose file.
type composeHealth struct {
	Test     any
	Interval string
	Timeout  string
	Start    string `yaml:"start_period"`
	Often    string `yaml:"start_interval"`
	Retries  float64
	Disable  bool
}

// health waits until a service is well.
func (t *companions) health(at string, h *composeHealth, within string) string {
	seconds := func(key, text string, otherwise float64) float64 {
		if text == "" {
			return otherwise
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.wrongf("%s.%s: %q, want a duration such as 5s", at, key, text)
		}
		return d.Seconds()
	}
	shell := func(text any) string { return "sh -c " + quote(t.literal(at+".test", fmt.Sprint(text))) }
	command := ""
	words, list := h.Test.([]any)
	switch {
	case list && len(words) == 1 && words[0] == "NONE":
		return ""
	case list && len(words) > 1 && words[0] == "CMD":
		command = strings.Join(t.words(at+".test", words[1:]), " ")
	case list && len(words) == 2 && words[0] == "CMD-SHELL":
		command = shell(words[1])
	case !list && h.Test != nil:
		command = shell(h.Test)
	default:
		t.wrongf("%s.test: %v, want a text, or a list that begins with CMD, CMD-SHELL or NONE", at, h.Test)
	}
	return health{
		Command: within + " " + command, Interval: seconds("interval", h.Interval, 30), Timeout: seconds("timeout", h.Timeout, 30),
		Start: seconds("start_period", h.Start, 0), StartInterval: seconds("start_interval", h.Often, 5), Retries: h.Retries,
	}.script()
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
