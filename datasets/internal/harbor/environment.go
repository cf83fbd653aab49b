package harbor

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"trajgen/sandbox"

	"go.yaml.in/yaml/v3"
)

// environment is the machine that a task wants.
type environment struct {
	image string
	cwd   string // "" is the image's
	env   map[string]string
	files map[string]file // relative to the working directory
	setup []string        // shell commands
	from  string          // where it is said
}

var composeNames = []string{"docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"}

// environment finds out the machine: an existing image, or a Dockerfile without a build step.
func (t *task) environment(m machine) (e environment) {
	compose := ""
	for _, name := range composeNames {
		if t.has("environment/" + name) {
			compose = "environment/" + name
		}
	}
	switch {
	case compose != "":
		e = t.compose(compose)
		if m.Image != "" && e.image != "" && e.image != m.Image {
			t.wrongf("%s: image %q, and task.toml has docker_image %q", compose, e.image, m.Image)
		}
		if e.image == "" && m.Image == "" {
			t.wrongf("%s: services.main names no image, and task.toml no docker_image", compose)
		}
	case m.Image != "":
		e.from = "docker_image"
	case t.has("environment/Dockerfile"):
		e = t.dockerfile("environment/Dockerfile", m.Cwd)
	default:
		e.from = "run"
	}
	e.image, e.cwd = cmp.Or(m.Image, e.image), cmp.Or(m.Cwd, e.cwd)
	if e.cwd != "" && !path.IsAbs(e.cwd) {
		t.wrongf("the working directory %q is not absolute", e.cwd)
	}
	env := map[string]string{}
	maps.Copy(env, e.env)
	maps.Copy(env, m.Env)
	e.env = env
	return e
}

// compose takes a file whose one service is an image as it is.
func (t *task) compose(name string) (e environment) {
	e.from = name
	var whole struct {
		Version  any    `yaml:"version"`
		Name     string `yaml:"name"`
		Services map[string]struct {
			Image       string         `yaml:"image"`
			WorkingDir  string         `yaml:"working_dir"`
			Environment any            `yaml:"environment"`
			Rest        map[string]any `yaml:",inline"`
		} `yaml:"services"`
		Rest map[string]any `yaml:",inline"`
	}
	text := t.text(name)
	if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
		t.wrongf("%s: %v", name, err)
		return e
	}
	const advice = "a task here is one machine: want the service main alone, with image, environment and working_dir"
	if strings.Contains(text, "${") {
		t.wrongf("%s: it has variables of who runs it (${...}), of which a task gets nothing", name)
	}
	for _, key := range sortedNames(whole.Rest) {
		t.wrongf("%s: %s: %s", name, key, advice)
	}
	for _, service := range sortedNames(whole.Services) {
		if service != "main" {
			t.wrongf("%s: service %s: %s", name, service, advice)
		}
	}
	service, ok := whole.Services["main"]
	if !ok {
		t.wrongf("%s: there is no service main: %s", name, advice)
	}
	for _, key := range sortedNames(service.Rest) {
		t.wrongf("%s: services.main.%s: %s", name, key, advice)
	}
	e.image, e.cwd = service.Image, service.WorkingDir
	if e.env, ok = composeEnv(service.Environment); !ok {
		t.wrongf("%s: services.main.environment: %v, want variables and their values", name, service.Environment)
	}
	return e
}

// composeEnv takes a mapping, or a list of NAME=VALUE.
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
	return env, !slices.ContainsFunc(sortedNames(env), func(name string) bool { return !sandbox.IsVariable(name) })
}
