package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

// smallImage is a directory with a few programs of this machine, which stands for the images that tasks name.
func smallImage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	install := func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(path, "/usr/") {
			path = "/usr" + path
		}
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields("sh bash cat ls mkdir cp mv rm chmod env find touch tar base64 sleep timeout grep tr id") {
		path := "/usr/bin/" + name
		install(path)
		libraries, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", path, err)
		}
		for _, word := range strings.Fields(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				install(word)
			}
		}
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tmp", "root", "etc", "usr/lib", "usr/lib64", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n"} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// recipes are what public tasks have in their Dockerfiles, one idea each. Each makes /app/word.txt with the word Hello.
var recipes = []string{
	"WORKDIR /app\nRUN echo Hello > word.txt",
	"RUN mkdir -p /app && \\\n    # a comment\n    echo Hello > /app/word.txt\nWORKDIR /app",
	"WORKDIR /app\nRUN [\"/bin/sh\", \"-c\", \"echo Hello > word.txt\"]",
	"WORKDIR /app\nRUN <<EOF\necho Hello > word.txt\nEOF",
	"WORKDIR /app\nCOPY word.txt .",
	"WORKDIR /app\nCOPY --chmod=600 [\"word.txt\", \"/app/\"]",
	"WORKDIR /app\nCOPY *.txt ./",
	"WORKDIR /app\nADD word.txt /app/word.txt",
	"WORKDIR /app\nCOPY <<EOF word.txt\nHello\nEOF",
	"ENV PATH=/opt/tool:$PATH\nRUN mkdir -p /opt/tool && printf '#!/bin/sh\\necho Hello\\n' > /opt/tool/greet && chmod 755 /opt/tool/greet\nWORKDIR /app\nRUN greet > word.txt",
	"ARG WORD=Hello\nWORKDIR /app\nRUN echo $WORD > word.txt",
	"ENV WORD=Hello OTHER=\"two words\"\nWORKDIR /app\nRUN echo ${WORD} > word.txt",
	"WORKDIR /app\nSHELL [\"/bin/bash\", \"-o\", \"pipefail\", \"-c\"]\nRUN echo HELLO | tr ELO elo > word.txt",
	"AS maker\nRUN mkdir /made && echo Hello > /made/word.txt\nFROM ubuntu:24.04\nCOPY --from=maker /made /app\nWORKDIR /app",
	"WORKDIR /app\nRUN --mount=type=cache,target=/cache echo Hello > word.txt",
	"WORKDIR /app\nRUN --mount=type=bind,source=word.txt,target=/in cat /in > word.txt",
	"LABEL a=b\nEXPOSE 80\nVOLUME /data\nSTOPSIGNAL SIGTERM\nWORKDIR /app\nCOPY word.txt word.txt",
	"WORKDIR /\nWORKDIR app\nRUN echo Hello > word.txt\nENTRYPOINT [\"/bin/sh\"]\nCMD [\"-c\", \"sleep infinity\"]",
	"USER root\nWORKDIR /app\nCOPY --chown=0:0 word.txt word.txt\nHEALTHCHECK CMD true",
	"WORKDIR /app/deep/er\nRUN echo Hello > ../../word.txt\nWORKDIR /app",
}

// TestTaskFolders loads 60 tasks in the layouts of public repositories, whose images are built here: a gold passes, and doing nothing
// fails.
func TestTaskFolders(t *testing.T) {
	const (
		toml   = "version = \"1.0\"\n[metadata]\ndifficulty = \"easy\"\n[environment]\nnetwork_mode = \"no-network\"\nmemory_mb = 256\nstorage_mb = 64\n"
		solve  = "#!/bin/bash\ncat word.txt > out.txt\n"
		judge  = `r=0; [ "$(cat out.txt 2>/dev/null)" = Hello ] && r=1; `
		harbor = "#!/bin/bash\n" + judge + "echo $r > /logs/verifier/reward.txt\n"
		pytest = "#!/bin/bash\n" + judge + "echo '=== short test summary info ==='; [ $r = 1 ] && echo 'PASSED test_outputs.py::test_word' || echo 'FAILED test_outputs.py::test_word - no'\n"
	)
	dir := t.TempDir()
	for i, recipe := range recipes {
		dockerfile := "FROM ubuntu:24.04\n" + recipe + "\n"
		if strings.HasPrefix(recipe, "AS ") {
			dockerfile = "FROM ubuntu:24.04 " + recipe + "\n"
		}
		harborTask(t, filepath.Join(dir, fmt.Sprintf("harbor-%02d", i)), map[string]string{
			"task.toml": toml, "instruction.md": "Copy the word to out.txt.", "tests/test.sh": harbor, "solution/solve.sh": solve,
			"environment/Dockerfile": dockerfile, "environment/word.txt": "Hello\n",
		})
		harborTask(t, filepath.Join(dir, fmt.Sprintf("steps-%02d", i)), map[string]string{
			"task.toml":              toml + "[[steps]]\nname = \"copy\"\nmin_reward = 1.0\n[[steps]]\nname = \"remove\"\n",
			"environment/Dockerfile": dockerfile, "environment/word.txt": "Hello\n",
			"environment/docker-compose.yaml": "services:\n  main:\n    build: {context: '${CONTEXT_DIR}'}\n    command: [sh, -c, sleep infinity]\n",
			"steps/copy/instruction.md":       "Copy the word to out.txt.", "steps/copy/tests/test.sh": harbor, "steps/copy/solution/solve.sh": solve,
			"steps/remove/instruction.md": "Remove out.txt.", "steps/remove/solution/solve.sh": "rm out.txt",
			"steps/remove/tests/test.sh": "#!/bin/bash\n[ -e word.txt ] && [ ! -e out.txt ]; echo $((1-$?)) > /logs/verifier/reward.txt\n",
		})
		harborTask(t, filepath.Join(dir, fmt.Sprintf("bench-%02d", i)), map[string]string{
			"task.yaml":  "instruction: Copy the word to out.txt.\nauthor_name: a\ndifficulty: easy\ntags: [files]\nparser_name: pytest\nmax_agent_timeout_sec: 60.0\n",
			"Dockerfile": dockerfile, "word.txt": "Hello\n", "run-tests.sh": pytest, "solution.sh": solve, "tests/test_outputs.py": "",
			"docker-compose.yaml": "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n" +
				"    command: [sh, -c, sleep infinity]\n    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n",
		})
	}
	file := write(t, "run.yaml", fmt.Sprintf("dataset: {path: %s}\nsandbox: {image_dir: %s, build_network: none, image_map: {\"ubuntu:24.04\": \"dir:%s\"}}\n",
		dir, filepath.Join(t.TempDir(), "images"), smallImage(t)))
	for policy, success := range map[string]bool{"oracle": true, "noop": false} {
		out := filepath.Join(t.TempDir(), "run")
		succeed(t, "run", "-f", file, "--policy", policy, "--out", out, "--quiet")
		played := episodes(t, out)
		if len(played) != 3*len(recipes) {
			t.Errorf("%s: %d episodes, want %d", policy, len(played), 3*len(recipes))
		}
		for _, ep := range played {
			if passed := ep.Reward != nil && *ep.Reward == 1; passed != success || ep.Fault != nil {
				t.Errorf("%s of %s: %s, %+v, %+v", policy, ep.Key.Task, ep.Outcome, ep.Rewards, ep.Fault)
			}
		}
	}
}

// TestTaskFoldersOrdinaryUser plays them as a user without any rights.
func TestTaskFoldersOrdinaryUser(t *testing.T) {
	t.Setenv("TRAJGEN_PROGRAM", build(t))
	if out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestTaskFolders$|^TestTaskServices$", "-test.v"); !strings.Contains(out, "--- PASS: TestTaskFolders") || !strings.Contains(out, "--- PASS: TestTaskServices") {
		t.Errorf("they were not played:\n%s", out)
	}
}
