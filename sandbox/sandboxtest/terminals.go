package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
)

// screen is a command on a terminal, with a user who types and reads.
type screen struct {
	k        *kit
	terminal sandbox.Terminal
	output   *sandbox.Capture
	keys     *io.PipeWriter
}

// onTerminal starts a command on a terminal.
func (k *kit) onTerminal(size sandbox.TTY, cmd sandbox.Command) *screen {
	k.Helper()
	s := &screen{k: k, output: sandbox.NewCapture(1<<20, 1<<20)}
	cmd.Stdin, s.keys = io.Pipe()
	cmd.Stdout, cmd.TTY = s.output, &size
	k.Cleanup(func() { _ = s.keys.Close() })
	var ok bool
	if s.terminal, ok = k.start(cmd).(sandbox.Terminal); !ok {
		k.Fatal("a command on a terminal is not a sandbox.Terminal")
	}
	return s
}

// text returns the output so far, with plain line ends.
func (s *screen) text() string { return strings.ReplaceAll(string(s.output.Bytes()), "\r\n", "\n") }

// until waits for something to appear.
func (s *screen) until(text string) {
	s.k.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.text(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.k.Fatalf("%q never appeared: got %q", text, s.text())
		}
	}
}

func (s *screen) typed(keys string) {
	s.k.Helper()
	if _, err := io.WriteString(s.keys, own(keys)); err != nil {
		s.k.Fatalf("type %q: %v", keys, err)
	}
}

func (k *kit) needs(program string) {
	k.Helper()
	if r := k.run(sh("command -v " + program)); r.Exit.Code != 0 {
		k.Skip("no " + program)
	}
}

// terminalCases are about commands on a terminal.
var terminalCases = []testCase{
	{name: "terminal", check: func(k *kit) {
		k.needs("stty")
		s := k.onTerminal(sandbox.TTY{Rows: 33, Cols: 111}, sh("tty; test -t 0 && test -t 1 && test -t 2 && echo all three; stty size; echo $TERM; echo direct >/dev/tty; echo other >&2; exit 6"))
		equal(k, "code", k.wait(s.terminal).Code, 6)
		if !regexp.MustCompile(`^/dev/(pts/|ttys)\d+\nall three\n33 111\nxterm\ndirect\nother\n$`).MatchString(s.text()) {
			k.Errorf("got %q", s.text())
		}
		if _, ok := k.start(sh("true")).(sandbox.Terminal); ok {
			k.Error("a command without a terminal is a sandbox.Terminal")
		}
		c := sh("stty size; echo $TERM")
		c.Env, c.TTY = []string{"TERM=vt100"}, &sandbox.TTY{}
		equal(k, "size of its own", string(k.run(c).Stdout.Bytes()), "24 80\r\nvt100\r\n")
	}},
	{name: "terminal resized", check: func(k *kit) {
		k.needs("stty")
		s := k.onTerminal(sandbox.TTY{Rows: 10, Cols: 20}, sh("trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done"))
		s.until("ready")
		if err := s.terminal.Resize(k.Context(), sandbox.TTY{Rows: 44, Cols: 222}); err != nil {
			k.Fatalf("resize: %v", err)
		}
		s.until("44 222")
		if err := s.terminal.Kill(k.Context(), 0); err != nil {
			k.Fatal(err)
		}
		equal(k, "signal", k.wait(s.terminal).Signal, 9)
	}},
	{name: "terminal echoes", check: func(k *kit) {
		s := k.onTerminal(sandbox.TTY{}, sandbox.Command{Args: []string{"cat"}})
		s.typed("one\n")
		s.until("one\none\n")
		s.typed("tuo\x7f\x7fwo\n\x04")
		equal(k, "code", k.wait(s.terminal).Code, 0)
		if !strings.HasSuffix(s.text(), "\ntwo\n") {
			k.Errorf("got %q", s.text())
		}
	}},
	{name: "terminal interrupts", check: func(k *kit) {
		s := k.onTerminal(sandbox.TTY{}, sh("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.02; done"))
		s.until("ready")
		s.typed("\x03")
		equal(k, "code", k.wait(s.terminal).Code, 5)
		s.until("caught")
		s = k.onTerminal(sandbox.TTY{}, sh("echo ready; exec sleep 71.1"))
		s.until("ready")
		s.typed("\x03")
		x := k.wait(s.terminal)
		equal(k, "signal", x.Signal, 2)
		equal(k, "code", x.Code, 130)
	}},
	{name: "terminal has job control", check: func(k *kit) {
		k.needs("bash")
		s := k.onTerminal(sandbox.TTY{}, sandbox.Command{Args: []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}, Env: []string{"PS1=ready 1> "}})
		s.until("ready 1> ")
		s.typed("cat; PS1='ready 2> '\n")
		s.typed("line\n")
		s.until("line\nline\n") // the second is from the process that has the terminal then
		s.typed("\x1a")
		s.until("Stopped")
		s.until("ready 2> ")
		s.typed("kill -9 %1; echo do''ne; exit 4; exit 4\n")
		s.until("done\n")
		equal(k, "code", k.wait(s.terminal).Code, 4)
		if text := s.text(); strings.Contains(text, "no job control") || strings.Contains(text, "cannot set terminal") {
			k.Errorf("got %q", text)
		}
	}},
	{name: "terminal does not end with what is typed", check: func(k *kit) {
		for name, in := range map[string]io.Reader{"nothing": nil, "an end": strings.NewReader("")} {
			c := sh("sleep 0.2; echo still; read line; echo got $line")
			c.Stdin, c.TTY = in, &sandbox.TTY{}
			kept := sandbox.NewCapture(1000, 0)
			c.Stdout = kept
			p := k.start(c)
			k.eventually("still there after "+name, func() bool { return strings.Contains(string(kept.Bytes()), "still") })
			if err := p.Kill(k.Context(), 0); err != nil {
				k.Fatal(err)
			}
			equal(k, "signal", k.wait(p).Signal, 9)
		}
	}},
	{name: "terminal and what goes on in the background", check: func(k *kit) {
		began := time.Now()
		s := k.onTerminal(sandbox.TTY{}, sh("trap '' HUP; sleep 71.3 & setsid sleep 71.3 & echo started"))
		equal(k, "code", k.wait(s.terminal).Code, 0)
		if took := time.Since(began); took > 20*time.Second {
			k.Errorf("took %v", took)
		}
		equal(k, "output", s.text(), "started\n")
		k.killAll(k.sb())
		k.sleeping(k.sb(), "71.3", 0)
	}},
	{name: "terminal loses nothing", check: func(k *kit) {
		var all strings.Builder
		for i := range 20000 {
			fmt.Fprintln(&all, i)
		}
		s := k.onTerminal(sandbox.TTY{}, sh("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"))
		equal(k, "code", k.wait(s.terminal).Code, 0)
		if got := s.text(); got != all.String() {
			k.Errorf("got %d bytes, want %d", len(got), all.Len())
		}
		c := sh("echo unseen; exit 3")
		c.TTY = &sandbox.TTY{}
		equal(k, "without a reader", k.wait(k.start(c)).Code, 3)
	}},
	{name: "many terminals", check: func(k *kit) {
		k.sb()
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() {
				c := sh(fmt.Sprintf("echo %d; exit %d", i, i))
				c.TTY = &sandbox.TTY{}
				r, err := sandbox.Run(k.Context(), k.sb(), c, sandbox.RunOptions{})
				if err != nil || r.Exit.Code != i || string(r.Stdout.Bytes()) != fmt.Sprintf("%d\r\n", i) {
					k.Errorf("command %d: got %+v %q, %v", i, r.Exit, r.Stdout.Bytes(), err)
				}
			})
		}
		wait.Wait()
	}},
	{name: "terminal beside a socket", check: func(k *kit) {
		p := k.start(sandbox.Command{Args: []string{"/bin/sh", "-c", "read line <&3; tty >&3; echo got $line >&3"}, Socket: true, TTY: &sandbox.TTY{}})
		socket := p.Socket()
		if socket == nil {
			k.Fatal("no socket")
		}
		defer socket.Close()
		fmt.Fprintln(socket, "hello")
		reply, err := io.ReadAll(socket)
		if err != nil || !strings.HasPrefix(string(reply), "/dev/") || !strings.HasSuffix(string(reply), "\ngot hello\n") {
			k.Errorf("got %q, %v", reply, err)
		}
		if _, err := k.sb().Start(k.Context(), sandbox.Command{Args: []string{"no-such-command-here"}, TTY: &sandbox.TTY{}}); !errors.Is(err, sandbox.ErrNotFound) {
			k.Errorf("unknown command: got %v, want ErrNotFound", err)
		}
	}},
	{name: "nothing is typed into a terminal from inside", isolation: true, check: func(k *kit) {
		k.needs("python3")
		s := k.onTerminal(sandbox.TTY{}, sandbox.Command{Args: []string{"python3", "-c", "import errno, fcntl, termios\ntry:\n  fcntl.ioctl(0, termios.TIOCSTI, b'x')\n  print('typed')\nexcept OSError as e:\n  print(errno.errorcode[e.errno])"}})
		k.wait(s.terminal)
		equal(k, "output", s.text(), "EPERM\n")
	}},
}
