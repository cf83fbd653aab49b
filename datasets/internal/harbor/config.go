package harbor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// config is a task.toml.
type config struct {
	whole map[string]any // as it was written

	Task struct {
		Name     string
		Keywords []string
	}
	Agent       part
	Verifier    part
	Environment machine
	Solution    struct{ Env variables }

	Artifacts []artifact // that a verifier in another image gets

	made environment // that of the agent

	Strategy string `json:"multi_step_reward_strategy"` // final: the last step's reward is the task's; else the mean of all
	Steps    []step
}

// part is what tables of the agent and of the verifier have in common.
type part struct {
	Seconds float64 `json:"timeout_sec"`
	Each    float64 `json:"test_timeout_sec"` // of each test, which is our own
	Env     variables
	network
	// Of a verifier alone: shared, or separate for one in an image of its own.
	Place       string   `json:"environment_mode"`
	Environment *machine `json:"environment"`
}

type step struct {
	Name            string
	Agent, Verifier part
	Least           float64 `json:"min_reward"`
}

// machine is what task.toml says of the environment.
type machine struct {
	Image  string  `json:"docker_image"`
	Cwd    string  `json:"workdir"`
	Skills string  `json:"skills_dir"`
	CPUs   float64 `json:"cpus"`
	Memory float64 `json:"memory_mb"`
	Disk   float64 `json:"storage_mb"`
	// How the first version of the format had them: "2G".
	OldMemory string `json:"memory"`
	OldDisk   string `json:"storage"`

	Servers []mcpServer `json:"mcp_servers"`
	Env     variables
	network
	Internet *bool  `json:"allow_internet"`
	Health   health `json:"healthcheck"`
}

// mcpServer is an MCP server that the agent has: a command in the sandbox, or a URL.
type mcpServer struct {
	Name, Transport, URL, Command string
	Args                          []string
}

// servers are the MCP servers as a row declares them.
func (m *machine) servers(t *task) map[string]any {
	all := map[string]any{}
	for _, s := range m.Servers {
		_, twice := all[s.Name]
		stdio := s.Transport == "stdio" || s.Transport == "" && s.URL == ""
		switch {
		case s.Name == "" || twice:
			t.wrongf("environment.mcp_servers: %q: want a name that no other has", s.Name)
		case stdio && (s.Command == "" || s.URL != ""), !stdio && (s.URL == "" || s.Command != ""):
			t.wrongf("environment.mcp_servers: %s: want a command for stdio, or else a url", s.Name)
		case stdio:
			all[s.Name] = map[string]any{"command": append([]string{s.Command}, s.Args...)}
		case s.Transport == "streamable-http":
			all[s.Name] = map[string]any{"url": s.URL}
		default: // the format's own default
			all[s.Name] = map[string]any{"url": s.URL, "transport": "sse"}
		}
	}
	return all
}

// The defaults that the format has.
const (
	verifierSeconds = 600
	memoryMB        = 2048
	storageMB       = 10240
	cpus            = 1
)

// config reads task.toml.
func (t *task) config() (c config) {
	c.decode(t)
	c.Verifier.Env.check(t, "verifier")
	c.Environment.Env.check(t, "environment")
	c.Solution.Env.check(t, "solution")
	c.Agent.check(t, "agent")
	c.Verifier.check(t, "verifier")
	c.Environment.check(t, "environment")
	if own := c.Verifier.Environment; own != nil {
		own.Env.check(t, "verifier.environment")
		own.check(t, "verifier.environment")
	}
	if h := c.Environment.Health; h != (health{}) && h.Command == "" {
		t.wrongf("%s: environment.healthcheck.command: it is empty, and would find everything well", configName)
	}
	for i, s := range c.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		if s.Name == "" {
			t.wrongf("%s: %s.name: there is none, want the name of a directory in steps", configName, at)
		}
		if slices.ContainsFunc(c.Steps[:i], func(other step) bool { return other.Name == s.Name }) {
			t.wrongf("%s: %s.name: %q is there twice", configName, at, s.Name)
		}
		if s.Agent.Mode != "" || s.Verifier.Mode != "" {
			t.wrongf("%s: %s: a step's network cannot differ from the task's", configName, at)
		}
		s.Verifier.Env.check(t, at+".verifier")
	}
	return c
}

// metadata is free: it says something of the task, and nothing of its playing.
func (c *config) metadata() (difficulty string, tags []string) {
	free, _ := c.whole["metadata"].(map[string]any)
	difficulty, _ = free["difficulty"].(string)
	more, _ := free["tags"].([]any)
	tags = c.Task.Keywords
	for _, tag := range append([]any{free["category"]}, more...) {
		if text, ok := tag.(string); ok {
			tags = append(tags, text)
		}
	}
	return difficulty, slices.DeleteFunc(tags, func(tag string) bool { return strings.TrimSpace(tag) == "" })
}

// resources are those of the sandbox.
func (m *machine) resources() map[string]any {
	megabytes := func(n float64) string { return fmt.Sprintf("%gM", n) }
	return map[string]any{
		"cpus":   cmp.Or(m.CPUs, cpus),
		"memory": cmp.Or(m.OldMemory, megabytes(cmp.Or(m.Memory, memoryMB))),
		"disk":   cmp.Or(m.OldDisk, megabytes(cmp.Or(m.Disk, storageMB))),
	}
}

// fromRunner is a value that comes from the environment of the user who runs the task.
var fromRunner = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}$`)

// variables are those of a table.
type variables map[string]string

// check puts the defaults of variables in their place.
func (v variables) check(t *task, at string) {
	for _, name := range sortedNames(v) {
		m := fromRunner.FindStringSubmatch(v[name])
		if m == nil {
			continue
		}
		if v[name] = m[3]; m[2] == "" {
			t.wrongf("%s: %s.env.%s: it is taken from the runner's environment, of which a task gets nothing; "+
				"write its value, or a default as ${%s:-VALUE}", configName, at, name, m[1])
		}
	}
}
