package reward_test

import (
	"cmp"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// Tests that can be interrupted, that do not want to, and that cannot: they wait in code that is not Python and hold its lock.
const (
	insists  = "\n    while True:\n        try: time.sleep(60)\n        except BaseException: pass"
	inC      = "ctypes.PyDLL(None).pause()"
	imports  = "import ctypes, threading, time, unittest, pytest\n"
	deadlock = "def test_late():\n    lock = threading.Lock(); lock.acquire(); lock.acquire()\n"
)

// TestTestTimeout has tests that take too long fail, and the verdict stand.
func TestTestTimeout(t *testing.T) {
	t.Parallel()
	const ask = "import pytest, sys; print(sys.executable)"
	found, err := exec.Command("python3", "-c", ask).Output()
	if err != nil {
		found, err = exec.Command("/usr/bin/python3", "-c", ask).Output()
	}
	if err != nil {
		t.Fatal("python3 has no pytest: scripts/need pytest installs it")
	}
	python := strings.TrimSpace(string(found)) // which need not be the sandbox's
	const good = "def test_good(): pass\n"
	pytest := func(body string) episode.Files {
		return episode.Files{"/tests/test_it.py": episode.File(imports + body)}
	}
	unit := episode.Files{"/tests/it.py": episode.File("import threading, unittest\nclass T(unittest.TestCase):\n def test_late(self): threading.Event().wait()\n def test_good(self): print('good ran')\nunittest.main()\n")}
	run := python + ` -m pytest -rA -p no:cacheprovider "$TESTS/test_it.py"`
	tests := []struct {
		name, command, reward string
		files                 episode.Files
		want                  float64
		detail                string
		limit, timeout        time.Duration // of a test and of the verifier; 0 is two seconds and a minute
	}{
		{name: "no test is late", command: run, files: pytest(good), want: 1, detail: "1 passed"},
		{name: "a lock", command: run, files: pytest(deadlock + good), detail: "1 failed, 1 passed"},
		{name: "a lock, by the summary", command: run, reward: "pytest", files: pytest(deadlock + good), detail: "1 of 2 tests passed"},
		{name: "a fixture", command: run, files: pytest("@pytest.fixture\ndef f():\n    time.sleep(60)\ndef test_late(f): pass\n" + good), detail: "1 passed, 1 error"},
		{name: "a test that goes on", command: run, reward: "pytest", files: pytest("def test_late():" + insists + "\n" + good), detail: "test_late took longer than 2s"},
		{name: "code that is not Python", command: run, reward: "pytest", files: pytest("def test_late(): " + inC + "\n" + good), detail: "test_late"},
		{name: "code that is not Python, by the status", command: run, files: pytest("def test_late(): " + inC + "\n" + good), detail: "status 1"},
		{name: "a reward that is not printed", command: run + ` && echo 1`, reward: "stdout", files: pytest(deadlock), detail: "test_late took longer than 2s"},
		{name: "a part of the reward", command: run + ` | grep -c "^PASSED"`, reward: "stdout", files: pytest(deadlock + good), want: 1},
		{name: "unittest", command: `python3 "$TESTS/it.py"`, files: unit, detail: "errors=1"},
		{name: "unittest, all of them", command: `python3 "$TESTS/it.py" 2>&1 | grep "good ran"`, files: unit, want: 1},
		{name: "unittest of pytest", command: run, files: pytest("class T(unittest.TestCase):\n    def test_late(self): threading.Event().wait()\n    def test_good(self): pass\n"), detail: "1 failed, 1 passed"},
		{name: "a timer of the test's own", command: run, files: pytest("import signal\ndef test_own():\n    rang = []\n    signal.signal(signal.SIGALRM, lambda *a: rang.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.1)\n    while not rang: time.sleep(0.01)\n"), want: 1},
		{name: "more late tests than the verifier has time for", command: run, files: pytest("@pytest.mark.parametrize('n', range(99))\ndef test_late(n): threading.Event().wait()\n"), detail: "verifier timed out", limit: time.Second, timeout: 8 * time.Second},
		{name: "a pytest that the tests start", command: run, files: pytest("import subprocess, sys, os\ndef test_inner():\n    assert subprocess.run([sys.executable, '-E', '-m', 'pytest', '--version']).returncode == 0\n"), want: 1, limit: 29 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check := episode.Check{Command: tt.command, Tests: tt.files, Reward: tt.reward, TestTimeout: cmp.Or(tt.limit, 2*time.Second), Timeout: cmp.Or(tt.timeout, time.Minute)}
			rewards, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, open(t), ""))
			if err != nil || mean != tt.want {
				t.Fatalf("Verify = %v, %v, %v, want %v", mean, rewards, err, tt.want)
			}
			if !strings.Contains(rewards[0].Detail, tt.detail) {
				t.Errorf("detail %q, want %q in it", rewards[0].Detail, tt.detail)
			}
		})
	}
	t.Run("without a limit", func(t *testing.T) {
		t.Parallel()
		check := episode.Check{Command: run, Tests: pytest(deadlock), Timeout: 3 * time.Second}
		var broken *reward.Broken
		if _, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, open(t), "")); !errors.As(err, &broken) || broken.Class != "timeout" {
			t.Errorf("Verify = %v, %v, want it broken", mean, err)
		}
	})
	if _, err := reward.Kind(episode.Check{Command: "true", TestTimeout: time.Minute}); err == nil {
		t.Error("a limit of a minute is taken, which a second look at twice the time never reaches")
	}
}
