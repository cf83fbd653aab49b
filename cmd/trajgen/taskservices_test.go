package main

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestTaskServices plays tasks whose compose files have services beside the agent's: the agent asks one by way of a file, and so does
// the verifier, after the agent has ended all that ran.
func TestTaskServices(t *testing.T) {
	t.Parallel()
	const (
		ask      = "#!/bin/bash\ntouch /work/ask; until [ -e /work/said ]; do sleep 0.05; done\n"
		services = `services:
  %s: {build: {context: .}, command: [sh, -c, sleep infinity], environment: {WORD: agent}, depends_on: [clerk]}
  clerk:
    build: {context: .}
    command: ["bash", "-c", "[ -e begun ] && while sleep 0.05; do [ -e ask ] && rm ask && echo $$WORD$$OWN > said; done"]
    working_dir: /work
    environment: [OWN=it's mine]
    depends_on: {door: {condition: service_healthy}}
  door:
    build: {context: .}
    container_name: gate
    command: sh -c "sleep 0.2; echo $$HOME > /work/begun; sleep 100"
    healthcheck: {test: [CMD-SHELL, "test -e /work/begun"], start_period: 20s, start_interval: 50ms}
`
		judge = "#!/bin/bash\nr=0; grep -q 'door gate clerk' /etc/hosts && [ \"$(cat /work/said)\" = \"it's mine\" ] && rm /work/said && " +
			"{ touch /work/ask; until [ -e /work/said ]; do sleep 0.05; done; } && r=1\n"
	)
	dir := t.TempDir()
	image := "FROM ubuntu:24.04\nRUN mkdir /work\n"
	harborTask(t, filepath.Join(dir, "harbor"), map[string]string{
		"task.toml": "version = \"1.0\"\n[environment]\nnetwork_mode = \"no-network\"\n[verifier]\ntimeout_sec = 30\n", "instruction.md": "Ask the clerk.",
		"tests/test.sh": judge + "echo $r > /logs/verifier/reward.txt\n", "solution/solve.sh": ask,
		"environment/Dockerfile": image, "environment/docker-compose.yaml": fmt.Sprintf(services, "main"),
	})
	harborTask(t, filepath.Join(dir, "bench"), map[string]string{
		"task.yaml": "instruction: Ask the clerk.\nparser_name: swebench\n", "Dockerfile": image, "solution.sh": ask, "docker-compose.yaml": fmt.Sprintf(services, "client"),
		"run-tests.sh": judge + "echo SWEBench results starts here; [ $r = 1 ] && echo PASSED || echo FAILED; echo SWEBench results ends here\n", "tests/none": "",
	})
	file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s}\nsandbox: {image_dir: %s, build_network: none, image_map: {\"ubuntu:24.04\": \"dir:%s\"}}\n",
		dir, filepath.Join(t.TempDir(), "images"), smallImage(t)))
	for policy, success := range map[string]bool{"oracle": true, "noop": false} {
		out := filepath.Join(t.TempDir(), "run")
		succeed(t, "run", "-f", file, "--policy", policy, "--out", out, "--quiet")
		played := episodes(t, out)
		if len(played) != 2 {
			t.Errorf("%s: %d episodes", policy, len(played))
		}
		for _, ep := range played {
			if passed := ep.Reward != nil && *ep.Reward == 1; passed != success || ep.Fault != nil {
				t.Errorf("%s of %s: %s, %+v, %+v", policy, ep.Key.Task, ep.Outcome, ep.Rewards, ep.Fault)
			}
		}
	}
}
