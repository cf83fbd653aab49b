package harbor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/sandbox"
)

// environment is the machine that a task wants.
type environment struct {
	image string
	build map[string]any // how the image is made, instead
	cwd   string         // "" is the image's
	env   map[string]string
	setup []string // shell commands
	from  string   // where it is said

	services []string // scripts that start what runs beside the agent
	beside   []any    // services in containers of their own
	hosts    []string // names that such services have for the agent's machine, and further ones of their own
}

var composeNames = []string{"docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"}

// composeFile is the one in a directory, or "".
func (t *task) composeFile(dir string) (found string) {
	for _, name := range composeNames {
		if t.has(path.Join(dir, name)) {
			found = path.Join(dir, name)
		}
	}
	return found
}

// environment finds out the machine: an image, or how it is made.
func (t *task) environment(m machine) (e environment) {
	const dockerfile = "environment/Dockerfile"
	compose := t.composeFile("environment")
	switch {
	case compose != "":
		e = t.compose(compose, "main")
		if m.Image != "" && e.image != "" && e.image != m.Image {
			t.wrongf("%s: image %q, and task.toml has docker_image %q", compose, e.image, m.Image)
		}
		if e.image == "" && e.build == nil && m.Image == "" {
			if !t.has(dockerfile) {
				t.wrongf("%s: services.main names no image, and task.toml no docker_image", compose)
			}
			e.build = t.build("environment", "Dockerfile")
		}
	case m.Image != "":
		e.from = "docker_image"
	case t.has(dockerfile):
		e.from, e.build = dockerfile, t.build("environment", "Dockerfile")
	default:
		e.from = "run"
	}
	if m.Image != "" { // made from the same Dockerfile, beforehand
		e.image, e.build = m.Image, nil
	}
	e.cwd = cmp.Or(m.Cwd, e.cwd)
	if e.cwd != "" && !path.IsAbs(e.cwd) {
		t.wrongf("the working directory %q is not absolute", e.cwd)
	}
	env := maps.Clone(e.env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, m.Env)
	e.env = env
	return e
}

// build is how an image is made from a directory of the task.
func (t *task) build(dir, dockerfile string) map[string]any {
	digest, err := checksum(context.Background(), t.files, dir)
	if err != nil {
		t.wrongf("%s: %v", dir, err)
	}
	return map[string]any{"dir": filepath.Join(t.at, filepath.FromSlash(dir)), "dockerfile": dockerfile, "digest": digest}
}

// service is one of a compose file. Rest is what a machine here cannot have.
type service struct {
	Image       string         `yaml:"image"`
	Build       yaml.Node      `yaml:"build"`
	WorkingDir  string         `yaml:"working_dir"`
	Environment any            `yaml:"environment"`
	Volumes     []any          `yaml:"volumes"`
	Entrypoint  any            `yaml:"entrypoint"`
	Command     any            `yaml:"command"`
	Container   string         `yaml:"container_name"`
	Hostname    string         `yaml:"hostname"`
	DependsOn   any            `yaml:"depends_on"`
	Health      *composeHealth `yaml:"healthcheck"`
	Networks    any            `yaml:"networks"`
	Rest        map[string]any `yaml:",inline"`
}

// idle are the keys of a service that say nothing of its machine: limits stand elsewhere. The command of the agent's only waits.
var idle = []string{"deploy", "init", "labels", "logging", "platform", "pull_policy", "stdin_open", "stop_grace_period", "stop_signal", "tty"}

// harness are variables that the programs set that these formats are from: images that they build, and where they keep logs.
var harness = regexp.MustCompile(`\$\{?(T_BENCH_|HOST_|ENV_|MAIN_IMAGE|PREBUILT_IMAGE|CONTEXT_DIR|TEST_DIR|CPUS|MEMORY)`)

// compose takes a file with the agent's machine, and services that run in it.
func (t *task) compose(name, agent string) (e environment) {
	e.from = name
	var whole struct {
		Version  any                       `yaml:"version"`
		Name     string                    `yaml:"name"`
		Services map[string]service        `yaml:"services"`
		Volumes  map[string]map[string]any `yaml:"volumes"`
		Networks map[string]map[string]any `yaml:"networks"`
		Rest     map[string]any            `yaml:",inline"`
	}
	if err := yaml.Unmarshal([]byte(t.text(name)), &whole); err != nil {
		t.wrongf("%s: %v", name, err)
		return e
	}
	advice := fmt.Sprintf("the agent's machine is the service %s: want image or build, environment and working_dir", agent)
	for _, key := range sortedNames(whole.Rest) {
		t.wrongf("%s: %s: want services, networks, and volumes that one of them has for itself", name, key)
	}
	for _, key := range sortedNames(whole.Networks) {
		if options := whole.Networks[key]; len(options) > 1 || len(options) == 1 && options["driver"] != "bridge" {
			t.wrongf("%s: networks.%s: a network here has no options, and task.toml says what it reaches", name, key)
		}
	}
	for _, key := range sortedNames(whole.Volumes) {
		if len(whole.Volumes[key]) > 0 {
			t.wrongf("%s: volumes.%s: a volume here is empty at first, without options", name, key)
		}
	}
	s, ok := whole.Services[agent]
	if !ok {
		t.wrongf("%s lacks the service %s: %s", name, agent, advice)
	}
	for _, key := range sortedNames(s.Rest) {
		if !slices.Contains(idle, key) {
			t.wrongf("%s: services.%s.%s: %s", name, agent, key, advice)
		}
	}
	if s.Entrypoint != nil || s.Health != nil || s.Hostname != "" {
		t.wrongf("%s: services.%s: entrypoint, healthcheck or hostname: %s", name, agent, advice)
	}
	for _, volume := range s.Volumes {
		if text, _ := volume.(string); !harness.MatchString(text) {
			t.wrongf("%s: services.%s.volumes: %s", name, agent, advice)
		}
	}
	at := fmt.Sprintf("%s: services.%s", name, agent)
	e.cwd = t.own(at+".working_dir", s.WorkingDir)
	if !s.Build.IsZero() {
		e.build = s.build(t, at+".build", path.Dir(name))
	} else if !harness.MatchString(s.Image) {
		e.image = t.own(at+".image", s.Image)
	}
	if e.env, ok = composeEnv(s.Environment); !ok {
		t.wrongf("%s.environment: %v, want variables and their values", at, s.Environment)
	}
	for _, name := range sortedNames(e.env) {
		e.env[name] = t.own(at+".environment", e.env[name])
	}
	if len(whole.Services) == 1 {
		return e
	}
	given := e
	if dir := path.Dir(name); e.build == nil && e.image == "" && t.has(path.Join(dir, "Dockerfile")) {
		given.build = t.build(dir, "Dockerfile")
	}
	beside := companions{task: t, file: name, agent: agent, services: whole.Services, machine: given, builds: map[string]map[string]any{}}
	beside.place(&e)
	return e
}

// own refuses a text with variables of whoever runs the task.
func (t *task) own(at, text string) string {
	if strings.Contains(text, "${") {
		t.wrongf("%s: %q has variables of who runs it, of which a task gets nothing", at, text)
	}
	return text
}

// build reads the key build: a directory, or a mapping.
func (s *service) build(t *task, at, dir string) map[string]any {
	var b struct {
		Context, Dockerfile, Target string
		Args                        any
		Rest                        map[string]any `yaml:",inline"`
	}
	if s.Build.Decode(&b.Context) != nil {
		if err := s.Build.Decode(&b); err != nil || len(b.Rest) > 0 {
			t.wrongf("%s: want a directory, or context, dockerfile, target and args", at)
		}
	}
	if harness.MatchString(b.Context) {
		b.Context = "."
	}
	context := path.Join(dir, t.own(at, b.Context))
	b.Dockerfile = cmp.Or(t.own(at, b.Dockerfile), "Dockerfile")
	if !filepath.IsLocal(b.Dockerfile) || !t.has(path.Join(context, b.Dockerfile)) {
		t.wrongf("%s: there is no %s in %s", at, b.Dockerfile, context)
		return nil
	}
	build := t.build(context, b.Dockerfile)
	args, ok := composeEnv(b.Args)
	if !ok {
		t.wrongf("%s.args: %v, want names and values", at, b.Args)
	}
	if len(args) > 0 {
		build["args"] = args
	}
	if b.Target != "" {
		build["target"] = b.Target
	}
	return build
}

// composeEnv takes a mapping, or a list of NAME=VALUE, without what only the harness knows.
func composeEnv(value any) (map[string]string, bool) {
	env := map[string]string{}
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for name, each := range value {
			switch each.(type) {
			case string, int, float64, bool:
			default: // nothing: the runner's own
				return nil, false
			}
			env[name] = fmt.Sprint(each)
		}
	case []any:
		for _, each := range value {
			text, _ := each.(string)
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				return nil, false
			}
			env[name] = value
		}
	default:
		return nil, false
	}
	maps.DeleteFunc(env, func(_, value string) bool { return harness.MatchString(value) })
	return env, !slices.ContainsFunc(sortedNames(env), func(name string) bool { return !sandbox.IsVariable(name) })
}
