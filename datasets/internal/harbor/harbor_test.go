package harbor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets/internal/harbor"
)

// tree writes files below a directory.
func tree(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with is a small whole task, and other files in it.
func with(files map[string]string) map[string]string {
	all := map[string]string{
		"task.toml": "version = \"1.0\"\n", "instruction.md": "Do it.\n",
		"tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
	}
	for name, text := range files {
		all[name] = text
	}
	return all
}

// only reads the one task of a directory.
func only(t testing.TB, dir string) harbor.Row {
	t.Helper()
	found, err := harbor.Open(dir)
	if err != nil || found == nil {
		t.Fatalf("Open = %v, %v", found, err)
	}
	var rows []harbor.Row
	for row, err := range found.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1", len(rows))
	}
	return rows[0]
}

// fields are what a task's row says, but for what differs between machines.
func fields(t testing.TB, row harbor.Row) map[string]any {
	t.Helper()
	if len(row.Wrong) > 0 {
		t.Fatalf("wrong: %q", row.Wrong)
	}
	var all map[string]any
	if err := json.Unmarshal(row.Object, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTask(t *testing.T) {
	row := only(t, tree(t, t.TempDir(), map[string]string{
		"a/b/task.toml": `schema_version = "1.1"
source = "org/set"
[task]
name = "org/greet"
description = "Greet."
keywords = ["k"]
authors = [{name = "A", email = "a@example.org"}]
[metadata]
difficulty = "hard"
category = "files"
tags = ["x", "y"]
anything = {goes = 2025-01-02}
[agent]
timeout_sec = 90.5
user = "root"
network_mode = "allowlist"
allowed_hosts = ["example.org"]
[verifier]
timeout_sec = 30
env = {A = "1", B = "${HOST_B:-two}"}
environment_mode = "shared"
network_mode = "allowlist"
allowed_hosts = ["example.org"]
[environment]
docker_image = "example.org/image:1"
build_timeout_sec = 5.0
cpus = 2
memory_mb = 512
storage_mb = 1024
gpus = 0
env = {GREETING = "hi"}
mcp_servers = [{name = "a", transport = "stdio", command = "python3", args = ["s.py"]}, {name = "b", url = "http://x/sse"},
  {name = "c", transport = "streamable-http", url = "http://x/mcp"}]
[environment.healthcheck]
command = "test -e /ready"
interval_sec = 0.5
retries = 7
[solution]
env = {WHO = "it's me"}
`,
		"a/b/instruction.md": "Greet.\n", "a/b/README.md": "?", "a/b/environment/Dockerfile": "FROM x\nRUN make\n",
		"a/b/tests/test.sh": "#!/bin/sh\n", "a/b/tests/data/x": "\xff", "a/b/solution/solve.sh": "echo", "a/b/solution/more": "m",
	}))
	got := fields(t, row)
	gold, _ := json.Marshal(got["gold"])
	for _, part := range []string{`WHO='it'\\''s me' /solution/solve.sh`, `mkdir -p '/solution'`, `"timeout":600`, `{"content":"Done."}`} {
		if !strings.Contains(string(gold), part) {
			t.Errorf("gold %s, want %s in it", gold, part)
		}
	}
	setup, _ := got["setup"].(string)
	for _, part := range []string{"until timeout 30 bash -c 'test -e /ready'", "-ge 7", "sleep 0.5"} {
		if !strings.Contains(setup, part) {
			t.Errorf("setup %s, want %s in it", setup, part)
		}
	}
	if sum, _ := got["task_checksum"].(string); len(sum) != 64 {
		t.Errorf("task_checksum %q", sum)
	}
	toml, _ := got["task_toml"].(map[string]any)
	if meta, _ := toml["metadata"].(map[string]any); cmp.Diff(map[string]any{"goes": "2025-01-02"}, meta["anything"]) != "" {
		t.Errorf("metadata %v is not as it was written", meta)
	}
	for _, bulky := range []string{"gold", "setup", "task_checksum", "task_toml"} {
		delete(got, bulky)
	}
	want := map[string]any{
		"id": "org/greet", "task_path": "a/b", "prompt": "Greet.\n", "image": "example.org/image:1", "environment_from": "docker_image",
		"env": map[string]any{"GREETING": "hi"}, "network": "allowlist", "allow": []any{"example.org"},
		"resources": map[string]any{"cpus": 2.0, "memory": "512M", "disk": "1024M"},
		"mcp": map[string]any{"servers": map[string]any{
			"a": map[string]any{"command": []any{"python3", "s.py"}}, "b": map[string]any{"url": "http://x/sse", "transport": "sse"},
			"c": map[string]any{"url": "http://x/mcp"},
		}},
		"difficulty": "hard", "tags": []any{"k", "files", "x", "y"}, "limits": map[string]any{"time": 90.5},
		"verify": map[string]any{
			"command": "/tests/test.sh", "reward": "file", "timeout": 30.0, "env": map[string]any{"A": "1", "B": "two"},
			"tests": map[string]any{"/tests/test.sh": "#!/bin/sh\n", "/tests/data/x": map[string]any{"base64": "/w=="}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// TestSteps plays a task of several steps as one conversation.
func TestSteps(t *testing.T) {
	files := map[string]string{
		"task.toml": `[agent]
timeout_sec = 10
[verifier]
env = {A = "1", B = "1"}
[[steps]]
name = "one"
[[steps]]
name = "two"
agent = {timeout_sec = 20}
verifier = {timeout_sec = 5, test_timeout_sec = 2, env = {B = "2"}}
`,
		"tests/common": "c", "steps/one/instruction.md": "First.", "steps/one/tests/test.sh": "1", "steps/one/solution/solve.sh": "s1",
		"steps/two/instruction.md": "Second.", "steps/two/tests/test.sh": "2", "steps/two/solution/solve.sh": "s2",
	}
	got := fields(t, only(t, tree(t, t.TempDir(), files)))
	check := func(name, script, b string, timeout float64) any {
		return map[string]any{"name": name, "command": "/tests/test.sh", "reward": "file", "timeout": timeout, "env": map[string]any{"A": "1", "B": b},
			"tests": map[string]any{"/tests/test.sh": script, "/tests/common": "c"}}
	}
	first := func(check any) any {
		check.(map[string]any)["after"] = 1.0
		return check
	}
	one, two := first(check("one", "1", "1", 600)), check("two", "2", "2", 5)
	two.(map[string]any)["test_timeout"] = 2.0
	if diff := cmp.Diff([]any{one, two}, got["verify"]); diff != "" {
		t.Errorf("verify (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"time": 30.0}, got["limits"]); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if messages, gold := got["messages"].([]any), got["gold"].([]any); len(messages) != 2 || len(gold) != 6 {
		t.Errorf("%d messages and %d steps of gold, want 2 and 6", len(messages), len(gold))
	}
	files["task.toml"] = "multi_step_reward_strategy = \"final\"\n" + files["task.toml"]
	got = fields(t, only(t, tree(t, t.TempDir(), files)))
	if diff := cmp.Diff([]any{two}, got["verify"]); diff != "" {
		t.Errorf("verify, of the last (-want +got):\n%s", diff)
	}
}

// TestDockerfile holds that a Dockerfile is handed over whole, with what it copies.
func TestDockerfile(t *testing.T) {
	dir := tree(t, t.TempDir(), with(map[string]string{
		"environment/Dockerfile": "FROM ubuntu:24.04\nENV PATH=/x:$PATH\nRUN make\nUSER app\n", "environment/one.txt": "1",
		"task.toml": "[environment]\nworkdir = '/app'\nskills_dir = '/skills'\n",
	}))
	row := only(t, dir)
	got := fields(t, row)
	build, _ := got["build"].(map[string]any)
	digest := build["digest"]
	if prompt, _ := got["prompt"].(string); !strings.Contains(prompt, "Skills lie in the folders of /skills.") {
		t.Errorf("prompt %q", prompt)
	}
	delete(build, "digest")
	want := map[string]any{"dir": filepath.Join(dir, "environment"), "dockerfile": "Dockerfile"}
	if diff := cmp.Diff([]any{want, "/app", "environment/Dockerfile"}, []any{build, got["cwd"], got["environment_from"]}); diff != "" {
		t.Errorf("build, cwd, environment_from (-want +got):\n%s", diff)
	}
	tree(t, dir, map[string]string{"environment/one.txt": "2"})
	if again := fields(t, only(t, dir))["build"].(map[string]any)["digest"]; digest == nil || again == digest {
		t.Errorf("the digest is %v, and %v with another file", digest, again)
	}
}

// TestFirst reads tasks of Terminal-Bench's first format.
func TestFirst(t *testing.T) {
	files := map[string]string{
		"task.yaml":        "instruction: |-\n  Say hello.\nauthor_name: a\ndifficulty: easy\ncategory: files\ntags: [x]\nparser_name: pytest\nmax_agent_timeout_sec: 90.0\n",
		"Dockerfile":       "FROM x\nRUN make\n",
		"run-tests.sh":     "pytest",
		"solution.sh":      "echo",
		"tests/test_it.py": "def test(): pass",
		"docker-compose.yaml": "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n" +
			"    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    command: [sh, -c, sleep infinity]\n" +
			"    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n      - A=1\n    volumes:\n      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\n",
	}
	dir := tree(t, filepath.Join(t.TempDir(), "hello"), files)
	got := fields(t, only(t, dir))
	want := []any{
		"hello", "Say hello.", "full", "easy", []any{"files", "x"}, map[string]any{"A": "1"}, map[string]any{"time": 90.0},
		map[string]any{
			"command": "bash /tests/run-tests.sh", "reward": "pytest", "timeout": 60.0, "env": map[string]any{"TEST_DIR": "/tests"},
			"tests": map[string]any{"/tests/run-tests.sh": "pytest", "/tests/test_it.py": "def test(): pass"},
		},
	}
	have := []any{got["id"], got["prompt"], got["network"], got["difficulty"], got["tags"], got["env"], got["limits"], got["verify"]}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if build, _ := got["build"].(map[string]any); build["dir"] != dir || build["dockerfile"] != "Dockerfile" {
		t.Errorf("build %v", build)
	}
	if gold, _ := json.Marshal(got["gold"]); !strings.Contains(string(gold), "bash /oracle/solution.sh") {
		t.Errorf("gold %s", gold)
	}
	for name, want := range map[string]string{
		"task.yaml":           `parser_name: "junit", want one of mlebench, pytest, swebench, swelancer, sweperf`,
		"docker-compose.yaml": "services.db: want image or build",
	} {
		other := map[string]string{}
		for file, text := range files {
			other[file] = text
		}
		other[name] += map[string]string{"task.yaml": "", "docker-compose.yaml": "  db:\n    command: y\n"}[name]
		other[name] = strings.Replace(other[name], "parser_name: pytest", "parser_name: junit", 1)
		row := only(t, tree(t, t.TempDir(), other))
		if !strings.Contains(strings.Join(row.Wrong, "\n"), want) {
			t.Errorf("%s: %q, want %q", name, row.Wrong, want)
		}
	}
	files["solution.yaml"] = "- command: echo hi\n  min_timeout_sec: 1\n- command: ':wq'\n  append_enter: false\n"
	delete(files, "solution.sh")
	if got := fields(t, only(t, tree(t, t.TempDir(), files))); got["gold"] != nil {
		t.Errorf("keys pressed in a terminal are taken for commands: %v", got["gold"])
	}
}

func TestCompose(t *testing.T) {
	got := fields(t, only(t, tree(t, t.TempDir(), with(map[string]string{
		"environment/docker-compose.yaml": "services:\n  main:\n    image: img:1\n    working_dir: /w\n    environment: [A=1, B=x=y]\n",
	}))))
	if diff := cmp.Diff([]any{"img:1", "/w", map[string]any{"A": "1", "B": "x=y"}}, []any{got["image"], got["cwd"], got["env"]}); diff != "" {
		t.Errorf("image, cwd, env (-want +got):\n%s", diff)
	}
}

// TestContainers reads services with images of their own.
func TestContainers(t *testing.T) {
	dir := tree(t, t.TempDir(), with(map[string]string{
		"environment/docker-compose.yaml": `
volumes: {data: {}}
networks: {n: {driver: bridge}, m: }
services:
  main: {build: ., networks: [n], depends_on: {migrate: {condition: service_completed_successfully}}}
  same: {build: ., networks: [n], command: ["sh", "-c", "echo $$A"]}
  db:
    image: postgres:16
    container_name: database
    hostname: store
    networks: [n]
    command: postgres -c 'a b' "c\"d"
    environment: [POSTGRES_PASSWORD=$$x]
    user: "999"
    volumes: ["data:/var/lib/postgresql/data", "./init.sql:/docker-entrypoint-initdb.d/1.sql:ro", "./conf:/etc/db"]
    ports: [5432]
    restart: unless-stopped
    healthcheck: {test: pg_isready -U x, interval: 1s, retries: 9, start_period: 1m}
  migrate: {build: {context: ./job, args: {A: 1}}, entrypoint: /run.sh, networks: [n], labels: [a=b], volumes: ["${T_BENCH_TASK_LOGS_PATH}:/logs"], working_dir: /w, depends_on: {db: {condition: service_healthy}, same: {condition: service_started}}}
`,
		"environment/Dockerfile": "FROM x\n", "environment/job/Dockerfile": "FROM y\n", "environment/init.sql": "create", "environment/conf/a/b": "c",
	}))
	got := fields(t, only(t, dir))
	services := got["services"].([]any)
	for i, build := range map[int]string{1: "environment", 2: "environment/job"} {
		have := services[i].(map[string]any)["build"].(map[string]any)
		if have["dir"] != filepath.Join(dir, build) || have["digest"] == "" {
			t.Errorf("the build of service %d is %v", i, have)
		}
		delete(services[i].(map[string]any), "build")
	}
	want := []any{
		map[string]any{"name": "db", "image": "postgres:16", "command": []any{"postgres", "-c", "a b", `c"d`}, "env": map[string]any{"POSTGRES_PASSWORD": "$x"}, "user": "999", "restart": "always",
			"files":  map[string]any{"/docker-entrypoint-initdb.d/1.sql": "create", "/etc/db/a/b": "c"},
			"health": map[string]any{"command": []any{"sh", "-c", "pg_isready -U x"}, "interval": 1.0, "timeout": 30.0, "retries": 9.0, "start": 60.0}},
		map[string]any{"name": "same", "command": []any{"sh", "-c", "echo $A"}},
		map[string]any{"name": "migrate", "entrypoint": []any{"/run.sh"}, "cwd": "/w", "once": true, "after": []any{"db"}},
	}
	if diff := cmp.Diff(want, []any{services[0], services[1], services[2]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"main", "database", "store"}, got["hosts"]); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if got["setup"] != nil {
		t.Errorf("setup: %v", got["setup"])
	}
}

func TestRefuses(t *testing.T) {
	toml := func(text string) map[string]string { return map[string]string{"task.toml": text} }
	compose := func(text string) map[string]string { return map[string]string{"environment/docker-compose.yaml": text} }
	tests := []struct {
		name string
		give map[string]string
		want []string
	}{
		{"no instruction", map[string]string{"instruction.md": " \n"}, []string{"instruction.md: it is missing or empty"}},
		{"no TOML", toml("[task\n"), []string{"task.toml: "}},
		{"not text", map[string]string{"instruction.md": "\xff"}, []string{"not text in UTF-8"}},
		{"unknown keys, all at once", toml("timeout = 1\n[environment]\ntpus = 1\n[agent]\ncolour = 'red'\n[verifier]\nretries = 1\n"),
			[]string{"task.toml: timeout: it is not known here (have agent,", "environment.tpus: it is not known", "agent.colour", "verifier.retries"}},
		{"kinds", toml("[environment]\ncpus = 'two'\nmemory_mb = -1\nenv = {A = 1}\nallow_internet = 1\n[agent]\ntimeout_sec = inf\n"),
			[]string{`environment.cpus: "two", want a number`, "environment.memory_mb: -1", "environment.env.A: 1, want", "environment.allow_internet: 1, want true or false", "agent.timeout_sec: +Inf"}},
		{"devices and services", toml("artifacts = 'a'\n[environment]\ngpus = 1\nskills_dir = 's'\nmcp_servers = [{name = 'x'}]\n"),
			[]string{"artifacts: ", "gpus: 1, but a sandbox has none", `skills_dir: "s", want an absolute path`, "mcp_servers: "}},
		{"servers", toml("[environment]\nmcp_servers = [{name = 'a', command = 'x'}, {name = 'a', command = 'y'}, {name = 'b', transport = 'stdio', url = 'u'}, " +
			"{name = 'c', transport = 'sse', command = 'x'}]\n"),
			[]string{`"a": want a name that no other has`, "b: want a command for stdio", "c: want a command for stdio, or else a url"}},
		{"users", toml("[agent]\nuser = 'agent'\n[verifier]\nuser = 1000\n"), []string{`agent.user: "agent", but all commands`, "verifier.user: 1000, but all commands"}},
		{"a verifier of its own", toml("artifacts = [{source = 'a', exclude = ['b']}]\n[verifier]\nenvironment_mode = 'apart'\nenvironment = {tpus = 1}\ncollect = ['x']\n"),
			[]string{"environment_mode: \"apart\"", "verifier.environment.tpus: it is not known", "verifier.collect: ", "artifacts[0]"}},
		{"a verifier without an image", toml("[verifier]\nenvironment_mode = 'separate'\n"), []string{"has no image: want verifier.environment.docker_image, or tests/Dockerfile"}},
		{"an environment that no verifier has", toml("[verifier]\nenvironment = {cpus = 1}\n"), []string{"only go with environment_mode separate"}},
		{"network", toml("[environment]\nnetwork_mode = 'wifi'\n[agent]\nallowed_hosts = ['x']\n"), []string{`"wifi", want public, no-network or allowlist`, "agent.allowed_hosts: they go with"}},
		{"internet", toml("[environment]\nnetwork_mode = 'public'\nallow_internet = false\n"), []string{"allow_internet: false, and network_mode is public"}},
		{"a secret", toml("[verifier.env]\nKEY = '${KEY}'\n"), []string{"verifier.env.KEY: it is taken from the runner's environment"}},
		{"version", toml("schema_version = '2.0'\n"), []string{`schema_version: "2.0", want`}},
		{"health", toml("[environment.healthcheck]\nretries = 1\n"), []string{"healthcheck.command: it is empty"}},
		{"steps", toml("multi_step_reward_strategy = 'best'\n[[steps]]\nname = '../x'\n[[steps]]\nname = 'a'\n"),
			[]string{`"best", want mean or final`, `steps[0].name: "../x"`}},
		{"a gate that nothing judges", map[string]string{"task.toml": "multi_step_reward_strategy = 'final'\n[[steps]]\nname = 'a'\nmin_reward = 1.0\n[[steps]]\nname = 'b'\n"},
			[]string{"steps[0].min_reward: with multi_step_reward_strategy final"}},
		{"files of a step", map[string]string{"task.toml": "[[steps]]\nname = 'a'\n", "steps/a/instruction.md": "x", "steps/a/workdir/f": "x"},
			[]string{"steps/a/workdir: ", "instruction.md: a task with steps"}},
		{"services", compose("secrets: {}\nnetworks: {n: {internal: true}}\nvolumes: {v: {}, w: {external: true}}\nservices:\n  main: {image: x, ports: [1]}\n  db: {image: y, restart: maybe, networks: [n], entrypoint: \"a 'b\", volumes: ['/a:/a', './gone:/c', 'v:/b']}\n" +
			"  web: {image: z, depends_on: {db: {condition: service_healthy}}, volumes: ['v:/c']}\n  job: {depends_on: {web: {condition: gone}}}\n"),
			[]string{"secrets: want services, networks", "networks.n: a network here has no options", "volumes.w: a volume here is empty", "services.main.ports: the agent's machine is", "db.restart: maybe, want no, always", "db.networks: all services have one network", "db.entrypoint: a quote",
				"db.volumes: /a:/a: want NAME:/PATH, or ./PATH:/PATH", "db.volumes: environment/gone is not there", "web.volumes: v is of db, too", "db.healthcheck: it is missing", "job: want image or build", "condition gone, want service_started"}},
		{"a service that cannot be a process", compose("services:\n  main: {image: x, depends_on: [gone]}\n  db:\n    {image: x, command: a, networks: [n], volumes: [v], environment: {A: null}, " +
			"depends_on: {web: {condition: service_completed_successfully}}, healthcheck: {test: [RUN, x]}}\n  web: {image: x, command: '${X}', depends_on: [db], healthcheck: {test: x, interval: soon}}\n"),
			[]string{"main.depends_on: gone", "db.networks: all services have one network", "db.volumes", "db.environment", "condition service_completed_successfully", "healthcheck.test: [RUN x]",
				`healthcheck.interval: "soon"`, "web.command: \"${X}\" has variables", "web.depends_on: db depends on it"}},
		{"a service and an entrypoint", map[string]string{"environment/docker-compose.yaml": "services:\n  main: {build: .}\n  db: {build: ., command: a}\n",
			"environment/Dockerfile": "FROM x\nENTRYPOINT [\"/b\"]\n"}, []string{"db.entrypoint: it is missing"}},
		{"services and steps", map[string]string{"task.toml": "[[steps]]\nname = 'a'\n", "environment/docker-compose.yaml": "services: {main: {image: x}, db: {image: x, command: a}}\n"},
			[]string{"want a task without steps"}},
		{"no service", compose("services: {}\n"), []string{"lacks the service main", "names no image"}},
		{"its variables", compose("services: {main: {image: '${IMAGE}'}}\n"), []string{"has variables of who runs it"}},
		{"no YAML", compose("services: [\n"), []string{"docker-compose.yaml: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := only(t, tree(t, t.TempDir(), with(tt.give)))
			got := strings.Join(row.Wrong, "\n")
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("wrong is\n%s\nwant %q in it", got, want)
				}
			}
		})
	}
	t.Run("no tests", func(t *testing.T) {
		files := with(nil)
		delete(files, "tests/test.sh")
		if row := only(t, tree(t, t.TempDir(), files)); !slices.ContainsFunc(row.Wrong, func(w string) bool { return strings.Contains(w, "tests/test.sh: there is none") }) {
			t.Errorf("wrong is %q", row.Wrong)
		}
	})
}

// TestLinks holds that a task shows nothing of what lies outside of it.
func TestLinks(t *testing.T) {
	dir := tree(t, t.TempDir(), with(map[string]string{"environment/Dockerfile": "FROM x\nCOPY data /data\n"}))
	outside := tree(t, t.TempDir(), map[string]string{"secret": "s"})
	if err := os.Mkdir(filepath.Join(dir, "environment/data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"tests/a": filepath.Join(outside, "secret"), "environment/data/b": "../../../" + filepath.Base(outside) + "/secret"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	row := only(t, dir)
	if len(row.Wrong) < 2 || row.Object != nil { // of the tests, and of what an image is built of
		t.Errorf("wrong is %q, want both links in it", row.Wrong)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if found, err := harbor.Open(dir); found != nil || err != nil {
		t.Fatalf("Open of an empty directory = %v, %v", found, err)
	}
	for _, name := range []string{"b", "a/x", "a-b", ".hidden/c"} {
		tree(t, filepath.Join(dir, name), with(nil))
	}
	tree(t, filepath.Join(dir, "c"), map[string]string{
		"task.yaml": "instruction: x\nparser_name: pytest\n", "run-tests.sh": "x", "Dockerfile": "FROM x",
	})
	tree(t, filepath.Join(dir, "b/environment"), map[string]string{"task.toml": ""}) // part of a task
	found, err := harbor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for row, err := range found.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fields(t, row)["id"].(string))
	}
	if diff := cmp.Diff([]string{"a-b", "a/x", "b", "c"}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	before, err := found.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree(t, filepath.Join(dir, "b"), map[string]string{"tests/more": "x"})
	if after, err := found.Digest(t.Context()); err != nil || after == before {
		t.Errorf("the digest is the same with another file: %v", err)
	}
}

// FuzzTask feeds what a dataset may have: garbage is refused, and what is taken is JSON.
func FuzzTask(f *testing.F) {
	f.Add("[environment]\ncpus = 1\n", "FROM x\nENV A=$A$B\nWORKDIR /a\nCOPY . /b\n", "services: {main: {image: x}}")
	f.Add("[[steps]]\nname = 'a'\n[environment.healthcheck]\ncommand='x'", "FROM a AS b\nCOPY [\"x\", 'y'\n", "services: &a {main: *a}")
	f.Add("", "FROM x\n", "services: {main: {image: x}, db: {image: y, command: 'a \\b \"c', volumes: ['./x:/y:ro', 'v:/z'], depends_on: {main: {condition: service_started}}}}")
	dir := tree(f, f.TempDir(), with(map[string]string{"environment/x": "x"}))
	f.Fuzz(func(t *testing.T, toml, docker, compose string) {
		tree(t, dir, map[string]string{"task.toml": toml, "environment/Dockerfile": docker})
		file := filepath.Join(dir, "environment/compose.yaml")
		if compose == "" {
			_ = os.Remove(file)
		} else {
			tree(t, dir, map[string]string{"environment/compose.yaml": compose})
		}
		row := only(t, dir)
		if len(row.Wrong) == 0 && !json.Valid(row.Object) {
			t.Errorf("neither a row nor a reason: %s", row.Object)
		}
	})
}

// TestVerifierOfItsOwn reads tasks whose verifier has another image, or another network.
func TestVerifierOfItsOwn(t *testing.T) {
	const separate = "artifacts = ['out', {source = '/w'}, '/logs/artifacts/x']\n[verifier]\nenvironment_mode = 'separate'\n"
	const ends = `"memory":"2048M","network":"full"}`
	tests := []struct{ name, toml, dockerfile, want string }{
		{"image", separate + "[verifier.environment]\ndocker_image = 'example.org/judge:1'\ncpus = 2\nnetwork_mode = 'no-network'\nenv = {A = '1'}\n", "",
			`{"artifacts":["/logs/artifacts","out","/w"],"cpus":2,"disk":"10240M","image":"example.org/judge:1","memory":"2048M","network":"loopback"}`},
		{"image of the task", separate + "[environment]\ndocker_image = 'example.org/task:1'\n", "",
			`{"artifacts":["/logs/artifacts","out","/w"],"cpus":1,"disk":"10240M","image":"example.org/task:1",` + ends},
		{"Dockerfile", separate + "[environment]\ndocker_image = 'example.org/task:1'\n", "FROM example.org/task:1\n", `"build":{"digest":`},
		{"network", "[environment]\nnetwork_mode = 'public'\n[verifier]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['example.org']\n", "",
			`{"allow":["example.org"],"network":"allowlist"}`},
		{"nothing", "[verifier]\nenvironment_mode = 'shared'\n", "", "null"},
	}
	for _, tt := range tests {
		files := map[string]string{"task.toml": tt.toml}
		if tt.dockerfile != "" {
			files["tests/Dockerfile"] = tt.dockerfile
		}
		row := only(t, tree(t, t.TempDir(), with(files)))
		if len(row.Wrong) > 0 {
			t.Errorf("%s: %v", tt.name, row.Wrong)
			continue
		}
		check, _ := fields(t, row)["verify"].(map[string]any)
		if got, _ := json.Marshal(check["verifier"]); !strings.Contains(string(got), tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
