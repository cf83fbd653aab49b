package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"trajgen/sandbox"
)

// daemon starts a process without any connection to its starter.
func daemon(seconds string) string {
	return "(setsid sh -c 'sleep " + seconds + " & exec sleep " + seconds + "' </dev/null >/dev/null 2>&1 &)"
}

// sleepers counts the processes that sleep for a number of seconds, which names the test that started them. It starts four
// programs however many processes there are: a busy machine has thousands.
func (k hands) sleepers(sb sandbox.Sandbox, seconds string) int {
	k.Helper()
	out := k.shIn(sb, `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -cxF `+seconds+` || true`)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		k.Fatalf("count those that sleep for %s: %v", seconds, err)
	}
	return n
}

// sleeping waits until want of them are left.
func (k hands) sleeping(sb sandbox.Sandbox, seconds string, want int) {
	k.Helper()
	k.eventually(fmt.Sprintf("%d sleep for %s", want, seconds), func() bool { return k.sleepers(sb, seconds) == want })
}

// processCases are about what commands leave running.
var processCases = []testCase{
	{name: "wait gives up with its context", check: func(k *kit) {
		p := k.start(sandbox.Command{Args: []string{"sleep", "60.1"}})
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(k.Context(), 10*time.Millisecond, cause)
		defer cancel()
		if _, err := p.Wait(ctx); !errors.Is(err, cause) {
			k.Errorf("got %v, want the cause", err)
		}
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Errorf("kill: %v", err)
		}
		for range 2 {
			equal(k, "code", k.wait(p).Code, 137)
		}
		if err := p.Kill(k.Context(), time.Second); err != nil {
			k.Errorf("kill what is gone: %v", err)
		}
	}},
	{name: "kill with grace", check: func(k *kit) {
		kept := sandbox.NewCapture(1000, 0)
		c := sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
		c.Stdout = kept
		p := k.start(c)
		k.eventually("ready", func() bool { return strings.Contains(string(kept.Bytes()), "ready") })
		if err := p.Kill(k.Context(), 10*time.Second); err != nil {
			k.Fatalf("kill: %v", err)
		}
		equal(k, "code", k.wait(p).Code, 3)
		equal(k, "output", string(kept.Bytes()), "ready\nbye\n")

		c = sh("trap '' TERM; echo ready; while :; do sleep 0.01; done")
		kept = sandbox.NewCapture(1000, 0)
		c.Stdout = kept
		p = k.start(c)
		k.eventually("ready", func() bool { return strings.Contains(string(kept.Bytes()), "ready") })
		if err := p.Kill(k.Context(), 50*time.Millisecond); err != nil {
			k.Fatalf("kill: %v", err)
		}
		equal(k, "signal of the stubborn", k.wait(p).Signal, 9)
	}},
	{name: "a deadline kills children and keeps output", check: func(k *kit) {
		k.sb()
		began := time.Now()
		r := k.runIn(k.sb(), sh("echo so far; sleep 61.1 & (sleep 61.1; true) & setsid sleep 61.1 & sleep 61.1"), 3*time.Second)
		equal(k, "timed out", r.TimedOut, true)
		equal(k, "output", string(r.Stdout.Bytes()), "so far\n")
		if took := time.Since(began); took > 20*time.Second {
			k.Errorf("took %v", took)
		}
		k.eventually("all children gone", func() bool { return k.sleepers(k.sb(), "61.1") == 0 })
	}},
	{name: "a kill gets daemons and no other process", check: func(k *kit) {
		k.sh(daemon("66.1"))
		other := k.start(sh(daemon("66.1") + "; exec sleep 66.1"))
		k.eventually("five sleepers", func() bool { return k.sleepers(k.sb(), "66.1") == 5 })
		p := k.start(sh("(setsid sh -c '(setsid sleep 66.2 &)' &); " + daemon("66.2") + "; exec sleep 66.2"))
		k.eventually("four sleepers", func() bool { return k.sleepers(k.sb(), "66.2") == 4 })
		if err := p.Kill(k.Context(), time.Second); err != nil {
			k.Fatalf("kill: %v", err)
		}
		k.eventually("none", func() bool { return k.sleepers(k.sb(), "66.2") == 0 })
		k.sleeping(k.sb(), "66.1", 5)
		if err := other.Kill(k.Context(), 0); err != nil {
			k.Fatalf("kill the other: %v", err)
		}
		k.eventually("what an earlier command left alone", func() bool { return k.sleepers(k.sb(), "66.1") == 2 })
	}},
	{name: "a kill gets daemons without an environment", check: func(k *kit) {
		// It begins on demand, like a shell that waits for its input.
		input, begin := io.Pipe()
		defer begin.Close()
		c := sh("read line; env -i setsid sh -c '(setsid sleep 67.1 &)'; exec sleep 67.1")
		c.Stdin = input
		p := k.start(c)
		_, _ = io.WriteString(begin, "\n")
		k.eventually("two sleepers", func() bool { return k.sleepers(k.sb(), "67.1") == 2 })
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Fatalf("kill: %v", err)
		}
		k.eventually("none", func() bool { return k.sleepers(k.sb(), "67.1") == 0 })
	}},
	{name: "a kill gets a daemon that hides", isolation: true, check: func(k *kit) {
		// Nothing else may run meanwhile, or the process could be another command's.
		kept := sandbox.NewCapture(1000, 0)
		c := sandbox.Command{Stdout: kept, Args: []string{
			"bash", "-c", `ulimit -m unlimited || exit; env -i setsid sh -c '(setsid sh -c "echo ready; exec sleep 68.1" &)'; sleep 68.1`,
		}}
		if _, err := k.sb().Start(k.Context(), sandbox.Command{Args: []string{"bash", "-c", "exit"}}); errors.Is(err, sandbox.ErrNotFound) {
			k.Skip("no bash")
		}
		k.killAll(k.sb())
		p := k.start(c)
		k.eventually("ready or unable", func() bool {
			ctx, cancel := context.WithTimeout(k.Context(), time.Millisecond)
			defer cancel()
			_, err := p.Wait(ctx)
			return err == nil || len(kept.Bytes()) > 0
		})
		if len(kept.Bytes()) == 0 {
			if k.backend.Guarantees().Isolation["kernel"] == "shared" {
				k.Fatal("bash cannot set its limit")
			}
			k.Skip("its bash cannot set the limit")
		}
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Fatalf("kill: %v", err)
		}
		k.sleeping(k.sb(), "68.1", 0)
	}},
	{name: "a cancelled run is killed", check: func(k *kit) {
		k.sb()
		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(k.Context())
		c := sh("echo here; sleep 62.1")
		c.Stdout = writerFunc(func([]byte) { cancel(cause) })
		r, err := sandbox.Run(ctx, k.sb(), c, sandbox.RunOptions{})
		if !errors.Is(err, cause) || r.TimedOut {
			k.Errorf("got %v, want the cause", err)
		}
		// Its output may arrive before the answer to the start: then it is killed before that.
		k.eventually("no sleeper", func() bool { return k.sleepers(k.sb(), "62.1") == 0 })
	}},
	{name: "a background child does not hold up wait", check: func(k *kit) {
		began := time.Now()
		r := k.run(sh("sleep 63.1 & echo started"))
		if took := time.Since(began); took > 20*time.Second {
			k.Errorf("took %v", took)
		}
		equal(k, "output", string(r.Stdout.Bytes()), "started\n")
		// Its shell may have ended before it becomes a sleeper.
		k.eventually("the child lives", func() bool { return k.sleepers(k.sb(), "63.1") == 1 })
	}},
	{name: "a background child may go on printing", check: func(k *kit) {
		r := k.run(sh("(sleep 1.5; echo late; echo late >&2; echo alive > alive) & echo started"))
		equal(k, "output", string(r.Stdout.Bytes()), "started\n")
		k.eventually("the child outlives its prints", func() bool {
			_, err := k.sb().Files().Stat(k.Context(), "alive")
			return err == nil
		})
		equal(k, "nothing late", string(r.Stdout.Bytes()), "started\n")
	}},
	{name: "a server on loopback", check: func(k *kit) {
		if _, err := k.sb().Start(k.Context(), sandbox.Command{Args: []string{"python3", "-c", ""}}); errors.Is(err, sandbox.ErrNotFound) {
			k.Skip("no python3")
		}
		k.sh("echo served > page; python3 -u -m http.server --bind 127.0.0.1 0 > port 2>&1 & true")
		script := `import re,urllib.request as u; p=re.search(r'port (\d+)',open('port').read()).group(1); print(u.urlopen('http://127.0.0.1:'+p+'/page').read().decode(),end='')`
		k.eventually("an answer", func() bool {
			r := k.run(sandbox.Command{Args: []string{"python3", "-c", script}})
			return string(r.Stdout.Bytes()) == "served\n"
		})
	}},
	{name: "kill all gets daemons", check: func(k *kit) {
		k.sh(daemon("64.1") + "; sleep 64.1 >/dev/null 2>&1 &")
		p := k.start(sandbox.Command{Args: []string{"sleep", "64.1"}})
		k.eventually("four sleepers", func() bool { return k.sleepers(k.sb(), "64.1") == 4 })
		k.killAll(k.sb())
		k.sleeping(k.sb(), "64.1", 0)
		equal(k, "code", k.wait(p).Code, 137)
		equal(k, "usable", k.sh("echo yes"), "yes\n")
		k.killAll(k.sb())
	}},
	{name: "kill all and dropped users", isolation: true, check: func(k *kit) {
		r := k.run(sh("setpriv --reuid=1000 --regid=1000 --clear-groups sleep 65.1 & sleep 0.2; kill -0 $!"))
		if r.Exit.Code != 0 {
			k.Skipf("cannot change the user: %q", r.Stderr.Bytes())
		}
		k.killAll(k.sb())
		k.sleeping(k.sb(), "65.1", 0)
	}},
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
