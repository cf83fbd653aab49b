package harbor

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
)

// fields are those of a row.
func (t *task) fields(id string) map[string]any {
	c := t.config()
	network, allow := c.network(t)
	servers := c.Environment.servers(t)
	if len(t.wrong) > 0 {
		return nil // what follows would be about what it does not say
	}
	fields := map[string]any{
		"id": cmp.Or(c.Task.Name, id), "resources": c.Environment.resources(), "network": network,
		"task_toml": c.whole, "task_path": id,
	}
	given := func(field string, is bool, value any) {
		if is {
			fields[field] = value
		}
	}
	given("mcp", len(servers) > 0, map[string]any{"servers": servers})
	difficulty, tags := c.metadata()
	given("allow", len(allow) > 0, allow)
	given("difficulty", difficulty != "", difficulty)
	given("tags", len(tags) > 0, tags)
	c.made = t.environment(c.Environment)
	seconds := c.play(t, fields)
	given("limits", seconds > 0, map[string]any{"time": seconds})

	e := c.made
	if c.Environment.Health != (health{}) {
		e.setup = append(e.setup, c.Environment.Health.script())
	}
	t.place(fields, e)
	return fields
}

// play reads what is asked, how it is judged and how it is solved, and returns the agent's time: 0 when none is named.
func (c *config) play(t *task, fields map[string]any) (seconds float64) {
	if len(c.Steps) == 0 {
		fields["prompt"] = t.instruction("instruction.md") + c.Environment.skills()
		fields["verify"] = c.verify(t, "", c.Verifier, "tests", t.tree("tests"))
		if gold := c.solve(t, "solution"); gold != nil {
			fields["gold"] = append(gold, answer)
		}
		return c.Agent.Seconds
	}
	if t.has("instruction.md") {
		t.wrongf("instruction.md: a task with steps has its instructions in steps/NAME/instruction.md")
	}
	var messages, checks, gold []any
	solved, timed := true, true
	shared := t.tree("tests")
	for i, s := range c.Steps {
		dir := path.Join("steps", s.Name)
		entries, _ := fs.ReadDir(t.files, dir) // one that is not there has no instruction either
		for _, entry := range entries {
			if name := entry.Name(); name != "instruction.md" && name != "tests" && name != "solution" {
				t.wrongf("%s/%s: a step is played with the files of the one before it; want instruction.md, tests and solution alone", dir, name)
			}
		}
		messages = append(messages, map[string]any{"role": "user", "content": t.instruction(path.Join(dir, "instruction.md"))})
		tests := maps.Clone(shared)
		maps.Copy(tests, t.tree(path.Join(dir, "tests")))
		if c.Strategy != "final" || i == len(c.Steps)-1 {
			check := c.verify(t, s.Name, merged(c.Verifier, s.Verifier), "tests", tests)
			if i < len(c.Steps)-1 { // the last step's end is the task's
				check["after"] = i + 1
				if s.Least != 0 {
					check["at_least"] = s.Least
				}
			}
			checks = append(checks, check)
		} else if s.Least != 0 {
			t.wrongf("%s: steps[%d].min_reward: with multi_step_reward_strategy final only the last step is judged", configName, i)
		}
		steps := c.solve(t, path.Join(dir, "solution"))
		solved = solved && steps != nil
		gold = append(append(gold, steps...), answer)
		own := cmp.Or(s.Agent.Seconds, c.Agent.Seconds)
		timed = timed && own > 0
		seconds += own
	}
	first := messages[0].(map[string]any)
	first["content"] = first["content"].(string) + c.Environment.skills()
	fields["messages"], fields["verify"] = messages, checks
	if solved {
		fields["gold"] = gold
	}
	if !timed {
		return 0
	}
	return seconds
}

// skills tells the agent of those in its image.
func (m *machine) skills() string {
	if m.Skills == "" {
		return ""
	}
	return fmt.Sprintf("\n\nSkills lie in the folders of %s. Each has a SKILL.md with instructions: look which fit, and read those first.\n", m.Skills)
}

func (t *task) instruction(name string) string {
	text := t.text(name)
	if strings.TrimSpace(text) == "" {
		t.wrongf("%s: it is missing or empty, and says what the agent is asked", name)
	}
	return text
}

// verify is the check of a row: test.sh, which leaves the reward in a file.
func (c *config) verify(t *task, name string, p part, dir string, tests map[string]file) map[string]any {
	if _, ok := tests["test.sh"]; !ok {
		t.wrongf("tests/test.sh: there is none, and it judges the task")
	}
	t.weigh(tests)
	check := map[string]any{
		"command": "/tests/test.sh", "tests": contents(tests, "/tests/"), "reward": "file",
		"timeout": cmp.Or(p.Seconds, verifierSeconds),
	}
	if p.Each > 0 {
		check["test_timeout"] = p.Each
	}
	if env := p.variables(); len(env) > 0 {
		check["env"] = env
	}
	if v := c.verifier(t, p, dir); len(v) > 0 {
		check["verifier"] = v
	}
	if name != "" {
		check["name"] = name
	}
	return check
}

// answer ends a reference solution.
var answer = map[string]any{"content": "Done."}

// solveSeconds is the most that a command in the foreground may take.
const solveSeconds = 600

// solve is a reference solution: its files are put into /solution and its script is run. It is nil when there is none.
func (c *config) solve(t *task, dir string) []any {
	files := t.tree(dir)
	if _, ok := files["solve.sh"]; !ok {
		return nil
	}
	commands, err := unpack("/solution", files)
	if err != nil {
		t.wrongf("%s: %v", dir, err)
	}
	var run strings.Builder
	for _, name := range sortedNames(c.Solution.Env) {
		fmt.Fprintf(&run, "%s=%s ", name, quote(c.Solution.Env[name]))
	}
	run.WriteString("/solution/solve.sh")
	return typed(append(commands, run.String()))
}

// typed are steps that run commands in the terminal.
func typed(commands []string) (steps []any) {
	for _, command := range commands {
		arguments := map[string]any{"command": command, "timeout": solveSeconds}
		steps = append(steps, map[string]any{"tool_calls": []any{map[string]any{"name": "terminal", "arguments": arguments}}})
	}
	return steps
}
