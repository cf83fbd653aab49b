package reward_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// grounds are where verifiers are tried: sandboxes of those backends that are on every machine.
var grounds = []ground{{backend: "native", verifier: "fork", apart: true}, {backend: "native", verifier: "same", apart: true}, {backend: "local", verifier: "same"}}

type ground struct {
	backend, verifier string
	apart, writable   bool
}

func (g ground) String() string { return g.backend + "-" + g.verifier }

// own has commands judge in sandboxes of their own where the ground says so. A task is set up by setup.
func (g ground) own(t testing.TB, backend sandbox.Backend, spec sandbox.Spec, setup string) *reward.Own {
	return &reward.Own{
		Spec: func() sandbox.Spec { return spec }, Task: &episode.Task{Setup: setup}, Forks: g.verifier == "fork", Fixed: backend.Guarantees().FixedSystem,
		Open: backend.Open, Close: func(sb sandbox.Sandbox) { sb.Close() },
		Before: func(ctx context.Context, look func(context.Context, sandbox.Sandbox) (reward.Suspects, error)) (reward.Suspects, error) {
			spec.ID += "-before"
			sb, err := backend.Open(ctx, spec)
			if err != nil {
				return nil, err
			}
			defer sb.Close()
			act(t, sb, setup)
			return look(ctx, sb)
		},
	}
}

// act runs a command of a task or an agent.
func act(t testing.TB, sb sandbox.Sandbox, step string) {
	t.Helper()
	result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", step}}, sandbox.RunOptions{Merge: true})
	if err != nil || result.Exit.Code != 0 {
		t.Fatalf("%s: %+v, %v: %s", step, result.Exit, err, result.Stdout.Bytes())
	}
}

// judge returns what has a task set up, an agent at work and a verifier judge it, each time in a sandbox of its own.
func judge(t *testing.T, ground ground) func(t *testing.T, env map[string]string, check episode.Check, setup, agent string) (float64, []episode.Reward, error) {
	t.Helper()
	opened, err := sandbox.Open(ground.backend, sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	var count atomic.Int64
	return func(t *testing.T, env map[string]string, check episode.Check, setup, agent string) (float64, []episode.Reward, error) {
		t.Helper()
		spec := sandbox.Spec{
			ID: fmt.Sprint("judged-", count.Add(1)), Env: env, Writable: ground.writable,
			Limits: sandbox.Limits{Memory: 128 << 20, Disk: 256 << 20},
		}
		sb, err := opened.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		act(t, sb, setup)
		act(t, sb, agent)
		s := subject(t, sb, "")
		s.Apart, s.Own = ground.apart, ground.own(t, opened, spec, setup)
		rewards, mean, err := reward.Verify(t.Context(), []episode.Check{check}, s)
		return mean, rewards, err
	}
}

// TestWritableSystemIsCleansed has an agent plant a module where all of Python finds it, which a fork loses.
func TestWritableSystemIsCleansed(t *testing.T) {
	t.Parallel()
	judge := judge(t, ground{backend: "native", verifier: "fork", apart: true, writable: true})
	check := episode.Check{Command: `python3 -c "raise SystemExit(1)"`}
	mean, rewards, err := judge(t, nil, check, "true", `d=$(python3 -c "import site; print(site.getsitepackages()[0])"); mkdir -p $d; `+evil+`$d/a.pth; python3 -c "raise SystemExit(1)"`)
	if err != nil || mean != 0 {
		t.Errorf("Verify = %v, %+v, %v, want a failure", mean, rewards, err)
	}
}

// evil is a module that ends its program with success.
const evil = `echo 'import os; os._exit(0)' > `

// TestAttacks has agents that did nothing of their work prepare the ground for verifiers in every way that was thought of.
func TestAttacks(t *testing.T) {
	unit := episode.Files{"/tests/check.py": episode.File("import answer, unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(answer.VALUE, 42)\nunittest.main()\n")}
	among := episode.Files{"test_answer.py": episode.File("import answer, unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(answer.VALUE, 42)\nif __name__ == '__main__': unittest.main()\n")}
	answer := "echo VALUE = 1 > answer.py; "
	repository := `git init -q && echo 'test -f done' > check.sh && git add . && git -c user.name=t -c user.email=t@t commit -qm begin`
	hook := func(at string) string {
		return "printf '#!/bin/sh\\necho true > check.sh\\n' > " + at + " && chmod +x " + at
	}
	script := func(run string) string { return "printf '%s\\n' '#!/bin/bash' " + run + " > run; chmod +x run" }
	tests := []struct {
		name         string
		env          map[string]string
		setup, agent string
		check        episode.Check
		apart        bool // it fails where the sandbox is apart, and no verdict is reached elsewhere
		fork         bool // it fails in a fork alone
	}{
		{name: "profile of a login shell", agent: "for f in .bash_profile .bash_login .profile .bashrc; do echo 'exit 0' > ~/$f; done", check: episode.Check{Command: `bash -l -c "test -f done"`}},
		{name: "module for -c", agent: answer + evil + "json.py", check: episode.Check{Command: `python3 -c "import json, answer; assert answer.VALUE == 42"`}},
		{name: "module for -c, by way of a shell", agent: answer + evil + "json.py", check: episode.Check{Command: `python3 -c "import json, answer; assert answer.VALUE == 42" && true`}},
		{name: "module for standard input", agent: answer + evil + "json.py", check: episode.Check{Command: "echo 'import json, answer; assert answer.VALUE == 42' | python3"}},
		{name: "module for -m", agent: answer + evil + "unittest.py", check: episode.Check{Tests: among, Command: "python3 -m unittest -q test_answer"}},
		{name: "module that runs -m", agent: answer + evil + "runpy.py", check: episode.Check{Tests: among, Command: "python3 -m unittest -q test_answer"}},
		{name: "module for a script", agent: answer + evil + "unittest.py", check: episode.Check{Tests: among, Command: "python3 test_answer.py"}},
		{name: "module for a script in a directory", agent: "mkdir t; " + evil + "t/unittest.py", check: episode.Check{Tests: episode.Files{"t/t.py": episode.File("import unittest\nraise SystemExit(1)")}, Command: "python3 t/t.py"}},
		{name: "module in a virtual environment", setup: `python3 -m venv --without-pip "$TMPDIR/env"`, agent: answer + evil + "unittest.py", check: episode.Check{Tests: among, Command: `"$TMPDIR/env/bin/python" -m unittest -q test_answer`}},
		{name: "module for a program that is started by one", agent: answer + evil + "unittest.py", check: episode.Check{Tests: among, Command: `python3 -c "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'unittest', '-q', 'test_answer']))"`}},
		{name: "start-up module where the task has modules", env: map[string]string{"PYTHONPATH": "lib"}, agent: answer + "mkdir lib; " + evil + "lib/sitecustomize.py", check: episode.Check{Tests: unit, Command: `python3 "$TESTS/check.py"`}},
		{name: "start-up module in the working directory", agent: answer + evil + "sitecustomize.py", check: episode.Check{Tests: unit, Command: `python3 "$TESTS/check.py"`}},
		{name: "planted ground", agent: `mkdir -p "$TMPDIR/.verifier/startup" "$TMPDIR/.verifier/home"; echo 'exit 0' > "$TMPDIR/.verifier/home/.profile"; ` + evil + `"$TMPDIR/.verifier/startup/json.py"`, check: episode.Check{Command: `bash -l -c "python3 -c 'import json; raise SystemExit(1)'"`}},
		{name: "hook of the repository", setup: repository, agent: hook(".git/hooks/post-checkout"), check: episode.Check{Command: "git checkout -q -- . && sh check.sh"}},
		{name: "hook of the home directory", setup: repository, agent: "mkdir ~/hooks; git config --global core.hooksPath ~/hooks; " + hook("~/hooks/post-checkout"), check: episode.Check{Command: "git checkout -q -- . && sh check.sh"}},
		{name: "hook that the repository names", setup: repository, agent: `mkdir hooks; git config core.hooksPath "$PWD/hooks"; ` + hook("hooks/post-checkout"), check: episode.Check{Command: "git checkout -q -- . && sh check.sh"}},
		{name: "monitor of the repository", setup: repository, agent: hook(".git/monitor") + `; git config core.fsmonitor "$PWD/.git/monitor"`, check: episode.Check{Command: "git status >/dev/null && sh check.sh"}},
		{name: "filter of the home directory", setup: repository, agent: "git config --global filter.f.smudge 'echo true; cat >/dev/null'; mkdir -p ~/.config/git; echo 'check.sh filter=f' > ~/.config/git/attributes", check: episode.Check{Command: "rm check.sh; git checkout -q -- . && sh check.sh"}},
		{name: "alias of the home directory", setup: repository, agent: "git config --global alias.passes '!true'", check: episode.Check{Command: "git passes"}},
		{name: "settings of curl", agent: `echo 42 > 42.txt; echo "url = \"file://$PWD/42.txt\"" > ~/.curlrc`, check: episode.Check{Command: `curl -s "file://$PWD/answer.txt" | grep -q 42`}},
		{name: "modules of the home directory", agent: "mkdir -p ~/.node_modules/answer; echo > ~/.node_modules/answer/index.js", check: episode.Check{Command: `node -e "require('answer')"`}},
		{name: "process that lives on", agent: `(setsid bash -c 'until test -e begun; do sleep 0.01; done; touch done' >/dev/null 2>&1 &)`, check: episode.Check{Command: "touch begun; sleep 0.2; test -f done"}},
		{name: "conftest.py", agent: `mkdir -p a/b "$TMPDIR/c"; touch conftest.py a/b/conftest.py "$TMPDIR/c/conftest.py"; ln -s "$TMPDIR/c" d; ln -s . e`, check: episode.Check{Command: "test -e conftest.py || test -e a/b/conftest.py || test -e d/conftest.py"}, fork: true},
		{name: "conftest.py behind a link", agent: `mkdir "$TMPDIR/c"; touch "$TMPDIR/c/conftest.py"; ln -s "$TMPDIR/c" d`, check: episode.Check{Command: "test -e d/conftest.py"}, fork: true},
		{name: "changed conftest.py", setup: "echo good > conftest.py", agent: "echo bad > conftest.py", check: episode.Check{Command: "! grep -q good conftest.py || grep -q bad conftest.py"}, fork: true},
		{name: "conftest.py that is a link", setup: "echo good > conftest.py", agent: "echo bad > bad.py; ln -sf bad.py conftest.py", check: episode.Check{Command: "! grep -q good conftest.py"}, fork: true},
		{name: "start-up code of a virtual environment", setup: `python3 -m venv --without-pip env`, agent: `for d in env/lib/python3*/site-packages; do echo 'import os; os._exit(0)' > $d/a.pth; done`, check: episode.Check{Command: `env/bin/python -c "raise SystemExit(1)"`}, fork: true},
		{name: "program before others", env: map[string]string{"PATH": "bin:/usr/bin:/bin"}, agent: "mkdir bin; printf '#!/bin/sh\n' > bin/grep; chmod +x bin/grep", check: episode.Check{Command: "grep -q x /dev/null"}, fork: true},
		{name: "rewritten script", agent: script(`'echo exit 0 > "$TESTS/test.sh"'`), check: episode.Check{Tests: episode.Files{"/tests/test.sh": episode.File("#!/bin/bash\n./run\ntest -f done\n")}, Command: `"$TESTS/test.sh"`}},
		{name: "rewritten script of bash", agent: script(`'echo exit 0 > "$TESTS/test.sh"'`), check: episode.Check{Tests: episode.Files{"/tests/test.sh": episode.File("./run\ntest -f done\n")}, Command: `bash "$TESTS/test.sh"`}},
		{name: "rewritten script that lies here", agent: `printf '%s\n' '#!/bin/bash' 'echo exit 0 > "$TESTS/test.sh"' > run; chmod +x run`, check: episode.Check{Tests: episode.Files{"/tests/test.sh": episode.File("\"$OLDPWD/run\"\ntest -f done\n")}, Command: `cd "$TESTS" && bash test.sh`}},
		{name: "program named as the shell", agent: "echo 'exit 0' > bash; echo 'exit 0' > sh", check: episode.Check{Command: "test -f done && true"}},
		{name: "killed shell", agent: script("'kill -9 $PPID'"), check: episode.Check{Command: "./run; test -f done"}, apart: true},
		{name: "crashed shell", agent: script("'kill -SEGV $PPID'"), check: episode.Check{Command: "./run; test -f done"}, apart: true},
		{name: "killed last program", agent: script("'kill -9 $$'"), check: episode.Check{Command: "true; ./run; exit $?"}, apart: true},
		{name: "killed after a forged verdict", agent: script("'echo 1; kill -9 $PPID'"), check: episode.Check{Reward: "stdout", Command: "./run; echo 0"}, apart: true},
		{name: "flood", agent: script("yes"), check: episode.Check{Command: "./run; test -f done"}},
		{name: "memory held in files", agent: `head -c 100M /dev/zero > "$TMPDIR/hoard"`, check: episode.Check{Command: `python3 -c "x = b'x' * (80 << 20); raise SystemExit(1)"`}, apart: true},
		{name: "no memory", agent: script(`'python3 -c "x = [1 << 20]; x *= 1 << 26" >/dev/null 2>&1 || kill -9 $PPID'`), check: episode.Check{Command: "./run; test -f done"}, apart: true},
		{name: "temporary directory elsewhere", agent: `rm -rf "$TMPDIR" 2>/dev/null && ln -s / "$TMPDIR" || true`, check: episode.Check{Command: "test -f done"}},
		{name: "no temporary directory", agent: `rm -rf "$TMPDIR" 2>/dev/null || true; touch "$TMPDIR" 2>/dev/null || true`, check: episode.Check{Command: "test -f done"}},
	}
	for _, ground := range grounds {
		judge := judge(t, ground)
		for _, tt := range tests {
			if tt.apart && !ground.apart {
				continue
			}
			want := 0.0
			if tt.fork && ground.verifier != "fork" {
				want = 1
			}
			t.Run(ground.String()+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				if mean, rewards, err := judge(t, tt.env, tt.check, tt.setup, tt.agent); err != nil || mean != want {
					t.Errorf("Verify = %v, %v, %v, want %v", mean, rewards, err, want)
				}
			})
		}
	}
}

// TestForgedVerdictFile lets the agent's code write the verdict and end the verifier before it can.
func TestForgedVerdictFile(t *testing.T) {
	check := episode.Check{
		Reward: "file", Command: `bash "$TESTS/test.sh"`,
		Tests: episode.Files{"/tests/test.sh": episode.File("./run\necho 0 > /logs/verifier/reward.txt\n")},
	}
	agent := `printf '%s\n' '#!/bin/bash' 'echo 1 > /logs/verifier/reward.txt; kill -9 $PPID' > run; chmod +x run`
	if mean, rewards, err := judge(t, grounds[0])(t, nil, check, "", agent); err != nil || mean != 0 {
		t.Errorf("Verify = %v, %v, %v, want 0", mean, rewards, err)
	}
}

// TestKilledElsewhere holds that a signal says nothing of the agent where others can send one.
func TestKilledElsewhere(t *testing.T) {
	_, _, err := judge(t, grounds[2])(t, nil, episode.Check{Command: "kill -9 $$"}, "", "")
	var broken *reward.Broken
	if !errors.As(err, &broken) || broken.Class != "signal_9" {
		t.Errorf("Verify: %v, want it broken as signal_9", err)
	}
}

// TestHonest holds that what protects verifiers is in the way of none.
func TestHonest(t *testing.T) {
	file := func(text string) episode.File { return episode.File(text) }
	unit := "import answer, unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(answer.VALUE, 42)\nif __name__ == '__main__': unittest.main()\n"
	answer := "echo VALUE = 42 > answer.py"
	tests := []struct {
		name  string
		env   map[string]string
		setup string
		agent string
		check episode.Check
		apart bool
	}{
		{name: "script beside the answer", agent: answer, check: episode.Check{Tests: episode.Files{"test.py": file(unit)}, Command: "python3 test.py"}},
		{name: "line of Python", agent: answer, check: episode.Check{Command: `python3 -c "from answer import VALUE; assert VALUE == 42"`}},
		{name: "Python from a pipe", agent: answer, check: episode.Check{Command: `echo "from answer import VALUE; assert VALUE == 42" | python3 -`}},
		{name: "unittest", agent: answer, check: episode.Check{Tests: episode.Files{"test_answer.py": file(unit)}, Command: "python3 -m unittest test_answer"}},
		{name: "unittest that discovers", agent: answer, check: episode.Check{Tests: episode.Files{"test_answer.py": file(unit)}, Command: "python3 -m unittest discover"}},
		{name: "unittest that discovers in a directory", agent: answer, check: episode.Check{Tests: episode.Files{"tests/__init__.py": nil, "tests/test_answer.py": file(unit)}, Command: "python3 -m unittest discover -s tests -t ."}},
		{name: "package named as one of Python's", agent: answer, check: episode.Check{Tests: episode.Files{"test/__init__.py": nil, "test/test_answer.py": file(unit)}, Command: "python3 -m unittest test.test_answer"}},
		{name: "package that is run", agent: "mkdir pkg; touch pkg/__init__.py pkg/m.py; printf 'try: import pkg.m\\nexcept ImportError: import m\\n' > pkg/__main__.py", check: episode.Check{Command: "python3 -m pkg && python3 pkg"}},
		{name: "helper beside a script", agent: answer, check: episode.Check{Tests: episode.Files{"t/run.py": file("import helper"), "t/helper.py": nil}, Command: "python3 t/run.py"}},
		{name: "helper beside a private script", agent: answer, check: episode.Check{Tests: episode.Files{"/tests/run.py": file("import json, sys, helper\nassert json.MINE"), "/tests/helper.py": nil, "/tests/json.py": file("MINE = True")}, Command: `python3 "$TESTS/run.py" && cd "$TESTS" && python3 run.py && python3 -c "import json; assert json.MINE"`}},
		{name: "modules of the task's own", env: map[string]string{"PYTHONPATH": "lib"}, agent: "mkdir lib src; echo > lib/one.py; echo > src/two.py", check: episode.Check{Command: `python3 -c "import one" && PYTHONPATH=src python3 -c "import two"`}},
		{name: "path that the check names", agent: "mkdir src; echo > src/two.py", check: episode.Check{Env: map[string]string{"PYTHONPATH": "src"}, Command: `python3 -c "import two"`}},
		{name: "module named as Python's, put first by a test", agent: "echo MINE = 1 > calendar.py", check: episode.Check{Command: `python3 -c "import sys; sys.path.insert(0, '.'); import calendar; calendar.MINE"`}},
		{name: "isolated Python", agent: answer, check: episode.Check{Command: `python3 -I -c "import json" && python3 -S -c "import json" && python3 -E -c "import answer"`}},
		{name: "virtual environment", agent: answer + `; python3 -m venv --without-pip "$TMPDIR/env"`, check: episode.Check{Tests: episode.Files{"test_answer.py": file(unit)}, Command: `"$TMPDIR/env/bin/python" -m unittest test_answer`}},
		{name: "many processes of Python", agent: answer, check: episode.Check{Tests: episode.Files{"p.py": file("import answer, multiprocessing as m\ndef f(x): return answer.VALUE\nif __name__ == '__main__':\n m.set_start_method('spawn')\n with m.Pool(1) as p: assert p.map(f, [1]) == [42]\n")}, Command: "python3 p.py"}, apart: true},
		{name: "login shell", agent: "touch done", check: episode.Check{Command: `bash -l -c "test -f done"`}},
		{name: "program", agent: "touch done", check: episode.Check{Command: "find done -size 0"}},
		{name: "differences", agent: "git init -q && echo a > a && git add . && git -c user.name=t -c user.email=t@t commit -qm work && echo b >> a", check: episode.Check{Command: `git log --format=%s | grep -qx work && ! git diff --quiet && git diff | grep -q '^+b' && git stash -q && git diff --quiet && git commit -q --allow-empty -m more`}},
		{name: "repository of another user", agent: "git init -q && chown -R 1000:1000 .", check: episode.Check{Command: "git status --porcelain"}, apart: true},
		{name: "hooks that are the work", agent: "git init -q && printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit", check: episode.Check{Env: map[string]string{"GIT_CONFIG_COUNT": "0"}, Command: "git commit -q --allow-empty -m x && test -f ran"}},
		{name: "modules of node", agent: "mkdir -p node_modules/dep; echo module.exports=1 > node_modules/dep/index.js; echo 'module.exports=require(\"dep\")' > answer.js", check: episode.Check{Command: `node -e "if (require('./answer') !== 1) process.exit(1)"`}},
		{name: "make", agent: "printf 'test:\\n\\ttest -f Makefile\\n' > Makefile", check: episode.Check{Command: "make test"}},
		{name: "file of the temporary directory", agent: `echo 42 > "$TMPDIR/out"`, check: episode.Check{Command: `grep -q 42 "$TMPDIR/out"`}},
		{name: "file of the home directory", agent: "echo 42 > ~/out", check: episode.Check{Command: `grep -q 42 ~/out && grep -q 42 "$HOME/out"`}},
		{name: "settings of the home directory", agent: "git config --global user.name agent", check: episode.Check{Command: `HOME=$HOME; test "$(git config user.name)" = agent`}},
		{name: "home directory for the verifier", check: episode.Check{Tests: episode.Files{"/tests/h.py": file("import os\nhome = os.path.expanduser('~')\nassert sorted(os.listdir(home)) == ['.curlrc', '.gitconfig'], os.listdir(home)\nopen(home + '/x', 'w').close()\n")}, Command: `python3 "$TESTS/h.py"`}},
		{name: "script that stops at errors", check: episode.Check{Tests: episode.Files{"/tests/t.sh": file("#!/bin/bash -e\nfalse\ntrue\n")}, Command: `! "$TESTS/t.sh" && ! bash -e "$TESTS/t.sh"`}},
		{name: "script that uses what bash knows", check: episode.Check{Tests: episode.Files{
			"/tests/t.sh":   file("#!/usr/bin/env bash\nset -euo pipefail\nshopt -s extglob\ntrap 'echo bye' EXIT\n[[ x = @(x|y) ]]\n[[ \"${BASH_SOURCE[0]}\" = \"$0\" ]]\n. \"$(dirname \"${BASH_SOURCE[0]}\")/lib.sh\"\ntest \"$2\" = \"b c\"\ntest $LINENO = 9\nread -r line\ntest \"$line\" = input\nexit 3\nnot bash ( at all\n"),
			"/tests/lib.sh": file("true\n"),
		}, Command: `echo input | "$TESTS/t.sh" a "b c"; test $? = 3`}},
		{name: "script of sh", check: episode.Check{Tests: episode.Files{"/tests/t.sh": file("#!/bin/sh\ntest \"$1\" = a\n")}, Command: `"$TESTS/t.sh" a && sh "$TESTS/t.sh" a`}},
		{name: "conftest.py that a task brings", setup: "touch conftest.py", check: episode.Check{Command: "test -f conftest.py"}},
		{name: "conftest.py that is the work", agent: "mkdir t; touch conftest.py t/conftest.py", check: episode.Check{Verifier: &episode.Verifier{Trust: []string{"conftest.py", "t/*"}}, Command: "test -f conftest.py && test -f t/conftest.py"}},
		{name: "package that is installed to be edited", setup: "python3 -m venv --without-pip env", agent: "mkdir src; echo > src/work.py; for d in env/lib/python3*/site-packages; do echo $PWD/src > $d/work.pth; done", check: episode.Check{Command: `env/bin/python -c "import work"`}},
		{name: "program of the agent's", env: map[string]string{"PATH": "bin:/usr/bin:/bin"}, agent: "mkdir bin; printf '#!/bin/sh\n' > bin/work; chmod +x bin/work", check: episode.Check{Command: "work"}},
		{name: "memory that processes share", agent: "echo x > /dev/shm/x; mkdir -p /dev/shm/a/b", check: episode.Check{Command: `test -z "$(ls -A /dev/shm)"`}, apart: true},
	}
	for _, ground := range grounds {
		judge := judge(t, ground)
		for _, tt := range tests {
			if tt.apart && !ground.apart {
				continue
			}
			t.Run(ground.String()+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				if mean, rewards, err := judge(t, tt.env, tt.check, tt.setup, tt.agent); err != nil || mean != 1 {
					t.Errorf("Verify = %v, %v, %v, want 1", mean, rewards, err)
				}
			})
		}
	}
}
