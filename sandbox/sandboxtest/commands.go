package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
	_ "trajgen/sandbox/guests" // in tests with the tag embedguest
	"trajgen/sandbox/internal/embedded"
)

const (
	helperName = "sandboxtest"
	helperCase = "helper"
)

// small reports whether sandboxes run the built-in small program, which knows no helpers of tests, instead of this one.
var small = sync.OnceValue(func() bool {
	program, _ := embedded.Helper(runtime.GOARCH)
	return program != nil
})

func init() {
	sandbox.RegisterHelper(helperName, func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		in, _ := io.ReadAll(stdin)
		dir, _ := os.Getwd()
		fmt.Fprintf(stdout, "%q %q %s %s", args, in, path.Base(dir), os.Getenv("SANDBOXTEST_SECRET"))
		fmt.Fprint(stderr, "to stderr")
		return 7
	})
}

// commandCases are about one command.
var commandCases = []testCase{
	{name: "exit codes", check: func(k *kit) {
		for _, code := range []int{0, 1, 42, 126, 127, 255} {
			r := k.run(sh(fmt.Sprintf("exit %d", code)))
			equal(k, "code", r.Exit.Code, code)
			equal(k, "signal", r.Exit.Signal, 0)
		}
		equal(k, "unknown to the shell", k.run(sh("no-such-command-here")).Exit.Code, 127)
		k.write(sandbox.FileWrite{Path: "plain", Data: []byte("x")})
		equal(k, "not executable for the shell", k.run(sh("./plain")).Exit.Code, 126)
	}},
	{name: "signals", check: func(k *kit) {
		r := k.run(sh("kill -TERM $$"))
		equal(k, "code", r.Exit.Code, 143)
		equal(k, "signal", r.Exit.Signal, 15)
		equal(k, "code of a kill", k.run(sh("kill -9 $$")).Exit.Code, 137)
	}},
	{name: "command not found", check: func(k *kit) {
		k.write(sandbox.FileWrite{Path: "plain", Data: []byte("x")})
		for _, args := range [][]string{{"no-such-command-here"}, {"/no/such/program"}, {"./plain"}, {""}, nil} {
			_, err := k.sb().Start(k.Context(), sandbox.Command{Args: args})
			if !errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrGone) {
				k.Errorf("start %q: got %v, want ErrNotFound", args, err)
			}
		}
		k.sh("true")
	}},
	{name: "no shell between", check: func(k *kit) {
		r := k.run(sandbox.Command{Args: []string{"printf", "%s|", "$HOME", "a b", "'", "*", ";ls", "\n"}})
		equal(k, "output", string(r.Stdout.Bytes()), "$HOME|a b|'|*|;ls|\n|")
	}},
	{name: "long argument", check: func(k *kit) {
		long := strings.Repeat("x", 120_000)
		r := k.run(sandbox.Command{Args: []string{"/bin/sh", "-c", "printf %s%s%s \"$1\" \"$2\" \"$3\" | wc -c", "sh", long, long, long}})
		equal(k, "length", strings.TrimSpace(string(r.Stdout.Bytes())), "360000")
	}},
	{name: "working directory", check: func(k *kit) {
		k.sh("mkdir -p sub/deep && ln -s deep sub/link")
		for dir, want := range map[string]string{"": path.Base(k.sb().Layout().Workdir), "sub/deep": "deep", k.sb().Layout().Workdir + "/sub": "sub"} {
			c := sh("pwd")
			c.Dir = dir
			equal(k, "base of "+dir, path.Base(strings.TrimSpace(string(k.run(c).Stdout.Bytes()))), want)
		}
		c := sh("pwd")
		for _, dir := range []string{"nowhere", "/nowhere"} {
			c.Dir = dir
			if _, err := k.sb().Start(k.Context(), c); err == nil || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrNotFound) {
				k.Errorf("start in %s: got %v, want a plain error", dir, err)
			}
		}
	}},
	{name: "layout", check: func(k *kit) {
		l := k.sb().Layout()
		for _, dir := range []string{l.Workdir, l.Home, l.Tmp} {
			k.sh("cd " + dir + " && echo x > file && rm file")
		}
		equal(k, "home", k.sh("printf %s $HOME"), l.Home)
		equal(k, "tmp", k.sh("printf %s $TMPDIR"), l.Tmp)
		k.sh("[ ! -e " + l.Tests + " ] || [ -z \"$(ls -A " + l.Tests + ")\" ]")
	}},
	{name: "environment is clean", check: func(k *kit) {
		c := sandbox.Command{Args: []string{"env"}, Env: []string{"MINE=1", "MINE=2", "EMPTY=", "LANG=C"}}
		sb := k.open(sandbox.Spec{Env: map[string]string{"FROM_SPEC": "a b"}})
		got := map[string]string{}
		for line := range strings.Lines(string(k.runIn(sb, c, 20*time.Second).Stdout.Bytes())) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			got[name] = value
		}
		for name, want := range map[string]string{"MINE": "2", "EMPTY": "", "LANG": "C", "FROM_SPEC": "a b", "TERM": "dumb", "TZ": "UTC"} {
			if value, ok := got[name]; !ok || value != want {
				k.Errorf("%s: got %q, want %q", name, value, want)
			}
		}
		for name := range got {
			if !strings.Contains(" PATH HOME LANG TERM TZ TMPDIR USER PWD MINE EMPTY FROM_SPEC TRAJGEN_SANDBOX ", " "+name+" ") {
				k.Errorf("unexpected variable %s=%s", name, got[name])
			}
		}
		equal(k, "characters", k.sh(`printf %s "$LC_CTYPE$LANG"`), "C.UTF-8")
	}},
	{name: "commands without a shell", check: func(k *kit) {
		l := k.sb().Layout()
		k.write(sandbox.FileWrite{Path: "bin/show", Mode: 0o755, Data: []byte("#!/bin/sh\nprintf '<%s>' \"$@\"; echo; pwd; env | grep -v '^_=\\|TRAJGEN' | sort; exit 3\n")})
		k.write(sandbox.FileWrite{Path: "bin/script", Mode: 0o755, Data: []byte("exit 4\n")})
		env := []string{"PATH=" + l.Workdir + "/bin:/usr/bin:/bin", "SHLVL=0"}
		for line, started := range map[string]bool{
			"show": true, "show a 'b  c' \"d'*\" -e --f=g:h,i@j%k+l ''": true, "script": false, "no-such-command-here x": false, "cat nothing": true,
		} {
			args, ok := l.Direct(line, env)
			if !l.Plain && !ok {
				continue
			}
			want := k.run(sandbox.Command{Args: []string{"bash", "-c", line}, Env: env})
			process, err := k.sb().Start(k.Context(), sandbox.Command{Args: args, Env: env})
			if !started {
				if !errors.Is(err, sandbox.ErrNotFound) {
					k.Errorf("start %q: got %v, want ErrNotFound", args, err)
				}
				continue
			}
			if err != nil {
				k.Fatalf("start %q: %v", args, err)
			}
			k.wait(process)
			got := k.run(sandbox.Command{Args: args, Env: env})
			equal(k, line, string(got.Stdout.Bytes()), string(want.Stdout.Bytes()))
			equal(k, line, string(got.Stderr.Bytes()), string(want.Stderr.Bytes()))
			equal(k, line, got.Exit.Code, want.Exit.Code)
		}
		for _, name := range []string{"BASH_ENV", "SHELLOPTS"} {
			if layout := k.open(sandbox.Spec{Env: map[string]string{name: "x"}}).Layout(); layout.Plain {
				k.Errorf("a sandbox with %s is plain", name)
			}
		}
	}},
	{name: "stdin", check: func(k *kit) {
		c := sh("cat; printf end")
		equal(k, "nil", string(k.run(c).Stdout.Bytes()), "end")
		big := bytes.Repeat([]byte("0123456789abcdef"), 32<<10)
		c.Stdin = bytes.NewReader(big)
		equal(k, "big", k.run(sandbox.Command{Args: []string{"wc", "-c"}, Stdin: c.Stdin}).Stdout.Total() > 0, true)
		r := k.run(sandbox.Command{Args: []string{"wc", "-c"}, Stdin: bytes.NewReader(big)})
		equal(k, "length", strings.TrimSpace(string(r.Stdout.Bytes())), fmt.Sprint(len(big)))
		r = k.run(sandbox.Command{Args: []string{"true"}, Stdin: bytes.NewReader(big)})
		equal(k, "unread", r.Exit.Code, 0)
	}},
	{name: "an endless stdin holds nothing up", check: func(k *kit) {
		r, w := io.Pipe()
		defer w.Close()
		equal(k, "code", k.run(sandbox.Command{Args: []string{"true"}, Stdin: r}).Exit.Code, 0)
	}},
	{name: "stdout and stderr", check: func(k *kit) {
		r := k.run(sh("printf out; printf err >&2"))
		equal(k, "stdout", string(r.Stdout.Bytes()), "out")
		equal(k, "stderr", string(r.Stderr.Bytes()), "err")
	}},
	{name: "merged in order", check: func(k *kit) {
		kept := sandbox.NewCapture(1<<20, 0)
		c := sh("for i in 1 2 3 4 5 6 7 8 9; do printf o$i; printf e$i >&2; done")
		c.Stdout, c.Stderr = kept, kept
		equal(k, "code", k.wait(k.start(c)).Code, 0)
		equal(k, "output", string(kept.Bytes()), "o1e1o2e2o3e3o4e4o5e5o6e6o7e7o8e8o9e9")
	}},
	{name: "binary and large output", check: func(k *kit) {
		r := k.run(sh(`printf '\000\377\200x'`))
		equal(k, "bytes", string(r.Stdout.Bytes()), "\x00\xff\x80x")
		r = k.run(sh("head -c 3000000 /dev/zero"))
		equal(k, "total", r.Stdout.Total(), int64(3_000_000))
		equal(k, "omitted", r.Stdout.Omitted(), int64(3_000_000-128<<10))
	}},
	{name: "output without a reader", check: func(k *kit) {
		equal(k, "code", k.wait(k.start(sh("head -c 1000000 /dev/zero; echo x >&2"))).Code, 0)
	}},
	{name: "a flood is stopped", check: func(k *kit) {
		ctx, cancel := context.WithTimeout(k.Context(), 30*time.Second)
		defer cancel()
		r, err := sandbox.Run(ctx, k.sb(), sandbox.Command{Args: []string{"yes"}}, sandbox.RunOptions{Flood: 1 << 20})
		if err != nil || !r.Flooded || r.TimedOut {
			k.Errorf("got %+v, %v, want a flood", r.Exit, err)
		}
	}},
	{name: "no descriptor leaks", check: func(k *kit) {
		equal(k, "descriptors", strings.Join(strings.Fields(k.sh("exec ls /proc/self/fd")), " "), "0 1 2 3")
	}},
	{name: "socket", check: func(k *kit) {
		p := k.start(sandbox.Command{Args: []string{"/bin/sh", "-c", "read line <&3; echo got $line >&3"}, Socket: true})
		socket := p.Socket()
		if socket == nil {
			k.Fatal("no socket")
		}
		defer socket.Close()
		fmt.Fprintln(socket, "hello")
		reply, err := io.ReadAll(socket)
		if err != nil || string(reply) != "got hello\n" {
			k.Errorf("got %q, %v", reply, err)
		}
		equal(k, "code", k.wait(p).Code, 0)
		if s := k.start(sh("true")).Socket(); s != nil {
			k.Errorf("a socket that was not asked for: %v", s)
		}
	}},
	{name: helperCase, check: func(k *kit) {
		r := k.run(sandbox.Command{Helper: helperName, Args: []string{"a", "b c"}, Stdin: strings.NewReader("in"), Dir: k.sb().Layout().Tmp})
		equal(k, "code", r.Exit.Code, 7)
		equal(k, "stdout", string(r.Stdout.Bytes()), `["a" "b c"] "in" `+path.Base(k.sb().Layout().Tmp)+" ")
		equal(k, "stderr", string(r.Stderr.Bytes()), "to stderr")
		if _, err := k.sb().Start(k.Context(), sandbox.Command{Helper: "no-such-helper"}); !errors.Is(err, sandbox.ErrNotFound) {
			k.Errorf("unknown helper: got %v, want ErrNotFound", err)
		}
	}},
	{name: "many at once", check: func(k *kit) {
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				r, err := sandbox.Run(k.Context(), k.sb(), sh(fmt.Sprintf("echo %d; exit %d", i, i)), sandbox.RunOptions{})
				if err != nil || r.Exit.Code != i || string(r.Stdout.Bytes()) != fmt.Sprintln(i) {
					k.Errorf("command %d: got %+v %q, %v", i, r.Exit, r.Stdout.Bytes(), err)
				}
			})
			if i == 0 {
				wait.Wait() // the sandbox is opened by the first
			}
		}
		wait.Wait()
	}},
	{name: "cancelled start", check: func(k *kit) {
		k.sb()
		cause := errors.New("no longer wanted")
		ctx, cancel := context.WithCancelCause(k.Context())
		cancel(cause)
		if _, err := k.sb().Start(ctx, sh("true")); !errors.Is(err, cause) {
			k.Errorf("got %v, want the cause", err)
		}
		if _, err := k.sb().Files().Stat(ctx, "."); !errors.Is(err, cause) {
			k.Errorf("stat: got %v, want the cause", err)
		}
	}},
	{name: "cpu time", check: func(k *kit) {
		r := k.run(sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
		if r.Exit.CPU < time.Millisecond || r.Exit.CPU > 20*time.Second {
			k.Errorf("got %v", r.Exit.CPU)
		}
	}},
	{name: "wrong spec", check: func(k *kit) {
		for _, spec := range []sandbox.Spec{{ID: ""}, {ID: "../x"}, {ID: "a", Network: "wormhole"}, {ID: "a", Limits: sandbox.Limits{Memory: -1}}, {ID: "a", Env: map[string]string{"A=B": ""}}} {
			if sb, err := k.backend.Open(k.Context(), spec); err == nil {
				k.Errorf("spec %+v was accepted", spec)
				sb.Close()
			}
		}
	}},
}
