package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
)

// hostile is what a command does to its sandbox, to the machine or to its neighbours. None of it may affect other sandboxes or
// the machine, and the sandbox itself must stay usable.
var hostile = map[string]string{
	"descriptor flood": `import os
held = []
try:
    while True: held.append(os.open('/dev/null', 0))
except OSError as e: print(e.strerror)`,
	"zombie storm": `import os, time
for i in range(3000):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: os.waitpid(-1, 0)
if os.fork() == 0:
    for i in range(200):
        try:
            if os.fork() == 0: os._exit(0)
        except OSError: break
    os._exit(0)`,
	"kill -1": `import os, signal; os.fork(); os.kill(-1, signal.SIGKILL)`,
	"signals at init": `import os
for _ in range(2): os.fork()
for _ in range(200): [os.kill(1, s) for s in range(1, 65) if s not in (32, 33)]`,
	"closed stdio": `import os, time; [os.close(i) for i in (0, 1, 2)]; time.sleep(0.2)`,
	"orphans with pipes": `import os, time
for i in range(30):
    if os.fork() == 0:
        os.setsid(); time.sleep(600)`,
	"pipe hoard": `import os, fcntl
held = []
try:
    while len(held) < 400:
        r, w = os.pipe(); held += [r, w]; fcntl.fcntl(w, 1031, 1 << 20)
except OSError as e: print(e.strerror)`,
	"descriptors in flight": `import socket, array, os
held = []
try:
    for i in range(300):
        a, b = socket.socketpair(); held += [a, b]
        for j in range(50): a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 100))], 0x40)
except OSError as e: print(e.strerror)`,
	"shared memory": `import mmap, os, ctypes
libc = ctypes.CDLL(None)
ids = [libc.shmget(0, 1 << 20, 0o1666) for i in range(64)]
open('/dev/shm/x', 'wb').write(b'x' * (1 << 20))`,
	"inotify hoard": `import ctypes
libc = ctypes.CDLL(None)
print(min(libc.inotify_init() for i in range(300)))`,
	"long names": `import os
try:
    for i in range(3000): os.mkdir('d' * 250); os.chdir('d' * 250)
except OSError as e: print(e.strerror)`,
	"locked memory": `import mmap, ctypes
libc = ctypes.CDLL(None, use_errno=True)
m = mmap.mmap(-1, 64 << 20); print(libc.mlockall(3))`,
	"priority": `import os
try: os.nice(-20)
except OSError as e: print(e.strerror)
try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); raise SystemExit(3)
except OSError as e: print(e.strerror)`,
	"timers": `import signal, time
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001); signal.signal(signal.SIGALRM, lambda *a: None)
end = time.time() + 0.3
while time.time() < end: pass`,
}

// hostileCases leave the neighbours and the machine unharmed.
var hostileCases = []testCase{
	{name: "hostile workloads", isolation: true, check: func(k *kit) {
		neighbour := k.open(sandbox.Spec{})
		k.shIn(neighbour, "echo mine > f; echo > alive; (while :; do sleep 0.05; date +%s%N > alive; done) >/dev/null 2>&1 &")
		for _, what := range sortedNames(hostile) {
			sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Processes: 100, Memory: 256 << 20}})
			r := k.runIn(sb, sandbox.Command{Args: []string{"python3", "-c", hostile[what]}}, 15*time.Second)
			if r.Exit.Code == 3 {
				k.Errorf("%s worked: %q", what, r.Stdout.Bytes())
			}
			k.recovers(sb)
			before := k.shIn(neighbour, "cat f alive")
			k.eventually(what+": the neighbour goes on", func() bool { return k.shIn(neighbour, "cat f alive") != before })
			k.shIn(neighbour, "printf 'a b' | tr a-z A-Z | grep -q 'A B'")
			if err := sb.Close(); err != nil {
				k.Errorf("%s: close: %v", what, err)
			}
		}
	}},
	{name: "setuid programs give nothing", isolation: true, check: func(k *kit) {
		if k.backend.Guarantees().Isolation["ids"] == "single" {
			k.Skip("only one user exists here")
		}
		k.sh("cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id")
		if r := k.run(sh("setpriv --reuid 1000 --regid 1000 --clear-groups /tmp/id -u")); r.Exit.Code == 0 {
			equal(k, "user", string(r.Stdout.Bytes()), "1000\n")
		}
	}},
	{name: "the host's sockets cannot be reached", isolation: true, check: func(k *kit) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			k.Fatal(err)
		}
		defer tcp.Close()
		name := fmt.Sprintf("trajgen-test-%d", os.Getpid())
		abstract, err := net.Listen("unix", "@"+name)
		if err != nil {
			k.Fatal(err)
		}
		defer abstract.Close()
		path := filepath.Join(k.TempDir(), "s")
		file, err := net.Listen("unix", path)
		if err != nil {
			k.Fatal(err)
		}
		defer file.Close()
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		for _, target := range []string{
			"socket.AF_INET, ('127.0.0.1', " + port + ")", "socket.AF_INET, ('0.0.0.0', " + port + ")", "socket.AF_INET, ('127.1.2.3', " + port + ")",
			"socket.AF_INET6, ('::1', " + port + ")", "socket.AF_INET6, ('::ffff:127.0.0.1', " + port + ")",
			"socket.AF_UNIX, '\\0" + name + "'", "socket.AF_UNIX, '" + path + "'",
		} {
			family, address, _ := strings.Cut(target, ", ")
			script := "import socket; s = socket.socket(" + family + "); s.settimeout(2); s.connect(" + address + ")"
			if r := k.run(sandbox.Command{Args: []string{"python3", "-c", script}}); r.Exit.Code == 0 {
				k.Errorf("%s was reached", target)
			}
		}
	}},
	{name: "races against the file tools", isolation: true, check: func(k *kit) {
		outside := filepath.Join(k.TempDir(), "outside")
		if err := os.MkdirAll(outside, 0o777); err != nil {
			k.Fatal(err)
		}
		victim := filepath.Join(outside, "f")
		if err := os.WriteFile(victim, []byte("untouched"), 0o666); err != nil {
			k.Fatal(err)
		}
		swap := `import os
os.makedirs('real', exist_ok=True); open('real/f', 'w').write('inside')
targets = ['/proc/1/root` + outside + `', '` + outside + `', '/../../..` + outside + `', '/proc/1/cwd', '/dev', '/etc']
i = 0
while True:
    i += 1
    try:
        os.symlink(targets[i % len(targets)], 'l'); os.rename('l', 'd')
    except OSError: pass
    try:
        os.unlink('d'); os.rename('real', 'd'); os.rename('d', 'real')
    except OSError: pass`
		p := k.start(sandbox.Command{Args: []string{"python3", "-c", swap}})
		var all sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		files := k.sb().Files()
		for _, act := range []func() error{
			func() error { return files.Write(k.Context(), sandbox.FileWrite{Path: "d/f", Data: []byte("written")}) },
			func() error {
				return files.Write(k.Context(), sandbox.FileWrite{Path: "d/f", Data: []byte("replaced"), Replace: true})
			},
			func() error {
				data, _, err := files.Read(k.Context(), "d/f", 0, 100)
				if string(data) == "untouched" {
					k.Error("a file of the host was read")
				}
				return err
			},
			func() error { return files.Remove(k.Context(), "d/f", "d/etc", "d") },
			func() error { _, err := files.List(k.Context(), "d"); return err },
		} {
			all.Go(func() {
				for time.Now().Before(end) {
					_ = act()
				}
			})
		}
		all.Wait()
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Error(err)
		}
		if data, err := os.ReadFile(victim); err != nil || string(data) != "untouched" {
			k.Errorf("outside: got %q, %v", data, err)
		}
		equal(k, "devices", k.sh("echo x > /dev/null && ls /dev/null"), "/dev/null\n")
		k.recovers(k.sb())
	}},
	{name: "a command that closes or floods its streams", check: func(k *kit) {
		k.sh("exec >/dev/null")
		r := k.run(sh("exec >&- 2>&- </dev/null; sleep 0.1; exit 5"))
		equal(k, "code", r.Exit.Code, 5)
		r = k.runIn(k.sb(), sh("yes & yes 1>&2 & wait"), time.Minute)
		if !r.Flooded && !r.TimedOut {
			k.Errorf("a flood came to an end by itself: %+v", r.Exit)
		}
		equal(k, "afterwards", k.sh("echo well"), "well\n")
	}},
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
