package sandboxtest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trajgen/sandbox"
)

// attempts must not work: each is a Python expression or a script that exits 0 when it did work.
var attempts = map[string]string{
	"mount":               "mount -t tmpfs x /mnt",
	"remount /usr":        "mount -o remount,rw /usr",
	"unshare a user":      "unshare -U true",
	"unshare mounts":      "unshare -m true",
	"unshare pids":        "unshare -p -f true",
	"write the program":   "echo x >> /.trajgen",
	"remount the root":    "mount -o remount,rw / || mount -o remount,bind,rw / || mount --bind /tmp /etc || mount -t tmpfs x /etc",
	"unmount":             "umount /tests || umount -l /workspace || umount -l /usr || umount -l /",
	"chroot":              "chroot / true",
	"make a device":       "mknod /tmp/sda b 254 0",
	"host name":           "hostname owned",
	"set the clock":       "date -s 2001-01-01",
	"write a sysctl":      "echo 1 > /proc/sys/kernel/panic || echo 0 > /proc/sys/user/max_user_namespaces || echo 1 > /proc/sys/net/ipv4/ip_forward",
	"sysrq":               "echo h > /proc/sysrq-trigger",
	"environment of 1":    "cat /proc/1/environ",
	"memory of 1":         "head -c1 /proc/1/mem",
	"root of 1":           "ls /proc/1/root/",
	"descriptors of 1":    "readlink /proc/1/fd/3",
	"program of 1":        "readlink /proc/1/exe",
	"kernel log":          "dmesg",
	"kernel memory":       "head -c1 /proc/kcore | grep -q .",
	"boot command line":   "grep -q . /proc/cmdline",
	"keys":                "grep -q . /proc/keys",
	"kill process 1":      "kill -9 1; sleep 0.1; ! true",
	"raise a limit":       "ulimit -n 100000",
	"block device":        "ls /dev/vda || ls /dev/sda || ls /dev/loop0",
	"regain capabilities": "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(0 if l.prctl(24,21,0,0,0)==0 and 0 else 1)'",
	"write sysfs":         "echo x > /sys/kernel/uevent_helper || echo 1 > /sys/kernel/profiling || { mkdir /sys/fs/cgroup/x && [ -e /sys/fs/cgroup/x/cgroup.procs ]; } || mkdir /sys/fs/cgroup/memory/x",
}

// fixedAttempts must not work where commands cannot change the system.
var fixedAttempts = map[string]string{
	"write /usr":          "touch /usr/planted || touch /usr/bin/planted || touch /bin/planted",
	"write the root":      "touch /planted || mkdir /planted || ln -s /tmp /planted",
	"write /etc":          "touch /etc/planted || echo x >> /etc/passwd || rm /etc/hosts || mkdir -p /etc/python3.99",
	"replace /etc":        "mv /etc /etc2 || mv /etc /tmp/etc || rmdir /etc",
	"preload a library":   "echo /tmp/x.so > /etc/ld.so.preload || ln -s /tmp/x /etc/ld.so.preload || mv /tmp/x /etc/ld.so.preload",
	"replace the loader":  "rm /etc/ld.so.cache || echo x > /etc/ld.so.cache || echo /tmp > /etc/ld.so.conf.d/x.conf",
	"replace programs":    "mv /bin /bin2 || rm /bin || ln -sfn /tmp /bin || mv /lib64 /tmp/lib64 || rm /lib64 || mv /usr /usr2 || mv /lib /lib2",
	"rename mount points": "mv /workspace /w || mv /tests /t || mv /tmp /t || mv /root /r || rmdir /tests || rmdir /workspace || mv /dev/shm /tmp/s || mv /dev /d || mv /proc /p",
	"shadow mount points": "ln -sfnT /tmp /workspace || ln -sfnT /tmp /tests || mv -T /tmp/x /tests || mv -T /tmp/x /workspace",
	"sysfs":               "[ -e /sys/kernel ]",
	"control cgroups":     "mkdir /sys/fs/cgroup/x || ls /sys/fs/cgroup/memory",
}

// python attempts print what happened.
const calls = `
import ctypes, socket, os, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(what, f, *args):
    r = f(*args)
    print(what, 'worked' if r >= 0 else errno.errorcode[ctypes.get_errno()])
def family(what, n):
    try:
        socket.socket(n, socket.SOCK_STREAM).close()
        print(what, 'worked')
    except OSError as e:
        print(what, errno.errorcode[e.errno])
call('ptrace', libc.ptrace, 16, 1, 0, 0)
call('unshare', libc.unshare, 0x10000000)
call('setns', libc.setns, 0, 0)
call('remount', libc.mount, None, b'/', None, 32 | 4096, None)
call('umount', libc.umount2, b'/tests', 2)
call('mount_setattr', libc.syscall, 442, -100, b'/', 0, b'\\0' * 32, 32)
call('keyctl', libc.syscall, {'x86_64': 250, 'aarch64': 219}[os.uname().machine], 0, -3, 0)
call('bpf', libc.syscall, {'x86_64': 321, 'aarch64': 280}[os.uname().machine], 0, 0, 0)
call('perf', libc.syscall, {'x86_64': 298, 'aarch64': 241}[os.uname().machine], 0, 0, -1, -1, 0)
call('io_uring', libc.syscall, 425, 1, 0)
call('clone3', libc.syscall, 435, 0, 0)
family('vsock', 40)
family('packet', 17)
family('alg', 38)
family('unix', 1)
family('inet', 2)
`

// hostFiles prints which of the host's files it sees.
const hostFiles = "for f in /work /root/.ssh /root/.cache /root/go /etc/shadow /etc/ssl/private /boot /lost+found /var/lib/dpkg; do [ -e $f ] && echo $f; done; ls -A /root /home; true"

// isolationCases try to climb out.
var isolationCases = []testCase{
	{name: "the host's files are invisible", isolation: true, check: func(k *kit) {
		outside := filepath.Join(k.TempDir(), "outside")
		if err := os.WriteFile(outside, []byte(secret), 0o666); err != nil {
			k.Fatal(err)
		}
		equal(k, "outside", k.sh("[ ! -e "+outside+" ] || echo seen"), "")
		if !k.backend.Guarantees().FixedSystem {
			return // the rest is the image's
		}
		equal(k, "seen", k.sh(hostFiles), "/home:\n\n/root:\n")
	}},
	{name: "the host's processes are invisible", isolation: true, check: func(k *kit) {
		pids := strings.Fields(k.sh("ls /proc | grep '^[0-9]'"))
		if len(pids) > 6 || pids[0] != "1" {
			k.Errorf("got %v, want process 1 and the few of this command", pids)
		}
	}},
	{name: "the runner's environment is invisible", isolation: true, check: func(k *kit) {
		equal(k, "found", k.sh("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c "+secret+" || true"), "0\n")
	}},
	{name: "two sandboxes share no processes nor ports", isolation: true, check: func(k *kit) {
		a, b := k.open(sandbox.Spec{}), k.open(sandbox.Spec{})
		k.shIn(a, "python3 -m http.server --bind 127.0.0.1 18080 >log 2>&1 & sleep 68.1 >/dev/null 2>&1 &")
		ask := "python3 -c \"import socket; socket.create_connection(('127.0.0.1',18080),1)\" 2>&1"
		k.eventually("the server", func() bool { return k.runIn(a, sh(ask), 10*time.Second).Exit.Code == 0 })
		if r := k.runIn(b, sh(ask), 10*time.Second); r.Exit.Code == 0 {
			k.Error("one reaches the other's port")
		}
		k.sleeping(b, "68.1", 0)
	}},
	{name: "no network", isolation: true, check: func(k *kit) {
		try := "python3 -c \"import socket; s=socket.socket(); s.settimeout(2); s.bind(('127.0.0.1',0)); s.listen(); socket.create_connection(s.getsockname(),1)\""
		none := k.open(sandbox.Spec{Network: sandbox.NetworkNone})
		if r := k.runIn(none, sh(try), 10*time.Second); r.Exit.Code == 0 {
			k.Error("network none has a loopback")
		}
		equal(k, "loopback", k.run(sh(try)).Exit.Code, 0)
		if r := k.run(sh("python3 -c \"import socket; socket.create_connection(('192.0.2.1',80),2)\" 2>&1")); !strings.Contains(string(r.Stdout.Bytes()), "unreachable") {
			k.Errorf("outside: got %q", r.Stdout.Bytes())
		}
	}},
	{name: "attempts", isolation: true, check: func(k *kit) {
		scripts := maps.Clone(attempts)
		if k.backend.Guarantees().FixedSystem {
			maps.Copy(scripts, fixedAttempts)
		}
		for what, script := range scripts {
			if r := k.run(sh("{ " + script + "; } >out 2>&1")); r.Exit.Code == 0 {
				k.Errorf("%s worked: %q said %q", what, script, k.read("out"))
			}
		}
		equal(k, "still there", k.sh("hostname"), "sandbox\n")
	}},
	{name: "system calls", isolation: true, check: func(k *kit) {
		r := k.run(sandbox.Command{Args: []string{"python3", "-c", calls}})
		want := "ptrace EPERM\nunshare EPERM\nsetns EPERM\nremount EPERM\numount EPERM\nmount_setattr EPERM\nkeyctl EPERM\nbpf EPERM\nperf EPERM\nio_uring EPERM\nclone3 ENOSYS\nvsock EAFNOSUPPORT\npacket EAFNOSUPPORT\nalg EAFNOSUPPORT\nunix worked\ninet worked\n"
		if !slices.Contains(k.backend.Guarantees().Network, sandbox.NetworkLoopback) {
			want = strings.Replace(want, "inet worked", "inet EAFNOSUPPORT", 1)
		}
		got := strings.Replace(string(r.Stdout.Bytes()), "clone3 EINVAL", "clone3 ENOSYS", 1) // where the guest itself needs it
		if got != want {
			k.Errorf("got %q, want %q, stderr %q", got, want, r.Stderr.Bytes())
		}
	}},
	{name: "the verifier's Python is the one that was there", isolation: true, fixed: true, check: func(k *kit) {
		const fake = "import os; os.path.exists(\"/tests\") and os._exit(0)"
		k.run(sh("for d in /etc/python3* /etc/python3.11 /usr/lib/python3* /usr/local/lib/python3*; do mv /etc /etc2; mkdir -p $d; echo '" + fake + "' > $d/sitecustomize.py; done"))
		k.run(sh("mkdir -p fake/bin && printf '#!/bin/sh\nexit 0\n' > fake/bin/python3 && chmod +x fake/bin/python3 && echo 'void f(void){}' > f.c && cc -shared -o /tmp/f.so f.c; " +
			"echo /tmp/f.so > /etc/ld.so.preload; mv fake/bin /bin; ln -sfnT $PWD/fake/bin /bin; mv -T fake / ; mv -T $PWD /tmp/away; ln -s /tmp /tests"))
		tests := k.sb().Layout().Tests
		k.killAll(k.sb())
		k.remove(tests)
		k.write(sandbox.FileWrite{Path: tests + "/check.py", Data: []byte("import os, sys\nprint(os.getcwd(), sys.flags.isolated, 'LD_PRELOAD' in os.environ)\nsys.exit(9)\n"), Replace: true})
		r := k.run(sandbox.Command{Args: []string{"python3", "-I", tests + "/check.py"}})
		equal(k, "exit code", r.Exit.Code, 9)
		equal(k, "said", string(r.Stdout.Bytes()), k.sb().Layout().Workdir+" 1 False\n")
	}},
	{name: "what can be written", isolation: true, fixed: true, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Workdir: "/srv/of/its/own"})
		k.shIn(sb, "for d in . /root /home /home/user /tmp /var/tmp /var/log /var/lib /var/cache /run /srv /mnt /opt /dev/shm /tests; do mkdir -p $d/made && echo x > $d/made/f && rm -r $d/made || exit 1; done; echo x > /dev/null")
		for _, script := range []string{"touch /workspace/x", "mv /srv/of /srv/else", "mv /srv/of/its /tmp", "rmdir /srv/of/its/own", "touch /x"} {
			if r := k.runIn(sb, sh(script), 10*time.Second); r.Exit.Code == 0 {
				k.Errorf("%s worked", script)
			}
		}
		for _, dir := range []string{"/app", "/var/lib/app"} {
			k.shIn(k.open(sandbox.Spec{Workdir: dir}), "[ $PWD = "+dir+" ] && touch x && ! mv "+dir+" /tmp 2>/dev/null")
		}
		for _, dir := range []string{"/", "/etc", "/usr/local/x", "/srv/../etc/python3.11", "/dev/shm/x", "/tests/x"} {
			if _, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "misplaced", Workdir: dir}); err == nil {
				k.Errorf("the working directory may be %s", dir)
			}
		}
	}},
	{name: "threads and forks work", isolation: true, check: func(k *kit) {
		equal(k, "output", k.sh(`python3 -c "
import threading, subprocess, multiprocessing as m
t=[threading.Thread(target=lambda: None) for _ in range(20)]; [x.start() for x in t]; [x.join() for x in t]
print(subprocess.run(['echo','hi'],capture_output=True).stdout, m.get_context('fork').Pool(2).map(abs,[-1,-2]))"`), "b'hi\\n' [1, 2]\n")
	}},
	{name: "no mount appears on the host", isolation: true, check: func(k *kit) {
		before, _ := os.ReadFile("/proc/self/mountinfo")
		sb := k.open(sandbox.Spec{})
		k.shIn(sb, "touch x")
		during, _ := os.ReadFile("/proc/self/mountinfo")
		if string(before) != string(during) {
			k.Errorf("mounts changed:\n%s\n%s", before, during)
		}
	}},
	{name: "fork bomb", limit: "processes", check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Processes: 50}})
		k.runIn(sb, sh("bomb() { bomb | bomb & }; bomb; sleep 1"), 2*time.Second)
		k.recovers(sb)
	}},
	{name: "memory bomb", limit: "memory", check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Memory: 64 << 20}})
		r := k.runIn(sb, sandbox.Command{Args: []string{"python3", "-c", "x=[]\nwhile True: x.append(bytearray(1<<20))"}}, 20*time.Second)
		equal(k, "killed for memory", r.Exit.OOM, true)
		equal(k, "signal", r.Exit.Signal, 9)
		equal(k, "the next command is innocent", k.runIn(sb, sh("true"), 10*time.Second).Exit.OOM, false)
		k.recovers(sb)
	}},
	{name: "disk flood", limit: "disk", check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Disk: 16 << 20}})
		for _, dir := range []string{"/workspace", "/tmp", "/dev/shm", "/var/tmp", "/root"} {
			r := k.runIn(sb, sh("cat /dev/zero > "+dir+"/flood; wc -c < "+dir+"/flood"), 20*time.Second)
			if !strings.Contains(string(r.Stderr.Bytes()), "No space left") {
				k.Errorf("%s: got %q, %q", dir, r.Stdout.Bytes(), r.Stderr.Bytes())
			}
			// One limit for all directories, and still room for the verifier.
			if r := k.runIn(sb, sh("cd && head -c 65536 /dev/zero > more"), 20*time.Second); r.Exit.Code == 0 && dir != "/root" {
				k.Errorf("%s: there is room elsewhere", dir)
			}
			tests := sb.Layout().Tests + "/check.py"
			if err := sb.Files().Write(k.Context(), sandbox.FileWrite{Path: tests, Data: make([]byte, 1<<20), Replace: true}); err != nil {
				k.Errorf("%s: write %s: %v", dir, tests, err)
			}
			k.shIn(sb, "rm -f "+dir+"/flood /root/more")
		}
		r := k.runIn(sb, sh("cat /dev/zero > /tests/flood; i=0; (while : > /tests/$i; do i=$((i+1)); done); wc -c < /tests/flood"), 20*time.Second)
		if n, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout.Bytes()))); err != nil || n > 64<<20 {
			k.Errorf("/tests: got %q, %v", r.Stdout.Bytes(), err)
		}
		if err := sb.Files().Remove(k.Context(), "/tests"); err != nil {
			k.Error(err)
		}
		k.runIn(sb, sh("i=0; while : > f$i; do i=$((i+1)); done"), 10*time.Second)
		k.shIn(sb, "rm -f f*")
		ctx, cancel := context.WithTimeout(k.Context(), 10*time.Second)
		defer cancel()
		if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "big", Data: make([]byte, 32<<20)}); err == nil {
			k.Error("more was written than fits")
		}
		equal(k, "nothing half written", k.shIn(sb, "ls -A"), "")
		k.recovers(sb)
	}},
	{name: "open files", limit: "files", check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Files: 100}})
		// Where the guest itself needs more, it sets the hard limit a moment after the command has begun.
		equal(k, "limit", k.shIn(sb, "ulimit -Sn; sleep 0.3; ulimit -Hn"), "100\n100\n")
	}},
}

// recovers checks that a sandbox is still usable.
func (k hands) recovers(sb sandbox.Sandbox) {
	k.Helper()
	k.killAll(sb)
	equal(k, "after kill all", k.shIn(sb, "echo well | cat"), "well\n")
	if _, err := sb.Files().Stat(k.Context(), "."); err != nil {
		k.Errorf("stat: %v", err)
	}
}
