package harbor

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/reward"
)

// firstName is the file of a task in the first format of Terminal-Bench.
const firstName = "task.yaml"

// first is a task.yaml. What says nothing of the playing is metadata.
type first struct {
	Instruction  string
	Descriptions []struct{ Key, Description string } // of older tasks: the one called base is the instruction
	Difficulty   string
	Category     string
	Tags         []string
	Parser       string  `yaml:"parser_name"`
	Agent        float64 `yaml:"max_agent_timeout_sec"`
	Test         float64 `yaml:"max_test_timeout_sec"`
}

// The defaults of the format.
const (
	firstAgentSeconds = 360
	firstTestSeconds  = 60
	firstParser       = "pytest"
)

// IsFirst says whether a text is a task in the first format, by its keys.
func IsFirst(text []byte) bool {
	var keys map[string]any
	if yaml.Unmarshal(text, &keys) != nil {
		return false
	}
	has := func(name string) bool { return keys[name] != nil }
	return (has("instruction") || has("descriptions")) && (has("parser_name") || has("max_agent_timeout_sec"))
}

// first are the fields of a row of a task in the first format.
func (t *task) first(id string) map[string]any {
	var c first
	var whole map[string]any
	text := []byte(t.text(firstName))
	if err := yaml.Unmarshal(text, &whole); err != nil {
		t.wrongf("%s: %v", firstName, err)
		return nil
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.wrongf("%s: %v", firstName, err)
		return nil
	}
	for _, d := range c.Descriptions {
		if d.Key == "base" {
			c.Instruction = cmp.Or(c.Instruction, d.Description)
		}
	}
	if strings.TrimSpace(c.Instruction) == "" {
		t.wrongf("%s: instruction: it is missing or empty", firstName)
	}
	if c.Parser = cmp.Or(c.Parser, firstParser); !slices.Contains(reward.Parsers(), c.Parser) {
		t.wrongf("%s: parser_name: %q, want one of %s", firstName, c.Parser, strings.Join(reward.Parsers(), ", "))
	}
	delete(whole, "instruction")
	fields := map[string]any{
		"id": id, "task_path": id, "prompt": c.Instruction, "network": modes["public"], "task_yaml": whole,
		"limits": map[string]any{"time": cmp.Or(c.Agent, firstAgentSeconds)},
	}
	tests := t.tree("tests")
	script := "run-tests.sh"
	run, err := t.one(script)
	if err != nil {
		t.wrongf("%s: %v", script, err)
	}
	tests[script] = run
	t.weigh(tests)
	fields["verify"] = map[string]any{
		"command": "bash /tests/" + script, "tests": contents(tests, "/tests/"), "reward": c.Parser,
		"env": map[string]string{"TEST_DIR": "/tests"}, "timeout": cmp.Or(c.Test, firstTestSeconds),
	}
	if gold := t.firstGold(); gold != nil {
		fields["gold"] = append(gold, answer)
	}
	e := t.firstMachine()
	given := func(field string, is bool, value any) {
		if is {
			fields[field] = value
		}
	}
	given("difficulty", c.Difficulty != "", c.Difficulty)
	tags := slices.DeleteFunc(append([]string{c.Category}, c.Tags...), func(tag string) bool { return strings.TrimSpace(tag) == "" })
	given("tags", len(tags) > 0, tags)
	t.place(fields, e)
	return fields
}

// firstMachine is the service of the agent, client, or the Dockerfile alone.
func (t *task) firstMachine() (e environment) {
	if name := t.composeFile("."); name != "" {
		e = t.compose(name, "client")
	} else if t.has("Dockerfile") {
		e.from, e.build = "Dockerfile", t.build(".", "Dockerfile")
	}
	if e.image == "" && e.build == nil && len(t.wrong) == 0 {
		t.wrongf("there is neither an image nor a Dockerfile")
	}
	return e
}

// firstGold is the reference solution: a script, or a list of commands. Keys that are pressed in a terminal are none.
func (t *task) firstGold() []any {
	if t.has("solution.sh") {
		script, err := t.one("solution.sh")
		if err != nil {
			t.wrongf("solution.sh: %v", err)
			return nil
		}
		commands, err := unpack("/oracle", map[string]file{"solution.sh": script})
		if err != nil {
			t.wrongf("solution.sh: %v", err)
		}
		return typed(append(commands, "bash /oracle/solution.sh"))
	}
	var list []struct {
		Command     string
		AppendEnter *bool `yaml:"append_enter"`
	}
	if err := yaml.Unmarshal([]byte(t.text("solution.yaml")), &list); err != nil {
		t.wrongf("solution.yaml: %v", err)
	}
	var commands []string
	for _, c := range list {
		if c.AppendEnter != nil && !*c.AppendEnter {
			return nil
		}
		commands = append(commands, c.Command)
	}
	return typed(commands)
}

// place adds the machine to a row.
func (t *task) place(fields map[string]any, e environment) {
	for name, value := range map[string]string{"image": e.image, "cwd": e.cwd} {
		if value != "" {
			fields[name] = value
		}
	}
	if e.build != nil {
		fields["build"] = e.build
	}
	if len(e.env) > 0 {
		fields["env"] = e.env
	}
	if len(e.setup) > 0 {
		fields["setup"] = "set -e\n" + strings.Join(e.setup, "\n")
	}
	if len(e.beside) > 0 {
		fields["services"], fields["hosts"] = e.beside, e.hosts
	}
	fields["environment_from"] = e.from
	e.serve(t, fields)
	digest, err := checksum(context.Background(), t.files, parts(t.files)...)
	if err != nil {
		t.wrongf("%v", err)
	}
	fields["task_checksum"] = digest
}

// parts are what the checksum of a task covers.
func parts(files fs.FS) []string {
	if _, err := fs.Stat(files, configName); err == nil {
		return harborParts
	}
	return []string{"."}
}

var harborParts = []string{configName, "instruction.md", "README.md", "trajectory.json", "environment", "tests", "solution", "steps"}

// weigh refuses tests that are too large.
func (t *task) weigh(tests map[string]file) {
	if total := size(tests); total > mostTests {
		t.wrongf("tests: %d MiB of files, over the limit of %d MiB; have them fetch or make what is large", total>>20, mostTests>>20)
	}
}

// isFirst says whether a directory is a task in the first format.
func isFirst(files fs.FS, dir string) bool {
	t := &task{files: files}
	return IsFirst([]byte(t.text(path.Join(dir, firstName))))
}
