package harbor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// config is a parsed task.toml.
type config struct {
	whole map[string]any // as it was written

	name       string
	tags       []string
	difficulty string

	agent    part
	verifier part
	steps    []step
	final    bool // the last step's reward is the task's; else the mean of all

	image     string
	cwd       string
	env       map[string]string
	resources map[string]any
	network   string // as a row names it
	allow     []string
	health    string // a shell command that waits until the environment is well

	solution map[string]string // variables
}

// part is what tables of the agent and of the verifier have in common.
type part struct {
	seconds float64
	env     map[string]string
	network network
}

type step struct {
	name            string
	agent, verifier part
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
	if err := toml.Unmarshal([]byte(t.text(configName)), &c.whole); err != nil {
		t.wrongf("%s: %v", configName, err)
		return c
	}
	root := &table{task: t, values: c.whole}
	for _, key := range []string{"schema_version", "version"} {
		if value, ok := root.take(key); ok && !strings.HasPrefix(fmt.Sprint(value), "1") {
			root.wrongf(key, "%v, want 1.0 or another that begins with 1", value)
		}
	}
	root.text("source")
	root.refuse("artifacts", "files that a run brings home are not collected; leave them out")
	c.about(root)
	c.agent.agent(root.table("agent"))
	c.verifier.verifier(root.table("verifier"))
	c.environment(root.table("environment"))
	solution := root.table("solution")
	c.solution = solution.env("env")
	solution.done()
	c.readSteps(root)
	root.done()
	return c
}

// about reads what says something of the task and nothing of its playing.
func (c *config) about(root *table) {
	about := root.table("task")
	c.name = about.text("name")
	about.text("description")
	for _, author := range about.tables("authors") {
		author.text("name")
		author.text("email")
		author.done()
	}
	c.tags = about.list("keywords")
	about.done()
	free := root.table("metadata")
	c.difficulty, _ = free.values["difficulty"].(string)
	if category, ok := free.values["category"].(string); ok {
		c.tags = append(c.tags, category)
	}
	if tags, ok := free.values["tags"].([]any); ok {
		for _, tag := range tags {
			if text, ok := tag.(string); ok {
				c.tags = append(c.tags, text)
			}
		}
	}
	c.tags = slices.DeleteFunc(c.tags, func(tag string) bool { return strings.TrimSpace(tag) == "" })
}

// read reads what the agent's table and the verifier's share.
func (p *part) read(t *table) {
	p.seconds = t.number("timeout_sec")
	if user := t.text("user"); user != "" && user != "root" && user != "0" {
		t.wrongf("user", "%q, but all commands of a sandbox are its root's", user)
	}
	p.network.read(t)
}

func (p *part) agent(t *table) {
	p.read(t)
	t.done()
}

func (p *part) verifier(t *table) {
	p.read(t)
	p.env = t.env("env")
	if mode := t.text("environment_mode"); mode != "" && mode != "shared" {
		t.wrongf("environment_mode", "%q, but the verifier runs in the agent's sandbox: want shared", mode)
	}
	t.refuse("environment", "the verifier runs in the agent's sandbox and has no environment of its own")
	t.refuse("collect", "commands that collect something for a verifier elsewhere are not run")
	t.done()
}

func (c *config) environment(t *table) {
	c.image, c.cwd = t.text("docker_image"), t.text("workdir")
	t.number("build_timeout_sec") // nothing is built
	if system := t.text("os"); system != "" && system != "linux" {
		t.wrongf("os", "%q, want linux", system)
	}
	c.resources = map[string]any{"cpus": orDefault(t.number("cpus"), cpus)}
	for _, size := range []struct {
		name, key, old string
		standard       float64
	}{{"memory", "memory_mb", "memory", memoryMB}, {"disk", "storage_mb", "storage", storageMB}} {
		c.resources[size.name] = fmt.Sprintf("%gM", orDefault(t.number(size.key), size.standard))
		if old := t.text(size.old); old != "" { // how the first version had it: "2G"
			c.resources[size.name] = old
		}
	}
	t.refuse("gpus", "a sandbox has none")
	t.refuse("gpu_types", "a sandbox has no GPU")
	t.refuse("skills_dir", "agents here have no skills that a task could bring")
	t.refuse("mcp_servers", "a task's own MCP servers are not started")
	c.env = t.env("env")
	c.health = health(t)
	own := network{}
	own.read(t)
	if internet, given := t.flag("allow_internet"); given {
		own.deprecated(t, internet)
	}
	t.done()
	c.network, c.allow = own.forAll(t, c.agent.network, c.verifier.network)
}

func orDefault(value, standard float64) float64 {
	if value == 0 {
		return standard
	}
	return value
}

// readSteps reads the steps of a task that has several.
func (c *config) readSteps(root *table) {
	strategy := root.text("multi_step_reward_strategy")
	if c.final = strategy == "final"; strategy != "" && strategy != "mean" && !c.final {
		root.wrongf("multi_step_reward_strategy", "%q, want mean or final", strategy)
	}
	for _, t := range root.tables("steps") {
		s := step{name: t.text("name")}
		if s.name == "" || s.name == "." || s.name == ".." || strings.ContainsAny(s.name, `/\`) {
			t.wrongf("name", "%q, want the name of a directory in steps", s.name)
			continue
		}
		if slices.ContainsFunc(c.steps, func(other step) bool { return other.name == s.name }) {
			t.wrongf("name", "%q is there twice", s.name)
		}
		s.agent.agent(t.table("agent"))
		s.verifier.verifier(t.table("verifier"))
		if s.agent.network.given() || s.verifier.network.given() {
			t.wrongf("agent", "a step's network cannot differ from the task's")
		}
		t.refuse("min_reward", "steps are judged when the last one is done, so that none can end the task")
		t.refuse("artifacts", "files that a run brings home are not collected; leave them out")
		t.refuse("healthcheck", "the environment is only looked at before the first step")
		t.done()
		c.steps = append(c.steps, s)
	}
}
