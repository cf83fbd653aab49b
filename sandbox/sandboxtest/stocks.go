package sandboxtest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"trajgen/sandbox"
)

func python(script string) sandbox.Command {
	return sandbox.Command{Args: []string{"python3", "-c", script}}
}

// upon lists what a command may try on process 1 and its threads, which have the command's user.
const upon = `import os, resource, sys
own = {os.getpid(), os.getppid()}
for pid in [1] + [n for n in range(2, 100) if os.path.exists('/proc/%d/task' % n) and n not in own]:
    for what in (lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)),
                 lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0)),
                 lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)),
                 lambda: resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0)),
                 lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                 lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)):
        try: what()
        except OSError: continue
        print(pid)
resource.prlimit(0, resource.RLIMIT_NOFILE, (90, 90))
print(resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE) is not None)`

// takesAll uses up resources that the kernel shares among a user's processes, or all of the machine.
const takesAll = `import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong(0)
libc.syscall({'x86_64': 206, 'aarch64': 0}[os.uname().machine], 65000, ctypes.byref(context))
for i in range(600): libc.inotify_init()
for i in range(200): libc.mq_open(b'/q%d' % i, 0o102, 0o600, None)
open('taken', 'w').close()
time.sleep(600)`

// quotas skips a case where the backend does not promise that sandboxes have quotas of their own.
func (k *kit) quotas() {
	k.Helper()
	if k.backend.Guarantees().Isolation["quotas"] != "own" {
		k.Skip("the backend does not claim quotas of its own")
	}
}

// stockCases are about resources that sandboxes share, and which Spec does not limit.
var stockCases = []testCase{
	{name: "process 1 is out of reach of its own user", isolation: true, check: func(k *kit) {
		k.quotas()
		equal(k, "within reach", string(k.run(python(upon)).Stdout.Bytes()), "True\n")
		k.killAll(k.sb())
		k.write(sandbox.FileWrite{Path: "f", Data: []byte("x")})
		equal(k, "afterwards", k.sh("cat f; cat f > g; cat g"), "xx")
	}},
	{name: "a command that stops all others", isolation: true, check: func(k *kit) {
		k.quotas()
		k.start(python("import os, signal\nopen('ready', 'w').close()\nwhile True:\n    try: os.kill(-1, signal.SIGSTOP)\n    except OSError: pass"))
		k.eventually("the stopper", func() bool { _, err := k.sb().Files().Stat(k.Context(), "ready"); return err == nil })
		ctx, cancel := context.WithTimeout(k.Context(), 30*time.Second)
		defer cancel()
		for range 20 {
			short, stop := context.WithTimeout(ctx, 2*time.Second)
			_, err := sandbox.Run(short, k.sb(), sh("true"), sandbox.RunOptions{})
			stop()
			if errors.Is(err, sandbox.ErrGone) {
				k.Fatal(err)
			}
		}
		k.recovers(k.sb())
	}},
	{name: "a neighbour that takes all there is", isolation: true, check: func(k *kit) {
		k.quotas()
		neighbour := k.open(sandbox.Spec{})
		p := k.start(python(takesAll))
		defer func() { _ = p.Kill(context.WithoutCancel(k.Context()), 0) }()
		k.eventually("all is taken", func() bool { _, err := k.sb().Files().Stat(k.Context(), "taken"); return err == nil })
		equal(k, "is left", string(k.runIn(neighbour, python(`import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.inotify_init() >= 0, libc.mq_open(b'/q', 0o102, 0o600, None) >= 0)`), 10*time.Second).Stdout.Bytes()), "True True\n")
		if fd, _ := os.ReadFile("/proc/sys/fs/aio-nr"); len(fd) > 0 {
			if n, err := strconv.Atoi(strings.TrimSpace(string(fd))); err != nil || n > 60000 {
				k.Errorf("asynchronous requests of the machine: %q are taken", fd)
			}
		}
	}},
	{name: "descriptors in flight and files that are read", isolation: true, check: func(k *kit) {
		k.quotas()
		neighbour := k.open(sandbox.Spec{})
		p := k.start(python(`import socket, array, time
held, spare = [], open('/dev/null')
try:
    while True:
        a, b = socket.socketpair(); held += [a, b]
        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 100))], 0x40)
except OSError: spare.close(); open('full', 'w').close()
time.sleep(600)`))
		k.eventually("no more can be sent", func() bool { _, err := k.sb().Files().Stat(k.Context(), "full"); return err == nil })
		for _, sb := range []sandbox.Sandbox{neighbour, k.sb()} {
			ctx, cancel := context.WithTimeout(k.Context(), 10*time.Second)
			_, _, err := sb.Files().Read(ctx, "/etc/passwd", 0, 10)
			cancel()
			if err != nil && (sb == neighbour || errors.Is(err, context.DeadlineExceeded)) {
				k.Errorf("read: %v", err)
			}
		}
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Error(err)
		}
		k.recovers(k.sb())
	}},
	{name: "leases", isolation: true, check: func(k *kit) {
		k.quotas()
		k.start(python(`import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
open('f', 'w').write('x')
fd = os.open('f', os.O_RDONLY)
try: fcntl.fcntl(fd, 1024, fcntl.F_WRLCK)
except OSError: pass
open('ready', 'w').close()
time.sleep(600)`))
		k.eventually("the lease", func() bool { _, err := k.sb().Files().Stat(k.Context(), "ready"); return err == nil })
		began := time.Now()
		equal(k, "content", k.read("f"), "x")
		if d := time.Since(began); d > 15*time.Second {
			k.Errorf("reading took %v", d)
		}
	}},
	{name: "memory of sockets", limit: sandbox.LimitMemory, check: func(k *kit) {
		k.quotas()
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Memory: 64 << 20, Files: 4096}})
		r := k.runIn(sb, python(`import socket
held, most = [], 0
listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen(512)
for i in range(100):
    c = socket.socket(); c.connect(listener.getsockname()); c.setblocking(False)
    s = listener.accept()[0]; s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20); held += [c, s]
    try:
        while True: most += c.send(b'x' * 65536)
    except BlockingIOError: pass
try:
    for i in range(1000): n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); n.bind((0, 0)); held.append(n)
    print("sockets without end")
except OSError: pass
for protocol in range(1, 23):
    try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    except OSError: continue
    print('netlink', protocol)
print(most <= 96 << 20 or most)`), 20*time.Second)
		if got := string(r.Stdout.Bytes()); got != "True\n" && !r.Exit.OOM {
			k.Errorf("held in sockets: %q, %q", got, r.Stderr.Bytes())
		}
		k.recovers(sb)
	}},
	{name: "a directory at the end of a long path", isolation: true, check: func(k *kit) {
		k.quotas()
		k.run(python(`import os
for i in range(15): os.mkdir('d' * 250); os.chdir('d' * 250)
try:
    for i in range(100000): os.mknod('%0250d' % i)
except OSError: pass`))
		name := strings.Repeat(strings.Repeat("d", 250)+"/", 15)
		ctx, cancel := context.WithTimeout(k.Context(), 20*time.Second)
		defer cancel()
		if _, err := k.sb().Files().List(ctx, name); errors.Is(err, sandbox.ErrGone) || errors.Is(err, context.DeadlineExceeded) {
			k.Error(err)
		}
		k.recovers(k.sb())
	}},
}
