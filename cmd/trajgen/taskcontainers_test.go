package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

// TestTaskContainers plays tasks whose compose files have services with images of their own: a ledger that the agent writes to by the
// network, and its verifier reads; a job with a Dockerfile, which writes before the agent does; and one that cannot start.
func TestTaskContainers(t *testing.T) {
	for backend, variable := range map[string]string{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"} {
		t.Run(backend, func(t *testing.T) {
			host, image := os.Getenv(variable), os.Getenv("TRAJGEN_TEST_IMAGE")
			if host == "" || image == "" {
				sandboxtest.Require(t, backend, errors.New("no engine for tests (scripts/engine starts one)"))
			}
			playContainers(t, backend, host, image)
		})
	}
}

func playContainers(t *testing.T, backend, host, image string) {
	const (
		add    = "exec 3<>/dev/tcp/ledger/7000 && echo %d >&3 && cat <&3"
		ledger = `import os, socket
total = 0
s = socket.create_server(("", 7000))
open("up", "w").close()
while True:
    c, _ = s.accept()
    total += int(c.makefile().readline())
    c.sendall(f"{open('/etc/coin/unit').read()}{os.environ['UNIT']} {total}".encode())
    c.close()
`
	)
	services := func(command string) string {
		return fmt.Sprintf(`services:
  main: {image: %[1]s, depends_on: {first: {condition: service_completed_successfully}}}
  first: {build: {context: first}, depends_on: {ledger: {condition: service_healthy}}}
  ledger:
    image: %[1]s
    command: [%[2]s]
    working_dir: /var
    environment: {UNIT: s}
    volumes: ["book:/var/book", "./unit:/etc/coin/unit:ro"]
    healthcheck: {test: [CMD, test, -e, up], interval: 200ms, retries: 100}
volumes: {book: {}}
`, image, command)
	}
	dir := t.TempDir()
	for name, command := range map[string]string{"plays": fmt.Sprintf("python3, -c, %q", ledger), "dies": "bash, -c, 'echo no book; exit 4'"} {
		harborTask(t, filepath.Join(dir, name), map[string]string{
			"task.toml": "[environment]\nnetwork_mode = \"no-network\"\n", "instruction.md": "Add 5 to the ledger.",
			"environment/docker-compose.yaml": services(command),
			"environment/unit":                "coin",
			"environment/first/Dockerfile":    "FROM ubuntu:24.04\nENV N=2\nENTRYPOINT [\"bash\", \"-c\"]\nCMD [\"" + fmt.Sprintf(strings.ReplaceAll(add, "%d", "%s"), "$N") + "\"]\n",
			"solution/solve.sh":               "#!/bin/bash\n" + fmt.Sprintf(add, 5),
			"tests/test.sh":                   "#!/bin/bash\n[ \"$(" + fmt.Sprintf(add, 0) + ")\" = \"coins 7\" ]; echo $((1-$?)) > /logs/verifier/reward.txt\n",
		})
	}
	file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s}\nsandbox: {backend: %s, settings: {host: '%s'}, image_dir: %s, build_network: none, image_map: {\"ubuntu:24.04\": \"dir:%s\"}}\n",
		dir, backend, host, filepath.Join(t.TempDir(), "images"), smallImage(t)))
	for policy, want := range map[string]struct {
		outcome string
		samples int
	}{"oracle": {"success", 8}, "noop": {"failure", 1}} {
		out := filepath.Join(t.TempDir(), "run")
		got := trajgen(t, "run", "-f", file, "--policy", policy, "--samples", fmt.Sprint(want.samples), "--workers", "16", "--episode-retries", "0", "--out", out, "--quiet")
		if got.code != 3 { // some episodes have no verdict
			t.Fatalf("%s: exit code %d: %s", policy, got.code, got.errOut)
		}
		played := episodes(t, out)
		if len(played) != 2*want.samples {
			t.Errorf("%s: %d episodes", policy, len(played))
		}
		for _, ep := range played {
			switch {
			case ep.Key.Task == "plays" && (string(ep.Outcome) != want.outcome || ep.Fault != nil):
				t.Errorf("%s: %s, %+v, %+v", policy, ep.Outcome, ep.Rewards, ep.Fault)
			case ep.Key.Task == "dies" && (ep.Fault == nil || ep.Outcome != "sandbox_error" || !strings.Contains(ep.Fault.Message, "the service ledger ended with status 4; it printed: no book")):
				t.Errorf("%s of the one that dies: %s, %+v", policy, ep.Outcome, ep.Fault)
			}
		}
	}
}
