package bare_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/bare"
	"trajgen/sandbox/sandboxtest"
)

// Names under which this test starts itself, to serve a bare sandbox or to be one.
const (
	bareServerName = "sandbox-test-bare-server"
	bareName       = "sandbox-test-bare"
)

func init() {
	sandboxtest.Role(bareServerName, func(args []string) error {
		var layout sandbox.Layout
		if err := json.Unmarshal([]byte(args[0]), &layout); err != nil {
			return err
		}
		var files int64
		if _, err := fmt.Sscan(args[1], &files); err != nil {
			return err
		}
		if os.Getpid() == 1 {
			if err := bare.MountProc(); err != nil {
				return err
			}
		}
		return bare.Serve(layout, files)
	})
	sandboxtest.Role(bareName, beBare)
}

// noSleep is all that is in the environment of processes that are started: the race detector sleeps at the end of each.
var noSleep = []string{"GORACE=atexit_sleep_ms=0"}

// bareWays are how the process is started that is a bare sandbox.
var bareWays = []struct {
	name string
	uid  int
	sys  syscall.SysProcAttr
}{
	{name: "process 1", sys: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}},
	{name: "root", sys: syscall.SysProcAttr{Setsid: true}},
	{name: "ordinary user", uid: 54321, sys: syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}},
}

// dirOf is a directory of a user.
func dirOf(t testing.TB, owner int) string {
	t.Helper()
	dir := sandboxtest.OpenDir(t)
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBareContract asks bare sandboxes everything that sandboxes of any kind must do.
func TestBareContract(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for _, way := range bareWays {
		t.Run(way.name, func(t *testing.T) {
			b := &bare.Bares{Dir: dirOf(t, way.uid), Owner: way.uid}
			b.Start = func(layout sandbox.Layout, files int64, socket *os.File) (*os.Process, error) {
				l, err := json.Marshal(layout)
				if err != nil {
					return nil, err
				}
				c := sandboxtest.Again(bareServerName, string(l), fmt.Sprint(files))
				c.Dir, c.Env, c.Stderr, c.ExtraFiles, c.SysProcAttr = "/", noSleep, os.Stderr, []*os.File{socket}, &way.sys
				err = c.Start()
				return c.Process, err
			}
			const all = "the whole machine is the sandbox"
			lacks := map[string]string{"remove stays inside": all, "links do not lead out": all}
			sandboxtest.Run(t, func(testing.TB) sandbox.Backend { return b }, sandboxtest.Caps{Lacks: lacks})
		})
	}
}

// TestBare lets processes be bare sandboxes themselves.
func TestBare(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for _, way := range bareWays {
		t.Run(way.name, func(t *testing.T) {
			c := sandboxtest.Again(bareName, dirOf(t, way.uid))
			c.Dir, c.Env, c.SysProcAttr = "/", noSleep, &way.sys
			out, err := c.CombinedOutput()
			if err != nil || string(out) != "well\n" {
				t.Errorf("got %v, it said %s", err, out)
			}
			if n := sandboxtest.Sleepers("69.1"); n != 0 {
				t.Errorf("%d of its processes are left", n)
			}
		})
	}
}

// signalsAtAgent are a command's ways to end what started it.
const signalsAtAgent = `import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (200, 234, 129, 297, 424), "aarch64": (130, 131, 138, 240, 424)}[os.uname().machine]
tkill, tgkill, sigqueueinfo, tgsigqueueinfo, pidfd_send_signal = numbers
agent = os.getppid()
info = ctypes.create_string_buffer(128)
ctypes.c_int.from_buffer(info, 0).value, ctypes.c_int.from_buffer(info, 8).value = 9, -1
def attempt(f, *args):
    try: f(*args)
    except OSError: pass
attempt(os.kill, -1, 9)
if os.getpgid(agent): attempt(os.killpg, os.getpgid(agent), 9)
targets = [agent] + [int(t) for t in os.listdir("/proc/%d/task" % agent)]
if agent != 1: targets.append(int(open("/proc/%d/stat" % agent).read().rsplit(")", 1)[1].split()[1]) or agent)
for target in targets:
    for number in (9, 19, 15, 11):
        attempt(os.kill, target, number)
        libc.syscall(tkill, target, number)
        libc.syscall(tgkill, agent, target, number)
        libc.syscall(sigqueueinfo, target, number, info)
        libc.syscall(tgsigqueueinfo, agent, target, number, info)
    def by_descriptor(): signal.pidfd_send_signal(os.pidfd_open(target), 9)
    attempt(by_descriptor)
    def by_directory(): libc.syscall(pidfd_send_signal, os.open("/proc/%d" % target, os.O_RDONLY), 9, None, 0)
    attempt(by_directory)
    r, w = os.pipe()
    def by_input():
        fcntl.fcntl(r, fcntl.F_SETOWN, target)
        fcntl.fcntl(r, 10, 9)
        fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    attempt(by_input)
    os.write(w, b"x")
child = os.fork()
if child == 0: signal.pause()
os.kill(child, 15)
assert os.waitpid(child, 0)[1] == 15
print("survived")`

// beBare is such a process.
func beBare(args []string) error {
	if os.Getpid() == 1 {
		if err := bare.MountProc(); err != nil {
			return err
		}
	}
	dir := args[0]
	b, err := bare.Open(bare.Options{Workdir: dir + "/work", Home: dir + "/home", Tmp: dir + "/tmp", Tests: dir + "/tests"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := b.Open(ctx, sandbox.Spec{ID: "bare", Image: "whatever"})
	if err != nil {
		return err
	}
	if _, err := b.Open(ctx, sandbox.Spec{ID: "another"}); err == nil || !strings.Contains(err.Error(), "has one sandbox") {
		return fmt.Errorf("a second sandbox: got %v", err)
	}
	g := b.Guarantees()
	if g.Level != sandbox.LevelNone || g.Isolation["calls"] != "filtered" {
		return fmt.Errorf("got %+v", g)
	}
	run := func(script string) (string, error) {
		r, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{Merge: true})
		if err == nil && (r.Exit.Code != 0 || r.TimedOut) {
			err = fmt.Errorf("%s: got %+v, %q", script, r.Exit, r.Stdout.Bytes())
		}
		return string(r.Stdout.Bytes()), err
	}
	status, err := run("grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status | tr -d '\\n\\t'; ulimit -c")
	want := "CapEff:00000000800004fbNoNewPrivs:1Seccomp:20\n"
	if os.Getuid() != 0 {
		want = "CapEff:0000000000000000NoNewPrivs:1Seccomp:20\n"
	}
	if err != nil || status != want {
		return fmt.Errorf("a command is %q, %v, want %q", status, err, want)
	}
	if _, err := run("(setsid sleep 69.1 >/dev/null 2>&1 &); sleep 69.1 >/dev/null 2>&1 & kill -TERM 1 2>/dev/null; true"); err != nil {
		return err
	}
	if out, err := run("exec python3 -c '" + signalsAtAgent + "' 2>&1"); err != nil || out != "survived\n" {
		return fmt.Errorf("signals at the agent: %q, %v", out, err)
	}
	for range 3 {
		if err := sb.KillAll(ctx); err != nil {
			return err
		}
		if n := sandboxtest.Sleepers("69.1"); n != 0 {
			return fmt.Errorf("%d processes survived", n)
		}
		if out, err := run("echo more; (setsid sleep 69.1 >/dev/null 2>&1 &)"); err != nil || out != "more\n" {
			return fmt.Errorf("after kill all: %q, %v", out, err)
		}
	}
	if err := errors.Join(sb.Close(), b.Close()); err != nil {
		return err
	}
	if n := sandboxtest.Sleepers("69.1"); n != 0 {
		return fmt.Errorf("%d processes survived the end", n)
	}
	if _, err := sb.Start(ctx, sandbox.Command{Args: []string{"true"}}); !errors.Is(err, sandbox.ErrGone) {
		return fmt.Errorf("start in what is closed: %v", err)
	}
	fmt.Println("well")
	return nil
}
